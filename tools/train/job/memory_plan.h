/** @file tools/train/job/memory_plan.h
 * What training takes of a rank's memory, known before any of it is allocated.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_MEMORY_PLAN_H
#define BPT_TOOLS_MEMORY_PLAN_H

#include "inner/network/network.h"
#include "tools/train/job/job.h"

#include <stdio.h>

/** Bytes of a rank, by what they hold. What the programs' code, MPI and the pages of the dataset
 * take comes on top: some ten megabytes, whatever the model. */
typedef struct bpt_memory_plan {
    uint32_t batch;             /* samples of a step of this rank */
    bpt_network_memory network; /* that is trained; of one in parts, those that the rank has; of one
                                 * on a device what is the host's, if that is known yet */
    size_t evaluation;          /* of one in parts: the whole, which evaluates */
    size_t border;              /* batches of all ranks, where it hosts the tail of one in parts */
    size_t batches;             /* of the loaders, for training and evaluation */
    size_t order;    /* of the sampler and the partition: 4 bytes a training sample each */
    size_t delivery; /* of samples that rank 0 gives out, and lists of them; 0 where it does not */
    size_t vectors;  /* flat vectors of the weights that are read, merged and written */
    size_t exchange; /* of the outer layer: shards and what is sent */
    size_t trace;    /* of --trace; --dry-run, which prints the table, has none */
    size_t total;
} bpt_memory_plan;

/** @param job model, options, update, batch, parting and numbers of ranks and threads are known;
 * the network need not exist; without a dataset there are no samples to order, and with one but no
 * split to test on nothing is evaluated
 * @return as bpt_network_plan() */
bpt_status bpt_memory_plan_make(const bpt_job *job, bpt_memory_plan *plan);

/** Adds what a network on a device takes of the host, which is known when it is there. */
void bpt_memory_plan_add(bpt_memory_plan *plan, const bpt_network_memory *on_host);

/** @return bytes that the machine has for each rank of @p job on it */
size_t bpt_memory_plan_limit(const bpt_job *job);

/** @param plan of @p job, which exchanges weights
 * @return the largest part of the weights that this rank is to host for all: bpt_place_room() of
 * what the plan leaves; 0 of a worker beside servers */
double bpt_memory_plan_hosts(const bpt_job *job, const bpt_memory_plan *plan);

enum { BPT_MEMORY_REMEDY_SIZE = 80 };

/** Tells what helps where a plan does not fit: the largest --batch-size that does, found by
 * planning others, if there is one; for a server, to have more of them; where only the cores' part
 * beside a device is too much, to do without it. A batch that is cut by
 * speed is taken to be cut alike.
 * @param plan  of @p job, larger than @p limit
 * @param limit bytes for a rank
 * @param[out] remedy for people: "the largest that fits is --batch-size 64"
 * @return as bpt_network_plan() */
bpt_status bpt_memory_plan_remedy(const bpt_job *job, const bpt_memory_plan *plan, size_t limit,
                                  char remedy[BPT_MEMORY_REMEDY_SIZE]);

/** Refuses a plan that the machine has no memory for.
 * @return BPT_OK, BPT_EUSAGE (it has not: the hint says what helps), as bpt_network_plan() */
bpt_status bpt_memory_plan_check(const bpt_job *job);

/** Prints the table, of a server what it has of it. */
void bpt_memory_plan_print_server(const bpt_memory_plan *plan, FILE *out);
void bpt_memory_plan_print(const bpt_memory_plan *plan, FILE *out);

/** Prints what a network takes of the device that it is on. */
void bpt_memory_plan_print_device(const bpt_network_memory *memory, FILE *out);

#endif
