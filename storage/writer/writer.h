/** @file storage/writer/writer.h
 * Writes splits of a dataset, or adds records to one: they appear whole or not at all.
 *
 * Records go to a staging database inside the dataset's environment, chunk by chunk, each chunk a
 * transaction, stored by a thread while the next is filled; bpt_writer_commit() makes them visible
 * (and drops the split that they replace) in one more. Who is killed before, or fails, leaves a
 * staging database that no reader looks at. bpt_writer_resume() goes on with it where the writer
 * had terms; any other next writer drops it. One writer at a time may work on a dataset; readers
 * are not disturbed.
 *
 * Memory: two chunks of 16 MiB, or of one larger record, and what LMDB takes for a transaction.
 *
 * Threads: a writer belongs to one thread, and not to what it forks. */
#ifndef BPT_STORAGE_WRITER_H
#define BPT_STORAGE_WRITER_H

#include "base/status.h"
#include "storage/dataset/record.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

typedef struct bpt_writer bpt_writer;

/** What is written. Texts and arrays are borrowed during bpt_writer_open() only. */
typedef struct bpt_writer_options {
    const char *split;  /* 1 to 64 letters, digits, '.', '_', '-', the first a letter or digit */
    const char *naming; /* the option that says its name, for hints; NULL: "split" */
    bool replace;       /* a split of this name is replaced, not refused */
    bool append;        /* a split of this name gets the records added; not with .replace */
    bool encoded;       /* images are JPEG files; H and W do not count */
    uint32_t C, H, W;   /* each >= 1; C*H*W at most 2^28; encoded: C is 1 or 3 */
    uint32_t
        n_classes; /* 1 to 65,536; may be less than the dataset has where class_names is NULL */
    const char *const *class_names; /* shape [n_classes], distinct; NULL: those of the dataset, or
                                       else "0", "1", ... */
    const char *importer;
    const char *const *sources; /* shape [n_sources] */
    size_t n_sources;
    uint64_t seed;
    /* Lines, at most 2^14 bytes each, that say what is made and of which source: only who has the
     * same ones may go on with it. Both NULL: nobody may. */
    const char *terms, *origin;
    uint64_t reading_ns; /* bpt_clock_ns() when the source began to be read; 0: now. Not looked at
                            by bpt_writer_resume() */
} bpt_writer_options;

/** Whether a dataset is there or may become one, before work is done for it.
 * @return BPT_OK, BPT_EEXIST (a folder of other things), BPT_EIO: what bpt_writer_open() would say
 */
bpt_status bpt_writer_check_place(const char *path);

/** Begins a split, creating the dataset if there is none. A dataset whose only split is being
 * replaced takes the new shape and classes; otherwise they must agree.
 * @param path directory; its parent folders are created too
 * @param[out] out caller owns; ends with bpt_writer_commit() and bpt_writer_close()
 * @return BPT_OK, BPT_EEXIST (the split exists), BPT_ENOENT (no split to append to), BPT_EUSAGE
 * (bad name or shape), BPT_EDATA (shape or classes differ from the dataset's, or a newer format),
 *         BPT_ECORRUPT, BPT_EIO (also: somebody else is writing), BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_writer_open(const char *path, const bpt_writer_options *options, bpt_writer **out);

/** Goes on with a split where another writer was stopped: behind its last whole chunk. What is
 * there is read and checked.
 * @param options as bpt_writer_open() had them, with .terms and .origin; C, H and W are not looked
 * at
 * @param[out] out as there; NULL where there is nothing to go on with: then the dataset is as it
 * was
 * @return as bpt_writer_open(); BPT_EUSAGE or BPT_EDATA where .terms or .origin differ,
 * BPT_ECORRUPT where what is there is damaged: it stays there after any error */
bpt_status bpt_writer_resume(const char *path, const bpt_writer_options *options, bpt_writer **out);

/** @return how many items of the source are done with: records and notes */
uint64_t bpt_writer_position(const bpt_writer *writer);

/** Waits for what is being stored, and does not tell whether that failed. @return how many records
 * another writer could go on behind, should this one be closed now */
uint64_t bpt_writer_kept(bpt_writer *writer);

/** @return when the source of these records began to be read for their first writer, by the clock
 * of the file system */
struct timespec bpt_writer_begun(const bpt_writer *writer);

/** Says that nobody will go on with these records: bpt_writer_close() drops them. Those that
 * bpt_writer_resume() has found stay all the same. */
void bpt_writer_discard(bpt_writer *writer);

/** The shape of the records. */
void bpt_writer_shape(const bpt_writer *writer, uint32_t *C, uint32_t *H, uint32_t *W);

/** Notes that the next item of the source is no record. Notes are kept with the records until the
 * commit, so that bpt_writer_resume() knows them.
 * @param line why, copied
 * @return as bpt_writer_append() */
bpt_status bpt_writer_note(bpt_writer *writer, const char *line);

/** Reads the notes that are there after bpt_writer_resume(), in order.
 * @param take what it returns ends the reading unless it is BPT_OK
 * @return BPT_OK, BPT_ECORRUPT, BPT_EIO, or what @p take returned */
bpt_status bpt_writer_notes(bpt_writer *writer, bpt_status (*take)(void *arg, const char *line),
                            void *arg);

/** Adds the next record of a raw split.
 * @param pixels shape [C,H,W], copied
 * @param label  in [0, n_classes)
 * @return BPT_OK, BPT_EDATA (label out of range), BPT_EFULL (2^32-1 records), BPT_ENOSPC, BPT_EIO,
 *         BPT_ECORRUPT (the file was cut short meanwhile), BPT_ENOMEM; what storing failed with may
 *         be returned a chunk later. After an error only bpt_writer_close() is left */
bpt_status bpt_writer_append(bpt_writer *writer, const uint8_t *pixels, uint32_t label);

/** Adds the next record of an encoded split.
 * @param record copied; its sums are those of what the file decodes to, of all C channels
 * @param label  in [0, n_classes)
 * @return as bpt_writer_append() */
bpt_status bpt_writer_append_record(bpt_writer *writer, const bpt_record *record, uint32_t label);

/** Looks whether bpt_writer_next() would refuse what it is asked for: before the work of the split
 * under way. @return as there */
bpt_status bpt_writer_check_next(const bpt_writer *writer, const bpt_writer_options *options);

/** Ends the split under way, unseen, and begins another one: the commit shows them together.
 * @param options as those of the first but for .split; without .terms, as those
 * @return as bpt_writer_open(); BPT_EUSAGE also: a name is given twice. After an error only
 *         bpt_writer_close() is left */
bpt_status bpt_writer_next(bpt_writer *writer, const bpt_writer_options *options);

/** Makes the splits visible: on return they are on disk, whole.
 * @return BPT_OK, BPT_EDATA (no records), BPT_ENOSPC, BPT_EIO, BPT_ECORRUPT, BPT_ENOMEM */
bpt_status bpt_writer_commit(bpt_writer *writer);

/** Releases the writer. Without a commit before, readers find the dataset as it was. What was
 * stored stays for bpt_writer_resume() where there are terms and a whole chunk; else it is dropped,
 * and a directory that bpt_writer_open() created is removed again, with the parents that it made.
 * NULL is allowed. */
void bpt_writer_close(bpt_writer *writer);

#endif
