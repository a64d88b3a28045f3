/** @file tools/ingest/ingest_options.h
 * The options of the commands of bpt-ingest that import, and what they mean.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_INGEST_OPTIONS_H
#define BPT_TOOLS_INGEST_OPTIONS_H

#include "base/options.h"
#include "storage/importers/import_picture.h"

#include <stdbool.h>
#include <stdint.h>

/** A command has rows for some of the fields only; the others are 0. */
typedef struct bpt_ingest_options {
    const char *out, *split;
    bool force, append, resume;
    int64_t classes; /* 0: not given */
    const char *class_names;
    int64_t count, seed;
    int64_t resize[2], crop[2]; /* H, W; 0: not given */
    int64_t short_side;
    int channels;      /* index into "as-is|1|3" */
    int channel_order; /* index into "bgr|rgb" */
    const char *root;
    int64_t threads; /* 0: as many as there are cores */
    const char *skip_bad;
    bool encoded;
    int64_t quality; /* 0: not given */
} bpt_ingest_options;

enum { BPT_INGEST_QUALITY = 95 }; /* of JPEG files, unless told */

extern const bpt_command bpt_ingest_idx_usage, bpt_ingest_cifar_usage, bpt_ingest_glyphs_usage,
    bpt_ingest_folder_usage, bpt_ingest_list_usage, bpt_ingest_caffe_usage,
    bpt_ingest_webdataset_usage;

/**  BPT_OK, BPT_EUSAGE (a split cannot be replaced and appended to) */
bpt_status bpt_ingest_check_mode(const bpt_ingest_options *o);

/** What pictures are to become. @return BPT_OK, BPT_EUSAGE (options that do not go together) */
bpt_status bpt_ingest_fit(const bpt_ingest_options *o, bpt_picture_fit *fit);

/** @param[out] quality of the files that images become; 0: they become pixels
 * @return BPT_OK, BPT_EUSAGE (--quality without --encoded) */
bpt_status bpt_ingest_quality(const bpt_ingest_options *o, int *quality);

/** @return the number of threads that decode */
unsigned bpt_ingest_threads(const bpt_ingest_options *o);

#endif
