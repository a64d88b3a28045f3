/** @file storage/writer.h
 * Writes one split of a dataset, which appears whole or not at all.
 *
 * Records go to a staging database inside the dataset's environment, chunk by chunk, each chunk a
 * transaction; bpt_writer_commit() makes the split visible (and drops the one it replaces) in one
 * more. Who is killed before leaves a staging database that no reader looks at and the next writer
 * drops. One writer at a time may work on a dataset; readers are not disturbed.
 *
 * Threads: a writer belongs to one thread. */
#ifndef BPT_STORAGE_WRITER_H
#define BPT_STORAGE_WRITER_H

#include "base/status.h"
#include "storage/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt_writer bpt_writer;

/** What is written. Texts and arrays are borrowed during bpt_writer_open() only. */
typedef struct bpt_writer_options {
    const char *split; /* 1 to 64 letters, digits, '.', '_', '-', the first a letter or digit */
    bool replace;      /* a split of this name is replaced, not refused */
    bool encoded;      /* images are JPEG files; H and W do not count */
    uint32_t C, H, W;  /* each >= 1; C*H*W at most 2^28; encoded: C is 1 or 3 */
    uint32_t
        n_classes; /* 1 to 65,536; may be less than the dataset has where class_names is NULL */
    const char *const *class_names; /* shape [n_classes], distinct; NULL: those of the dataset, or
                                       else "0", "1", ... */
    const char *importer;
    const char *const *sources; /* shape [n_sources] */
    size_t n_sources;
    uint64_t seed;
} bpt_writer_options;

/** Begins a split, creating the dataset if there is none. A dataset whose only split is being
 * replaced takes the new shape and classes; otherwise they must agree.
 * @param path directory; its parent folders are created too
 * @param[out] out caller owns; ends with bpt_writer_commit() and bpt_writer_close()
 * @return BPT_OK, BPT_EEXIST (the split exists), BPT_EUSAGE (bad name or shape),
 *         BPT_EDATA (shape or classes differ from the dataset's, or a newer format),
 *         BPT_ECORRUPT, BPT_EIO (also: somebody else is writing), BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_writer_open(const char *path, const bpt_writer_options *options, bpt_writer **out);

/** Adds the next record of a raw split.
 * @param pixels shape [C,H,W], copied
 * @param label  in [0, n_classes)
 * @return BPT_OK, BPT_EDATA (label out of range), BPT_EFULL (2^32-1 records), BPT_ENOSPC, BPT_EIO,
 *         BPT_ENOMEM; after an error only bpt_writer_close() is left */
bpt_status bpt_writer_append(bpt_writer *writer, const uint8_t *pixels, uint32_t label);

/** Adds the next record of an encoded split.
 * @param record copied; its sums are those of what the file decodes to, of all C channels
 * @param label  in [0, n_classes)
 * @return as bpt_writer_append() */
bpt_status bpt_writer_append_record(bpt_writer *writer, const bpt_record *record, uint32_t label);

/** Makes the split visible: on return it is on disk, whole.
 * @return BPT_OK, BPT_EDATA (no records), BPT_ENOSPC, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_writer_commit(bpt_writer *writer);

/** Releases the writer. Without a commit before, the dataset is as it was (a directory that
 * bpt_writer_open() created is removed again). NULL is allowed. */
void bpt_writer_close(bpt_writer *writer);

#endif
