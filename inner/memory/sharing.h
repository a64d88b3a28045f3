/** @file inner/memory/sharing.h
 * Which buffers of a graph of tasks may lie at the same place, and where they then lie.
 *
 * Two may if in every graph each task that touches the one has ended, by the edges alone, before
 * any task that touches the other begins: then no order in which the tasks can run, on any number
 * of workers, has both in use. That one comes before the other in the order of numbers is not
 * enough, since the scheduler does not keep it.
 *
 * Nothing here knows networks: lifetimes in, offsets out.
 *
 * Threads: one at a time. */
#ifndef BPT_INNER_SHARING_H
#define BPT_INNER_SHARING_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A task, as far as memory is concerned. */
typedef struct bpt_user {
    const uint32_t *after; /* tasks that have ended when it begins, all before it; [n_after] */
    size_t n_after;
    const uint32_t *buffers; /* what it reads or writes, each once; shape [n_buffers] */
    size_t n_buffers;
} bpt_user;

typedef struct bpt_sharing bpt_sharing;

/** All buffers may share, until graphs are noted.
 * @param[out] sharing caller owns, bpt_sharing_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_sharing_create(size_t n_buffers, bpt_sharing **sharing);
void bpt_sharing_free(bpt_sharing *sharing);

/** Keeps apart what the tasks of a graph may use at the same time.
 * @param users shape [n_users]
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_sharing_note(bpt_sharing *sharing, const bpt_user *users, size_t n_users);

/** @return whether two buffers may lie at the same place */
bool bpt_sharing_allows(const bpt_sharing *sharing, size_t a, size_t b);

/** Places buffers, the largest first, each in the smallest gap that those before leave it.
 * @param bytes   of each buffer; one of 0 bytes is put at 0; shape [n_buffers]
 * @param[out] offsets shape [n_buffers]
 * @param[out] total   end of the last; SIZE_MAX where no size_t can tell
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_sharing_place(const bpt_sharing *sharing, const size_t *bytes, size_t *offsets,
                             size_t *total);

#endif
