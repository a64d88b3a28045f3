#include "tools/eval/per_class.h"

#include "base/text.h"

#include <inttypes.h>
#include <stdio.h>

static const uint64_t *row_of(const bpt_per_class *c, uint32_t i) {
    return c->confusion + (size_t)i * c->n;
}

static uint64_t count_of(const bpt_per_class *c, uint32_t i) {
    uint64_t sum = 0;
    for (uint32_t j = 0; j < c->n; j++) sum += row_of(c, i)[j];
    return sum;
}

/* @return the class that most images of class @p i are wrongly taken for; @p i if there are none */
static uint32_t mistake_of(const bpt_per_class *c, uint32_t i) {
    const uint64_t *row = row_of(c, i);
    uint64_t most = 0;
    uint32_t mistake = i;
    for (uint32_t j = 0; j < c->n; j++) {
        if (j == i || row[j] <= most) continue;
        most = row[j];
        mistake = j;
    }
    return mistake;
}

void bpt_per_class_count(bpt_per_class *c, const bpt_batch_answers *batch) {
    for (uint32_t i = 0; i < batch->n; i++)
        c->confusion[(size_t)batch->labels[i] * c->n + (size_t)batch->answers[i].predicted]++;
}

void bpt_per_class_print(const bpt_per_class *c) {
    enum { SHOWN = 128 };
    char name[SHOWN], other[SHOWN];
    printf("  images  accuracy  class, and what most of the others were taken for\n");
    for (uint32_t i = 0; i < c->n; i++) {
        const uint64_t count = count_of(c, i);
        const uint32_t mistake = mistake_of(c, i);
        bpt_text_escape(c->names[i], name, sizeof name);
        bpt_text_escape(c->names[mistake], other, sizeof other);
        printf("%8" PRIu64, count);
        if (count == 0)
            printf("         -  %s", name);
        else
            printf("    %.4f  %s", (double)row_of(c, i)[i] / (double)count, name);
        if (mistake != i) printf(" (%" PRIu64 ": %s)", row_of(c, i)[mistake], other);
        printf("\n");
    }
}

void bpt_per_class_put(const bpt_per_class *c, bpt_json_writer *w) {
    bpt_json_open_array(w, "per_class");
    for (uint32_t i = 0; i < c->n; i++) {
        bpt_json_open_object(w, NULL);
        bpt_json_put_text(w, "class", c->names[i]);
        bpt_json_put_u64(w, "count", count_of(c, i));
        bpt_json_put_u64(w, "correct", row_of(c, i)[i]);
        bpt_json_close_object(w);
    }
    bpt_json_close_array(w);
    bpt_json_open_array(w, "confusion");
    for (uint32_t i = 0; i < c->n; i++) {
        bpt_json_open_array(w, NULL);
        for (uint32_t j = 0; j < c->n; j++) bpt_json_put_u64(w, NULL, row_of(c, i)[j]);
        bpt_json_close_array(w);
    }
    bpt_json_close_array(w);
}
