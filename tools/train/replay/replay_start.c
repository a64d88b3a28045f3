#include "tools/train/replay/replay_start.h"

#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"

#include <string.h>

/* What the events "start" of a run say: each part of it begins with one. */
typedef struct {
    unsigned n;
    double epoch; /* at which the latest part began */
} starts;

static void take_line(starts *s, const char *text, size_t length) {
    bpt_json_doc *doc;
    const char *event;
    double epoch;
    if (bpt_json_parse("metrics", text, length, &doc) != BPT_OK) return; /* cut off by a kill */
    const bpt_json *o = bpt_json_root(doc);
    if (bpt_json_get_text(doc, o, "event", &event) == BPT_OK && strcmp(event, "start") == 0 &&
        bpt_json_get_real(doc, o, "epoch", &epoch) == BPT_OK)
        *s = (starts){s->n + 1, epoch};
    bpt_json_doc_free(doc);
}

/* Of a long run there are many lines, and few that are looked at. */
static bool may_be_start(const char *line, size_t length) {
    static const char word[] = "\"start\"";
    return memmem(line, length, word, sizeof word - 1) != NULL;
}

static bpt_status count_starts(const char *run, starts *s) {
    char *path, *text = NULL;
    size_t size = 0;
    *s = (starts){0};
    BPT_TRY(bpt_strf(&path, "%s/metrics.jsonl", run));
    const bpt_status status = bpt_file_read(path, (size_t)4 << 30, &text, &size);
    bpt_free(path);
    if (status != BPT_OK) return status == BPT_ENOMEM ? status : BPT_OK;
    for (const char *line = text; line < text + size;) {
        const size_t length = strcspn(line, "\n");
        if (may_be_start(line, length)) take_line(s, line, length);
        line += length + 1;
    }
    bpt_free(text);
    return BPT_OK;
}

static bpt_status refuse(bpt_status status) {
    bpt_hint(
        "train it again, from its beginning to its end without a stop, to have a run that can be "
        "replayed");
    return status;
}

bpt_status bpt_replay_check_start(const char *run, const char *resume) {
    starts s;
    /* With auto there may have been nothing to go on from: its metrics tell. */
    if (resume && strcmp(resume, "auto") != 0)
        return refuse(bpt_fail(BPT_EUSAGE,
                               "%s cannot be replayed: it went on from %s, and its logs hold only "
                               "what came after",
                               run, resume));
    BPT_TRY(count_starts(run, &s));
    if (s.n <= 1 && s.epoch <= 0) return BPT_OK;
    return refuse(
        bpt_fail(BPT_EUSAGE,
                 "%s cannot be replayed: it was resumed, the last time at epoch %.2f, and "
                 "its logs do not say how the part before was left",
                 run, s.epoch));
}
