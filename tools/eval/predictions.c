#include "tools/eval/predictions.h"

#include "base/memory.h"
#include "tools/eval/result_file.h"
#include "tools/interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char head[] = "{\"sample\": "; /* of each line */

static const bpt_result_file kind = {.option = "predictions",
                                     .what = "file of predictions",
                                     .example = "predictions.jsonl",
                                     .head = head,
                                     .head_bytes = sizeof head - 1};

bpt_status bpt_predictions_try(const char *path) {
    return bpt_result_file_try(&kind, path);
}

/* @return @p p to nine digits: more of them mean nothing where activations are floats */
static double shorten(double p) {
    char text[32];
    snprintf(text, sizeof text, "%.9g", p);
    return strtod(text, NULL);
}

static bpt_status add_line(bpt_predictions *p, uint32_t sample, int32_t label,
                           const bpt_answer *answer) {
    const char *text;
    size_t length;
    bpt_json_reset(&p->line);
    bpt_json_open_object(&p->line, NULL);
    bpt_json_put_u64(&p->line, "sample", sample);
    bpt_json_put_text(&p->line, "label", p->labels[label]);
    bpt_json_put_text(&p->line, "predicted", p->classes[answer->predicted]);
    bpt_json_put_real(&p->line, "probability", shorten(answer->probability));
    if (!p->no_labels)
        bpt_json_put_real(&p->line, "label_probability", shorten(answer->label_probability));
    bpt_json_close_object(&p->line);
    BPT_TRY(bpt_json_end_text(&p->line, &text, &length));
    BPT_TRY(BPT_GROW("predictions", p->length + length + 1, &p->text, &p->capacity));
    memcpy(p->text + p->length, text, length);
    p->length += length;
    p->text[p->length++] = '\n';
    return BPT_OK;
}

bpt_status bpt_predictions_add(bpt_predictions *p, const bpt_batch_answers *batch) {
    for (uint32_t i = 0; i < batch->n; i++)
        BPT_TRY(add_line(p, batch->first + i, batch->labels[i], &batch->answers[i]));
    return BPT_OK;
}

bpt_status bpt_predictions_write(const bpt_predictions *p, const char *path) {
    return bpt_interrupt_write(path, p->text, p->length);
}

void bpt_predictions_free(bpt_predictions *p) {
    bpt_json_free(&p->line);
    bpt_free(p->text);
}
