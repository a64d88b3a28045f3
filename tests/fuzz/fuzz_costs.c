/* A table of costs from any bytes: what is read is written and read again, and cuts are chosen by
 * it. */
#include "base/memory.h"
#include "inner/cuts/cost_table.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bpt_status parse(const char *text, size_t size, bpt_cost_table *table) {
    bpt_yaml *doc;
    BPT_TRY(bpt_yaml_parse("costs", text, size, &doc));
    const bpt_status status = bpt_cost_table_read(doc, bpt_yaml_root(doc), table);
    bpt_yaml_free(doc);
    return status;
}

static void write_again(const bpt_cost_table *table) {
    bpt_cost_table again = {0};
    char *text;
    if (bpt_cost_table_write(table, 2, &text) != BPT_OK) abort();
    if (parse(text, strlen(text), &again) != BPT_OK) abort();
    if (again.workers != table->workers || again.n != table->n) abort();
    bpt_cost_table_clear(&again);
    bpt_free(text);
}

static void choose(const bpt_cost_table *table) {
    const int64_t chunks[] = {3, 4};
    for (size_t i = 0; i < table->n; i++) {
        bpt_cut cuts[BPT_N_CONV_STEPS] = {{0}};
        bpt_cost_table_choose(table, &table->costs[i].problem, chunks, 2, true, cuts);
        for (int step = 0; step < BPT_N_CONV_STEPS; step++)
            if (bpt_cut_parts(cuts[step], 4) < 1) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    bpt_cost_table table = {0};
    if (parse((const char *)data, size, &table) != BPT_OK) return 0;
    write_again(&table);
    choose(&table);
    bpt_cost_table_clear(&table);
    return 0;
}
