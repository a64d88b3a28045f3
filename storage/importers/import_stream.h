/** @file storage/importers/import_stream.h
 * The records of an import, made by many threads and delivered in order.
 *
 * Worker threads take items from the importer, a few at a time, fetch and decode and fit them
 * (storage/importers/import_picture.h), and the consumer gets them one by one in the order of the
 * items: the same records for any number of threads. So errors come in order too: the first that
 * the consumer sees is that of the first bad item. What is in flight is bounded: 48 MiB of finished
 * pixels, or three images a thread, whichever is more; and what decoding an image needs, a thread.
 *
 * Threads: a stream belongs to one thread; its workers are internal. The import belongs to the
 * stream until bpt_import_stream_close(). */
#ifndef BPT_STORAGE_IMPORT_STREAM_H
#define BPT_STORAGE_IMPORT_STREAM_H

#include "base/status.h"
#include "storage/importers/import_picture.h"
#include "storage/importers/importer.h"

#include <stdint.h>

enum { BPT_IMPORT_MAX_THREADS = 256 };

typedef struct bpt_import_stream bpt_import_stream;

typedef struct bpt_import_stream_options {
    bpt_picture_fit fit;
    uint32_t C;         /* of the dataset that is there: images must come to that; 0: no matter */
    unsigned n_threads; /* 1 to BPT_IMPORT_MAX_THREADS */
    uint64_t begin;     /* items that are done with: named, and passed over */
    struct timespec since; /* when those were taken; one whose file is newer is an error */
    uint32_t H, W;         /* of the images before those; 0 where there are none */
    int quality;           /* 1 to 100: records are JPEG files, encoded so where they have to be; 0:
                              they are pixels */
} bpt_import_stream_options;

/** What became of an item. Borrowed from the stream until its next call. */
typedef struct bpt_import_record {
    uint64_t number;
    const uint8_t *pixels; /* shape [C,H,W], the same for all records; NULL: the item is bad, or
                              it is a file */
    bpt_record file;       /* where .quality is set; its sums are of C channels */
    uint32_t C, H, W;      /* H and W of files: 0 */
    uint32_t label;
    const bpt_error *error; /* why it is bad; says which item; NULL for a good one */
} bpt_import_record;

/** Starts the workers.
 * @param importer, import, plan of an open import of which no item has been taken; borrowed
 * @param[out] out caller owns, bpt_import_stream_close()
 * @return BPT_OK, BPT_EUSAGE, BPT_ENOMEM, BPT_EIO (no thread can be started), BPT_EDATA (an item
 * that is done with has changed); what importer->next() returns for those that are passed over */
bpt_status bpt_import_stream_open(const bpt_importer *importer, void *import,
                                  const bpt_import_plan *plan,
                                  const bpt_import_stream_options *options,
                                  bpt_import_stream **out);

/** Waits for the next record; called at most plan.count times, less those that are passed over. A
 * grey image among colour ones becomes a colour one; a grey file stays as it is, since its decoder
 * can make three channels.
 * @return BPT_OK, also where the item is bad; after an error only bpt_import_stream_close() is
 *         left: BPT_EDATA (the source breaks off; or the item's size or colour is not that of the
 *         ones before: names the item), BPT_EIO, BPT_ENOMEM */
bpt_status bpt_import_stream_next(bpt_import_stream *stream, bpt_import_record *record);

/** Stops the workers, at the end or before, and waits for them. NULL is allowed. */
void bpt_import_stream_close(bpt_import_stream *stream);

#endif
