/** @file outer/comm/launch.h
 * What has started this process, by what it left in the environment: the only place that looks.
 *
 * Before MPI is started only the launcher knows rank and number of ranks; afterwards the two are
 * compared. Where MPI and launcher do not speak the same protocol, every process believes to be
 * alone: a split world. Each would train on all the data and write to the same folder.
 *
 * Threads: any, while nobody changes the environment. */
#ifndef BPT_OUTER_LAUNCH_H
#define BPT_OUTER_LAUNCH_H

#include "base/status.h"

#include <stdbool.h>
#include <stdint.h>

typedef struct bpt_launch {
    const char *launcher; /* "Open MPI's mpirun"; NULL: none is known */
    uint32_t rank;        /* 0 unless it is known */
    uint32_t size;        /* processes that were started together, 1 unless it is known */
    uint32_t on_host;     /* of these on this host, 1 unless it is known */
    bool connects;        /* it left what MPI finds the other processes by */
    bool is_mpirun;       /* Open MPI's, whose options can be named */
} bpt_launch;

/** @param get what looks a variable up, as getenv() does; NULL for one that is not set */
bpt_launch bpt_launch_read(const char *(*get)(const char *name));

/** @return what started this process */
bpt_launch bpt_launch_here(void);

/** @param world ranks of MPI's world
 * @return whether the launcher started several processes of which each is a world of its own */
bool bpt_launch_is_split(const bpt_launch *launch, uint32_t world);

/** Refuses a split world.
 * @param library name of the MPI library, for the text
 * @return BPT_OK, BPT_EUSAGE (with hint) */
bpt_status bpt_launch_check(const bpt_launch *launch, uint32_t world, const char *library);

#endif
