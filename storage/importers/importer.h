/** @file storage/importers/importer.h
 * What turns foreign images into records: one interface, one file per importer.
 *
 * An importer is a table of functions; adding one means a file in storage/importers/ and a line in
 * importer.c. It is pulled in two steps, so that many threads can share the work: next() names one
 * item after another, in the order of the records, and does no more than what must be done in that
 * order; load() fetches an item's image, and may run for many items at once. What is made of the
 * image (decoded, resized) is no importer's concern: storage/importers/import_stream.h does it for
 * all.
 *
 * Threads: open() and close() while one thread uses the import; next() by one thread at a time, not
 * always the same; load() and describe() by any number of threads, also during next(). */
#ifndef BPT_STORAGE_IMPORTER_H
#define BPT_STORAGE_IMPORTER_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

enum {
    BPT_IMPORT_MAX_CLASSES = 65536,     /* as in a dataset */
    BPT_IMPORT_MAX_ENCODED = 256 << 20, /* bytes of a file in JPEG or PNG */
    BPT_IMPORT_NAME_SIZE = 512,         /* of an item's name in messages; longer ones are cut */
};

/** What the user names, and what is known before. All borrowed while the import is open. */
typedef struct bpt_import_source {
    char *const *files; /* shape [n_files] */
    size_t n_files;
    const char *const *class_names; /* classes that must be those, shape [n_class_names]; NULL: the
                                       importer finds them out */
    uint32_t n_class_names;
    bool skips_bad;    /* what is wrong with an item is said when it is loaded, not by open() */
    const char *root;  /* folder of the paths in a list; NULL: that of the list */
    bool rgb;          /* planes of Caffe's are red, green, blue and not blue, green, red */
    uint64_t count;    /* images to make, for importers that draw them */
    uint64_t seed;     /* likewise */
    const char *split; /* likewise: two splits of one seed differ */
} bpt_import_source;

/** What will come. All borrowed from the open import. */
typedef struct bpt_import_plan {
    uint32_t C, H, W;               /* of every image; all 0 where that is not known */
    uint64_t count;                 /* items, good and bad */
    uint32_t n_classes;             /* every label is below */
    const char *const *class_names; /* shape [n_classes]; NULL where the source names none */
} bpt_import_plan;

/** Memory that grows as needed and is used again. Zero-initialise; release .bytes. */
typedef struct bpt_import_buffer {
    uint8_t *bytes;
    size_t capacity;
} bpt_import_buffer;

/** What next() says and load() needs. Zero-initialise; used again for later items. */
typedef struct bpt_import_item {
    uint64_t number;         /* in the order of the records, from 0 */
    const void *bytes;       /* where it lies in memory that the import has mapped */
    size_t size;             /* bytes of it */
    bpt_import_buffer owned; /* what had to be read in order; the item's owner releases it */
} bpt_import_item;

/** An image as it comes. */
typedef struct bpt_import_image {
    uint32_t label;
    bool encoded;         /* a file in JPEG or PNG, else pixels */
    const uint8_t *bytes; /* shape [size]; pixels: shape [C,H,W] */
    size_t size;
    uint32_t C, H, W; /* of pixels */
} bpt_import_image;

typedef struct bpt_importer {
    const char *name;
    bool draws; /* makes its images from a seed instead of reading files */

    /** Opens the sources and checks what can be checked before the first record.
     * @param[out] import caller owns, close(); set on success only
     * @return BPT_OK, BPT_ENOENT, BPT_EDATA (file, what is wrong, hint), BPT_EUSAGE, BPT_EIO,
     *         BPT_ENOMEM */
    bpt_status (*open)(const bpt_import_source *source, bpt_import_plan *plan, void **import);

    /** Names the next item; called at most plan.count times.
     * @param[in,out] item all fields but .owned are set
     * @return BPT_OK; BPT_EDATA, BPT_EIO, BPT_ENOMEM: the source gives no more */
    bpt_status (*next)(void *import, bpt_import_item *item);

    /** Fetches an item's image. An error says which item.
     * @param buffer  of the calling thread; may hold the image
     * @param[out] image .bytes are valid until @p buffer or @p item is used again
     * @return BPT_OK; BPT_EDATA, BPT_ENOENT, BPT_ECORRUPT: this item is bad, others may be good;
     *         BPT_EIO, BPT_ENOMEM */
    bpt_status (*load)(void *import, const bpt_import_item *item, bpt_import_buffer *buffer,
                       bpt_import_image *image);

    /** NULL, or: asked on the same thread when an item's image has been made of what load() gave,
     * well or not. For a source that is read while it is used, as a mapped file is.
     * @return BPT_OK; anything else: the source cannot be read, whatever became of the item */
    bpt_status (*check)(void *import);

    /** NULL, or: tells the items apart from others, by what is known of them before the first is
     * fetched: their names, labels and order. (The files that the user names are compared by who
     * asks, by their sizes and times.)
     * @return a number that other items hardly have */
    uint64_t (*identify)(void *import);

    /** NULL, or: says when the file of an item was changed last, where each item is a file.
     * @return whether that is known */
    bool (*changed)(void *import, const bpt_import_item *item, struct timespec *when);

    /** Writes an item's name as messages give it: "flowers/rose/17.jpg", "shard-3.tar: rose-17".
     * @param[out] name shape [size], a text */
    void (*describe)(void *import, const bpt_import_item *item, char *name, size_t size);

    void (*close)(void *import);
} bpt_importer;

/** @return the importer of that name, NULL if there is none */
const bpt_importer *bpt_importer_find(const char *name);

/** @return importer number @p i in the order of the registry, NULL past the end */
const bpt_importer *bpt_importer_at(size_t i);

#endif
