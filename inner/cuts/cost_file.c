/* A cost table as YAML: {workers: 8, margin-percent: 5,
 * costs: [[step, type, algorithm, problem, cut, ns], ...]} */
#include "base/memory.h"
#include "inner/cuts/cost_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Of a problem, in the order of the file. */
enum { N_NUMBERS = 15, N_CUT = 3 };

static void list_numbers(bpt_conv_problem *p, int64_t **numbers) {
    int64_t *const all[N_NUMBERS] = {&p->c,           &p->h,           &p->w,      &p->k,
                                     &p->p,           &p->q,           &p->r,      &p->s,
                                     &p->stride[0],   &p->stride[1],   &p->pad[0], &p->pad[1],
                                     &p->dilation[0], &p->dilation[1], &p->groups};
    memcpy(numbers, all, sizeof all);
}

static const char *const step_names[] = {"forward", "backward_data", "backward_weights"};
static const char *const type_names[] = {"fp32", "bf16"};
static const char *const algorithm_names[] = {"direct", "winograd"};

/* ---- writing ---- */

/* Of an entry: 19 numbers of up to 20 digits, three words; besides the indent. */
enum { LINE_SIZE = 640 };

static int write_list(char *at, size_t size, const int64_t *numbers, int n) {
    int length = 0;
    for (int i = 0; i < n; i++)
        length +=
            snprintf(at + length, size - (size_t)length, "%s%" PRId64, i ? ", " : "[", numbers[i]);
    return length + snprintf(at + length, size - (size_t)length, "]");
}

static int write_entry(char *at, size_t size, int indent, bpt_cost cost) {
    int64_t *places[N_NUMBERS], numbers[N_NUMBERS];
    const int64_t cut[N_CUT] = {cost.cut.samples, cost.cut.channels, cost.cut.rows};
    list_numbers(&cost.problem, places);
    for (int i = 0; i < N_NUMBERS; i++) numbers[i] = *places[i];
    int n = snprintf(at, size, "%*s  - [%s, %s, %s, ", indent, "", step_names[cost.step],
                     type_names[cost.problem.type], algorithm_names[cost.problem.winograd]);
    n += write_list(at + n, size - (size_t)n, numbers, N_NUMBERS);
    n += snprintf(at + n, size - (size_t)n, ", ");
    n += write_list(at + n, size - (size_t)n, cut, N_CUT);
    return n + snprintf(at + n, size - (size_t)n, ", %" PRIu64 "]\n", cost.ns);
}

bpt_status bpt_cost_table_write(const bpt_cost_table *t, int indent, char **text) {
    char *at;
    const size_t line = LINE_SIZE + (size_t)indent;
    BPT_TRY(bpt_alloc("text of a cost table", t->n + 3, line, (void **)text));
    at = *text;
    at += snprintf(at, 3 * line,
                   "%*sworkers: %" PRId64 "\n%*smargin-percent: %" PRId64 "\n%*scosts:%s\n", indent,
                   "", t->workers, indent, "", t->margin_percent, indent, "", t->n ? "" : " []");
    for (size_t i = 0; i < t->n; i++) at += write_entry(at, line, indent, t->costs[i]);
    return BPT_OK;
}

/* ---- reading ---- */

static bpt_status read_word(const bpt_yaml *doc, const bpt_yaml_node *node, const char *what,
                            const char *const *words, int n, int *out) {
    const char *text;
    BPT_TRY(bpt_yaml_get_text(doc, node, what, &text));
    for (*out = 0; *out < n; ++*out)
        if (strcmp(text, words[*out]) == 0) return BPT_OK;
    return bpt_yaml_fail(doc, node, "there is no %s \"%s\"", what, text);
}

static bpt_status read_list(const bpt_yaml *doc, const bpt_yaml_node *list, const char *what, int n,
                            int64_t min, int64_t *out) {
    if (bpt_yaml_node_kind(list) != BPT_YAML_LIST || bpt_yaml_size(list) != (size_t)n)
        return bpt_yaml_fail(doc, list, "the %s is a list of %d numbers", what, n);
    for (int i = 0; i < n; i++)
        BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(list, (size_t)i), what, min, INT32_MAX, &out[i]));
    return BPT_OK;
}

