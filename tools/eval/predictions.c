#include "tools/eval/predictions.h"

#include "base/file.h"
#include "base/memory.h"
#include "tools/interrupt.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char head[] = "{\"sample\": "; /* of each line, and of no other file */

/* Whether what is there may be replaced. */
static bool gives_way(const char *path) {
    char begin[sizeof head - 1];
    uint64_t bytes;
    int fd;
    if (bpt_file_open(path, &fd, &bytes) != BPT_OK) return false;
    const ssize_t n = read(fd, begin, sizeof begin);
    close(fd);
    return bytes == 0 || (n == sizeof begin && memcmp(begin, head, sizeof begin) == 0);
}

bpt_status bpt_predictions_try(const char *path) {
    bool there;
    if (strcmp(path, "-") == 0) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "--predictions takes a file: standard output has the result");
        bpt_hint("name a file, such as predictions.jsonl");
        return status;
    }
    BPT_TRY(bpt_path_look(path, &there));
    if (there && !gives_way(path)) {
        const bpt_status status =
            bpt_fail(BPT_EEXIST, "%s exists already and is no file of predictions", path);
        bpt_hint("name another file for --predictions");
        return status;
    }
    return bpt_file_try(path);
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
