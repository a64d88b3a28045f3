/** @file storage/writer/writer_private.h
 * The inside of a writer, for writer.c and writer_*.c.
 *
 * Threads: as writer.h; one of the writer's own stores a chunk while the next is filled
 * (writer_storing.c). It writes .stored and .n_stored, and reads .storing and what stays as it is
 * until bpt__writer_rest(): .path, .env, .staging, .journal, .chunk_bytes, .page_bytes. */
#ifndef BPT_STORAGE_WRITER_PRIVATE_H
#define BPT_STORAGE_WRITER_PRIVATE_H

#include "storage/dataset/catalog.h"
#include "storage/dataset/statistics.h"
#include "storage/writer/draft.h"
#include "storage/writer/journal.h"
#include "storage/writer/writer.h"

#include <lmdb.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A split to be: what it is described by once it is whole. */
typedef struct bpt__new_split {
    bpt__draft draft;
    bpt__statistics statistics;
    double *mean, *std; /* shape [C], of the whole */
} bpt__new_split;

/** What a transaction stores: whole values, and notes up to the last record in them. */
typedef struct bpt__chunk {
    uint8_t *bytes;  /* values, one after another; the value under way is the last */
    size_t capacity; /* bytes */
    size_t *ends;    /* offsets behind the whole values, shape [chunk_values] */
    size_t n;        /* whole values */
    uint32_t first;  /* number of the first one */
    bpt__notes notes;
} bpt__chunk;

struct bpt_writer {
    char *path;
    int lock;      /* open file that holds the writer lock, -1 for none */
    size_t n_made; /* directories: remove them if nothing comes of it; bpt_dir_take_back() */
    bool begun;    /* its file is new, or what was in it is dropped: likewise */
    bool committed;
    MDB_env *env;
    bpt__catalog *catalog; /* as it was before */
    MDB_dbi staging, journal;
    bool mapped;    /* .env can be used: its map could be made larger whenever it had to be */
    bool staged;    /* the staging database exists, and so does the journal if .resumable */
    bool resumable; /* there are terms */
    bool found;     /* by bpt_writer_resume(): must outlive any error */
    bool discarded; /* nobody shall go on with it */
    bool ended;     /* what was found has its last value, which is not full */

    bpt__new_split *whole; /* that wait for the commit, shape [n_whole] */
    size_t n_whole, room_whole;
    bpt__new_split split; /* under way */
    uint64_t database_id;
    uint64_t n_notes; /* of all */

    size_t record_bytes;
    size_t page_bytes;
    size_t chunk_bytes, chunk_values; /* of a chunk, at most; but one value may be larger */
    bpt__chunk filling, storing;      /* they take turns */
    uint32_t n_open;                  /* records in the value under way */

    bool is_storing; /* .storer has been started */
    pthread_t storer;
    bpt_error stored;  /* what has become of the last chunk */
    uint32_t n_stored; /* values in transactions that were committed */
};

/** The body of a write transaction, run again where the map was too small.
 * @param[out] code LMDB's where LMDB is what failed */
typedef bpt_status (*bpt__writer_body)(bpt_writer *w, MDB_txn *txn, int *code);

/** Runs a body in a transaction.
 * @return BPT_OK, BPT_ENOSPC, BPT_EIO, BPT_ENOMEM, BPT_ECORRUPT, or what the body returns */
bpt_status bpt__writer_transact(bpt_writer *w, bpt__writer_body body);

/** Bodies: drop what killed writers left; make the staging database; drop all that this writer
 * made; store the chunk .storing; make the splits visible. */
bpt_status bpt__writer_drop_leftovers(bpt_writer *w, MDB_txn *txn, int *code);
bpt_status bpt__writer_begin_staging(bpt_writer *w, MDB_txn *txn, int *code);
bpt_status bpt__writer_drop_staging(bpt_writer *w, MDB_txn *txn, int *code);
bpt_status bpt__writer_store_chunk(bpt_writer *w, MDB_txn *txn, int *code);
bpt_status bpt__writer_switch_over(bpt_writer *w, MDB_txn *txn, int *code);

/** Before anything is put into the chunk to fill: sees to it that it has memory.
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__writer_prepare_chunk(bpt_writer *w);

/** Lets a thread store the chunk that was filled, once the one before is stored. No value may be
 * under way. The next chunk to fill has no memory before bpt__writer_prepare_chunk().
 * @return how storing the chunk before ended: as bpt__writer_transact() */
bpt_status bpt__writer_hand_over(bpt_writer *w);

/** Waits until nothing is being stored: before any other use of the environment. */
void bpt__writer_rest(bpt_writer *w);

/** The same. @return how storing the last chunk ended, however often it is asked */
bpt_status bpt__writer_wait(bpt_writer *w);

/** Takes the lock and reads what is there. */
bpt_status bpt__writer_open_dataset(bpt_writer *w, const char *path);

/** Drafts the split under way and lays out its values. */
bpt_status bpt__writer_plan(bpt_writer *w, const bpt_writer_options *o);

/** From here on a transaction may reach the disk late. */
void bpt__writer_relax(bpt_writer *w);

/** Stores the last records of the split under way, and describes it.
 * @return BPT_OK, BPT_EDATA (no records), as bpt__writer_transact() */
bpt_status bpt__writer_complete(bpt_writer *w);

/** Releases what planning has made. */
void bpt__writer_unplan(bpt_writer *w);
void bpt__new_split_free(bpt__new_split *split);

/** @param with_open the split under way is one of them
 * @return the splits beside the next one */
bpt__draft_company bpt__writer_company(const bpt_writer *w, bool with_open);

/** @return records of this writer's, and of the one that it goes on for */
uint64_t bpt__writer_count(const bpt_writer *w);

/** Counts an encoded record in. */
void bpt__writer_count_record(bpt_writer *w, const bpt_record *record, uint32_t label);

#endif
