/** @file storage/stage/stage.h
 * A copy of a dataset on a disk of this machine: made by one process, used by all that find it
 * whole.
 *
 * The copy is a dataset itself, in the folder DIR/NAME-IDENTITY: NAME is the last part of the
 * dataset's path, IDENTITY tells what was copied (stage_source.h). A dataset that has changed since
 * has another one, is copied anew, and its earlier copies in DIR are removed unless somebody uses
 * them. docs/formats.md has the files.
 *
 * Each block is copied with its checksum. Who is interrupted leaves what is right of it to the next
 * one. A whole copy is sealed with number, size and times of its file: as long as these are the
 * same it is used as it is; else it is read again, and copied anew from the first block on that is
 * not right. What is used has a lock on it (flock): one process makes a copy, others wait for it or
 * use it.
 *
 * Caveats: as dataset.h; a copy is opened with bpt_dataset_open() once it is whole.
 * Threads: one at a time. */
#ifndef BPT_STORAGE_STAGE_H
#define BPT_STORAGE_STAGE_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt_stage bpt_stage;

/** How far a copy is. */
typedef struct bpt_stage_state {
    uint64_t identity; /* of what is copied; 0: it has not been looked at */
    uint64_t bytes;    /* of the dataset's file */
    uint64_t done;     /* of these, that are right by now */
    uint64_t copied;   /* of these, copied by this process */
    bool waits;        /* for another process, which is at it */
    bool whole;        /* bpt_stage_path() is a dataset, and stays one until bpt_stage_close() */
} bpt_stage_state;

/** Makes DIR where it is missing. Copies nothing yet.
 * @param dataset its folder
 * @param[out] out caller owns, bpt_stage_close()
 * @return BPT_OK, BPT_ENOENT (no dataset there), BPT_EIO, BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_stage_open(const char *dataset, const char *dir, bpt_stage **out);
/** NULL is allowed. */
void bpt_stage_close(bpt_stage *stage);

/** @return what is the same for processes of one machine that have the same dataset and DIR before
 * them, by whatever paths */
uint64_t bpt_stage_place(const bpt_stage *stage);

/** Looks, waits, checks or copies until the copy is whole, for about so long. Where another process
 * is at it, sleeps meanwhile.
 * @return BPT_OK, BPT_ENOENT, BPT_EDATA, BPT_ECORRUPT (of the dataset), BPT_ENOSPC (says how much
 *         is wanted, and free), BPT_EIO (also: the dataset changes meanwhile, or others use a copy
 *         that is not right), BPT_ENOMEM */
bpt_status bpt_stage_advance(bpt_stage *stage, double seconds);

/** Takes part in a copy that another process has found or made whole.
 * @param identity as it says
 * @return BPT_OK, BPT_EIO (it is not there), BPT_ENOMEM */
bpt_status bpt_stage_join(bpt_stage *stage, uint64_t identity);

bpt_stage_state bpt_stage_look(const bpt_stage *stage);

/** @return folder of the copy: borrowed; NULL before the dataset was looked at */
const char *bpt_stage_path(const bpt_stage *stage);

/** Breaks the seal of a copy in which damage was found: who comes next reads it anew. */
void bpt_stage_doubt(const bpt_stage *stage);

/** Looks how much is left to write, and changes nothing.
 * @param dataset,dir as above; DIR need not be there
 * @param[out] bytes that the disk must have room for, with those of its other files; 0: the copy is
 *             whole
 * @return BPT_OK, as bpt_stage_open(), BPT_EDATA, BPT_ECORRUPT (of the dataset) */
bpt_status bpt_stage_need(const char *dataset, const char *dir, uint64_t *bytes);

#endif
