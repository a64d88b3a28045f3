/** @file scheduler/cores.h
 * The cores that this process may use: how many, and putting a thread on one of them.
 *
 * Threads: count and create by any thread; binding through one object by many at once. */
#ifndef BPT_SCHEDULER_CORES_H
#define BPT_SCHEDULER_CORES_H

#include "base/status.h"

typedef struct bpt__cores bpt__cores;

/** Looks at the machine once; takes milliseconds.
 * @param[out] cores caller owns, bpt__cores_free()
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND (hwloc cannot tell) */
bpt_status bpt__cores_create(bpt__cores **cores);
void bpt__cores_free(bpt__cores *cores);

/** @return allowed cores, at least 1 */
unsigned bpt__cores_count(const bpt__cores *cores);

/** Puts the calling thread on allowed core @p i in [0, count).
 * @return BPT_OK, BPT_ENOMEM, BPT_EBACKEND */
bpt_status bpt__cores_bind(const bpt__cores *cores, unsigned i);

/** Lets the calling thread, bound before or not, run where it could when @p cores was created by
 * it. */
void bpt__cores_unbind(const bpt__cores *cores);

#endif
