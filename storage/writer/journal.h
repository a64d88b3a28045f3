/** @file storage/writer/journal.h
 * What a writer notes beside the records of a split to be, so that another one can go on where it
 * was stopped: the database `journal`, written in the transactions that store the records. For this
 * folder only.
 *
 * It says which database they are in and what shape they have, and holds what was noted of items of
 * the source that are no records. docs/formats.md describes it.
 *
 * Threads: a journal, and notes, belong to one thread at a time. */
#ifndef BPT_STORAGE_JOURNAL_H
#define BPT_STORAGE_JOURNAL_H

#include "base/status.h"

#include <lmdb.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BPT__JOURNAL "journal"

enum { BPT__DATABASE_NAME = 96 }; /* bytes of the longest name of a database, and its end */

/** What is being written. */
typedef struct bpt__journal_head {
    char database[BPT__DATABASE_NAME]; /* where the records are */
    uint32_t C, H, W, pack;
} bpt__journal_head;

/** Creates the journal. @return LMDB's code */
int bpt__journal_create(MDB_txn *txn, const bpt__journal_head *head, MDB_dbi *journal);

/** Looks for a journal.
 * @param[out] found whether there is one whose head makes sense; then @p head and @p journal are
 *             set
 * @return LMDB's code */
int bpt__journal_find(MDB_txn *txn, bpt__journal_head *head, MDB_dbi *journal, bool *found);

/** Notes that are not stored yet. Zero-initialise; release with bpt__notes_free(). */
typedef struct bpt__notes {
    char *text; /* the notes, each ended by a 0 byte */
    size_t n_text, text_capacity;
    uint64_t *items; /* of the source, what they are about; shape [n] */
    size_t n, items_capacity;
} bpt__notes;

void bpt__notes_free(bpt__notes *notes);

/** @param item greater than those before
 * @param line copied @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__notes_add(bpt__notes *notes, uint64_t item, const char *line);

/** Puts all of them into the journal. @return LMDB's code */
int bpt__notes_store(const bpt__notes *notes, MDB_txn *txn, MDB_dbi journal);

/** Forgets those that are stored. */
void bpt__notes_clear(bpt__notes *notes);

/** Reads the notes of a journal in order.
 * @param path of the dataset, for messages
 * @param take is given one; NULL: they are only counted. What it returns ends the reading unless it
 *             is BPT_OK
 * @param[out] n how many there are
 * @return BPT_OK, BPT_ECORRUPT, BPT_EIO, or what @p take returned */
bpt_status bpt__notes_read(MDB_txn *txn, MDB_dbi journal, const char *path,
                           bpt_status (*take)(void *arg, const char *line), void *arg, uint64_t *n);

#endif
