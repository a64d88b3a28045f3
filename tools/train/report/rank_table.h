/** @file tools/train/report/rank_table.h
 * What every rank brought a job, against what it does by itself: a table at the end.
 *
 * Threads: pure functions but for bpt_rank_table_say(), which writes to the log. */
#ifndef BPT_TOOLS_RANK_TABLE_H
#define BPT_TOOLS_RANK_TABLE_H

#include "outer/exchange/exchange.h"
#include "tools/train/job/counters.h"
#include "tools/train/job/job.h"

/** What a rank tells about itself. */
typedef struct bpt_rank_summary {
    bpt_counters count;
    double seconds; /* that the counts are of: in training, evaluations left out */
    double solo;    /* images a second by itself as measured before training; 0: not */
    uint64_t threads, loader_threads, prefetch;
    char policy[24];
    char precision[8];
    char kernels[80]; /* of its processor */
    char device[128]; /* its name; "": the cores */
    bool tuned, cuts;
    bpt_scatter_stats data; /* of this part of the run; zero where every rank opens the */
    uint64_t data_found;    /* dataset. Samples that were in scratch before */
    uint64_t staleness[BPT_STALENESS_BUCKETS], spread[BPT_STALENESS_BUCKETS];
} bpt_rank_summary;

/** @return images a second while computing; 0 where the rank did not */
double bpt_rank_images_per_s(const bpt_counters *c);

/** @return images a second in the job over those by itself; 0 where those were not measured */
double bpt_rank_efficiency(const bpt_rank_summary *r);

/** @return images a second of all workers in the job over the sum of what they do by themselves; 0
 * where that was not measured
 * @param ranks of the workers, shape [n] */
double bpt_job_efficiency(const bpt_rank_summary *ranks, uint32_t n);

/** @return bpt_bottleneck_name() of what limited a rank; "" where it made no step, as servers do
 * not */
const char *bpt_rank_limit(const bpt_rank_summary *r);

/** Says what limited a training on one rank, with shares of its time without evaluations; nothing
 * where no step was made. */
void bpt_rank_limit_say(const bpt_rank_summary *r);

/** Prints the table, and warns of ranks without which the job would be faster, with the option of
 * mpirun that leaves them out. At least 2 ranks. */
void bpt_rank_table_say(const bpt_job *job, const bpt_rank_summary *ranks);

#endif
