/** @file storage/dataset/dataset.h
 * Reads a dataset: images with class labels, in named splits ("train", "test"). Images are either
 * raw pixels of one shape, or encoded: JPEG files, each of a size of its own.
 *
 * A dataset is a directory; docs/formats.md has its layout. bpt_dataset_open() pins the state of
 * that moment: a writer may add, extend or replace splits meanwhile, the reader sees the old ones
 * to its end. Records are handed out as pointers into the memory map, nothing is copied. Each
 * stored value carries a checksum, verified when the process first reads from it.
 *
 * Caveats: open a dataset after fork(), once per process (LMDB's locks belong to the process), and
 * not while the same process writes it. Read-only media and network file systems work, and so do
 * links to data.mdb, containers whose processes have the same numbers, and full tables of readers;
 * there a reader holds no lock, so nobody may replace a split while it is being read: what is not
 * there any more is BPT_EIO.
 *
 * Threads: open and close while one thread runs; every other function from any thread. */
#ifndef BPT_STORAGE_DATASET_H
#define BPT_STORAGE_DATASET_H

#include "base/status.h"
#include "storage/dataset/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Format versions that this program reads and writes: 1 is what raw images are written in, 2 what
 * encoded ones are, 3 what either are where images were appended to a split. */
enum {
    BPT_DATASET_FORMAT_RAW = 1,
    BPT_DATASET_FORMAT_ENCODED = 2,
    BPT_DATASET_FORMAT_APPENDED = 3,
    BPT_DATASET_FORMAT = 3
};

typedef struct bpt_dataset bpt_dataset;

/** How large the images of an encoded split are. */
typedef struct bpt_extent {
    uint32_t least_H, most_H, least_W, most_W; /* of any image */
    uint64_t pixels;                           /* of a channel, of all images */
    uint64_t most_pixels;                      /* likewise, of the largest image */
    uint64_t bytes;                            /* of all files */
} bpt_extent;

/** What one ingestion has added to a split. Everything is borrowed from the dataset. */
typedef struct bpt_intake {
    uint32_t count;             /* records; those of the intakes follow one another in the split */
    const char *importer;       /* what made it: "idx", "folder", "merge" */
    const char *const *sources; /* file names without folders, shape [n_sources] */
    size_t n_sources;
    uint64_t seed; /* 0 where nothing was random */
} bpt_intake;

/** What the schema says about a split. Everything is borrowed from the dataset. */
typedef struct bpt_split {
    const char *name;
    uint32_t count;            /* records; index 0..count-1 */
    const uint64_t *per_class; /* records of each class, shape [n_classes] */
    const double *mean;        /* of pixels / 255, shape [C] */
    const double *std;         /* likewise; of the whole population; 0 where all are equal */
    const bpt_intake *intakes; /* in the order in which they were added, shape [n_intakes] */
    size_t n_intakes;          /* at least 1 */
    size_t number;             /* position in bpt_dataset_info.splits */
    bpt_extent extent;         /* all 0 unless the dataset is encoded */
} bpt_split;

/** What the schema says about the whole dataset. Everything is borrowed from the dataset. */
typedef struct bpt_dataset_info {
    const char *path;
    uint32_t format;
    uint32_t C, H, W;     /* encoded: H and W are those of bpt_dataset_bring_to(), at first 0 */
    bool encoded;         /* records are JPEG files */
    const char *encoding; /* "raw" or "jpeg" */
    uint32_t n_classes;
    const char *const *classes; /* names, shape [n_classes] */
    size_t n_splits;
    const bpt_split *splits; /* in the order of their names, shape [n_splits] */
} bpt_dataset_info;

/** Opens a dataset for reading. Checks the structure of the file first, so that damage is an error
 * and not a crash; the records themselves are checked when read.
 * @param[out] out caller owns, bpt_dataset_close()
 * @return BPT_OK, BPT_ENOENT (no dataset there), BPT_EDATA (newer format, or not a dataset),
 *         BPT_ECORRUPT, BPT_EIO, BPT_ENOMEM */
bpt_status bpt_dataset_open(const char *path, bpt_dataset **out);
void bpt_dataset_close(bpt_dataset *dataset);