static bpt_status read_problem(const bpt_yaml *doc, const bpt_yaml_node *list,
                               bpt_conv_problem *problem) {
    int64_t *places[N_NUMBERS], numbers[N_NUMBERS];
    list_numbers(problem, places);
    BPT_TRY(read_list(doc, list, "convolution", N_NUMBERS, 0, numbers));
    for (int i = 0; i < N_NUMBERS; i++) {
        const bool may_be_zero = places[i] == &problem->pad[0] || places[i] == &problem->pad[1];
        if (numbers[i] == 0 && !may_be_zero)
            return bpt_yaml_fail(doc, bpt_yaml_at(list, (size_t)i), "a size is at least 1");
        *places[i] = numbers[i];
    }
    return BPT_OK;
}

static bpt_status read_entry(const bpt_yaml *doc, const bpt_yaml_node *row, bpt_cost *cost) {
    int64_t cut[N_CUT], ns;
    int step, type, algorithm;
    *cost = (bpt_cost){0};
    if (bpt_yaml_node_kind(row) != BPT_YAML_LIST || bpt_yaml_size(row) != 6)
        return bpt_yaml_fail(doc, row,
                             "a cost is [step, type, algorithm, convolution, cut, nanoseconds]");
    BPT_TRY(read_word(doc, bpt_yaml_at(row, 0), "step", step_names, BPT_N_CONV_STEPS, &step));
    BPT_TRY(read_word(doc, bpt_yaml_at(row, 1), "type", type_names, 2, &type));
    BPT_TRY(read_word(doc, bpt_yaml_at(row, 2), "algorithm", algorithm_names, 2, &algorithm));
    BPT_TRY(read_problem(doc, bpt_yaml_at(row, 3), &cost->problem));
    BPT_TRY(read_list(doc, bpt_yaml_at(row, 4), "cut", N_CUT, 1, cut));
    BPT_TRY(bpt_yaml_get_int(doc, bpt_yaml_at(row, 5), "nanoseconds", 1, INT64_MAX, &ns));
    if (cut[1] > BPT_MAX_CUT || cut[2] > BPT_MAX_CUT)
        return bpt_yaml_fail(doc, bpt_yaml_at(row, 4), "a cut has up to %d ranges",
                             (int)BPT_MAX_CUT);
    cost->step = (bpt_conv_step)step;
    cost->problem.type = (bpt_value_type)type;
    cost->problem.winograd = algorithm == 1;
    cost->cut = (bpt_cut){cut[0], cut[1], cut[2]};
    cost->ns = (uint64_t)ns;
    return BPT_OK;
}

static bpt_status read_rows(const bpt_yaml *doc, const bpt_yaml_node *list, bpt_cost_table *t) {
    for (size_t i = 0; i < bpt_yaml_size(list); i++) {
        bpt_cost cost;
        BPT_TRY(read_entry(doc, bpt_yaml_at(list, i), &cost));
        BPT_TRY(bpt_cost_table_add(t, &cost));
    }
    return BPT_OK;
}

bpt_status bpt_cost_table_read(const bpt_yaml *doc, const bpt_yaml_node *map, bpt_cost_table *t) {
    static const char *const keys[] = {"workers", "margin-percent", "costs"};
    bpt_cost_table table = {0};
    BPT_TRY(bpt_yaml_check_keys(doc, map, "a cost table", keys, 3));
    const bpt_yaml_node *workers = bpt_yaml_find(map, "workers"),
                        *margin = bpt_yaml_find(map, "margin-percent"),
                        *costs = bpt_yaml_find(map, "costs");
    if (!workers || !costs || bpt_yaml_node_kind(costs) != BPT_YAML_LIST)
        return bpt_yaml_fail(doc, map, "a cost table has workers and a list of costs");
    BPT_TRY(bpt_yaml_get_int(doc, workers, "workers", 1, BPT_COST_WORKERS_MAX, &table.workers));
    if (margin)
        BPT_TRY(bpt_yaml_get_int(doc, margin, "margin-percent", 0, BPT_COST_MARGIN_MAX,
                                 &table.margin_percent));
    const bpt_status status = read_rows(doc, costs, &table);
    if (status == BPT_OK)
        *t = table;
    else
        bpt_cost_table_clear(&table);
    return status;
}
