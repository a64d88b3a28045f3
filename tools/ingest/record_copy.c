#include "tools/ingest/record_copy.h"

#include "tools/interrupt.h"

static bpt_status copy_one(const bpt_record_choice *c, bpt_writer *writer, uint32_t i) {
    const uint8_t *pixels = NULL;
    bpt_record record;
    uint32_t label;
    const bool encoded = bpt_dataset_describe(c->dataset)->encoded;
    BPT_TRY(encoded ? bpt_dataset_get_record(c->dataset, c->split, i, &record, &label)
                    : bpt_dataset_get(c->dataset, c->split, i, &pixels, &label));
    if (c->labels) label = c->labels[label];
    return encoded ? bpt_writer_append_record(writer, &record, label)
                   : bpt_writer_append(writer, pixels, label);
}

bpt_status bpt_record_label(const bpt_dataset *dataset, const bpt_split *split, uint32_t i,
                            uint32_t *label) {
    const uint8_t *pixels;
    bpt_record record;
    return bpt_dataset_describe(dataset)->encoded
               ? bpt_dataset_get_record(dataset, split, i, &record, label)
               : bpt_dataset_get(dataset, split, i, &pixels, label);
}

bpt_status bpt_record_copy(const bpt_record_choice *c, bpt_writer *writer,
                           bpt_ingest_progress *progress, uint64_t *done, uint64_t total) {
    for (uint32_t i = 0; i < c->split->count; i++) {
        if (c->held_out && (c->held_out[i] != 0) != c->take_held_out) continue;
        BPT_TRY(copy_one(c, writer, i));
        BPT_TRY(bpt_interrupt_check(
            "the split under way is not stored",
            "what was in the dataset before is as it was; run the same command again"));
        bpt_ingest_progress_show(progress, ++*done, total);
    }
    return bpt_dataset_check(c->dataset);
}

bpt_status bpt_record_check_apart(const char *from, const char *to) {
    if (!bpt_dataset_is_same(from, to)) return BPT_OK;
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
