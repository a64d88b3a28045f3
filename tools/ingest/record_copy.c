#include "tools/ingest/record_copy.h"

#include "tools/interrupt.h"

#include <sys/stat.h>

#include <string.h>

bpt_status bpt_record_copy(const bpt_record_choice *c, bpt_writer *writer,
                           bpt_ingest_progress *progress, uint64_t *done, uint64_t total) {
    for (uint32_t i = 0; i < c->split->count; i++) {
        if (c->held_out && (c->held_out[i] != 0) != c->take_held_out) continue;
        const uint8_t *pixels;
        uint32_t label;
        BPT_TRY(bpt_dataset_get(c->dataset, c->split, i, &pixels, &label));
        BPT_TRY(bpt_writer_append(writer, pixels, c->labels ? c->labels[label] : label));
        BPT_TRY(bpt_interrupt_check(
            "the split under way is not stored",
            "what was in the dataset before is as it was; run the same command again"));
        bpt_ingest_progress_show(progress, (*done)++, total);
    }
    return BPT_OK;
}

bpt_status bpt_record_check_apart(const char *from, const char *to) {
    struct stat a, b;
    if (stat(from, &a) != 0 || stat(to, &b) != 0 || a.st_dev != b.st_dev || a.st_ino != b.st_ino)
        return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s is read, and cannot be written as well", to);
    bpt_hint("give --out another dataset");
    return status;
}

const char *bpt_record_base_name(const char *path) {
    const char *base = path;
    for (const char *p = path; *p; p++)
        if (*p == '/' && p[1] && p[1] != '/') base = p + 1;
    return base;
}