/** @return whether both paths lead to one dataset, which a process opens only once: by its file,
 * that may be a link in another folder. False where either cannot be looked at */
bool bpt_dataset_is_same(const char *a, const char *b);

/** @return the schema: borrowed, valid until bpt_dataset_close() */
const bpt_dataset_info *bpt_dataset_describe(const bpt_dataset *dataset);

/** Copies the schema and what it says of all splits: for bpt_scratch_open() on another host. Its
 * checksum tells the dataset from others.
 * @param[out] description shape [*size]; caller owns, bpt_free()
 * @return BPT_OK, BPT_ENOMEM, BPT_EIO */
bpt_status bpt_dataset_export(const bpt_dataset *dataset, char **description, size_t *size);

/** Finds a split by name.
 * @param[out] split borrowed, valid until bpt_dataset_close()
 * @return BPT_OK, BPT_ENOENT (the hint lists the splits that exist) */
bpt_status bpt_dataset_find(const bpt_dataset *dataset, const char *name, const bpt_split **split);

/** Says at which size the images of an encoded dataset are wanted: from now on its description has
 * it, and loaders bring images to it. Not while loaders of it live.
 * @param H, W 1 to BPT_IMAGE_MAX_SIDE
 * @return BPT_OK, BPT_EUSAGE (out of range; or its images are raw, and of another size) */
bpt_status bpt_dataset_bring_to(bpt_dataset *dataset, uint32_t H, uint32_t W);

/** Gives one record of an encoded dataset: not decoded.
 * @param split, i, label as of bpt_dataset_get()
 * @param[out] record its data are borrowed from the memory map, valid until bpt_dataset_close()
 * @return BPT_OK, BPT_EUSAGE (no such record, or they are raw), BPT_ECORRUPT (names both) */
bpt_status bpt_dataset_get_record(const bpt_dataset *dataset, const bpt_split *split, uint32_t i,
                                  bpt_record *record, uint32_t *label);

/** Gives one record of a raw dataset.
 * @param split  of this dataset
 * @param i      in [0, split->count)
 * @param[out] pixels shape [C,H,W]; borrowed from the memory map, valid until bpt_dataset_close()
 * @param[out] label  in [0, n_classes)
 * @return BPT_OK, BPT_EUSAGE (no such record, it is encoded, or not in this scratch), BPT_ECORRUPT
 *         (names split and record) */
bpt_status bpt_dataset_get(const bpt_dataset *dataset, const bpt_split *split, uint32_t i,
                           const uint8_t **pixels, uint32_t *label);

/** Says how much memory the machine has. Where the records take more than half of it, what was read
 * counts as gone when it is to be read again.
 * @param memory_bytes without this call there is enough for all */
void bpt_dataset_set_memory(bpt_dataset *dataset, uint64_t memory_bytes);

/** Lets the system begin to read records, all at a time, before one after another is asked for.
 * What this process has read before is left out where it fits into memory. Waits for nothing; never
 * fails.
 * @param split   of this dataset
 * @param indices shape [n], each below split->count */
void bpt_dataset_expect(const bpt_dataset *dataset, const bpt_split *split, const uint32_t *indices,
                        uint32_t n);

/** Looks whether all that was handed out so far was really the dataset's: who has used pixels of
 * bpt_dataset_get() asks before anything comes of them. Cheap, but not for each record.
 * @return BPT_OK, BPT_ECORRUPT (the file was cut short, or could not be read, while it was in use;
 *         pixels may have been zeros) */
bpt_status bpt_dataset_check(const bpt_dataset *dataset);

/** Told now and then how far a verification has come. */
typedef void (*bpt_verify_progress)(void *arg, uint64_t n_records, uint64_t n_total);

/** Checks everything: page structure of the file, schema, checksum, place and labels of each
 * record, counts per class, means and standard deviations; encoded ones are decoded. Goes on after
 * a damaged value, so that the error counts them all.
 * @param progress may be NULL
 * @param[out] n_records how many records are sound; set on error too
 * @return what bpt_dataset_open() returns, or BPT_ECORRUPT (names the first damaged records) */
bpt_status bpt_dataset_verify(const char *path, bpt_verify_progress progress, void *arg,
                              uint64_t *n_records);

#endif
