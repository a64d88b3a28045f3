/** @file tools/plan/probe.h
 * Measures the machines of a job, one rank on each, for a plan: steps of the model, links, what
 * messages and copies of weights cost, and with a dataset what reading images does.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_PROBE_H
#define BPT_TOOLS_PROBE_H

#include "inner/models/model.h"
#include "inner/optimizers/optimizer.h"
#include "outer/comm/comm.h"
#include "storage/dataset/dataset.h"
#include "tools/plan/cluster.h"
#include "tools/precision.h"

/** What is measured; the same on all ranks. */
typedef struct bpt_probe_subject {
    const bpt_model *model;
    const bpt_dataset *dataset; /* NULL: nothing is read, and load_s_per_image stays 0 */
    const bpt_split *split;     /* of it, to learn from */
    int64_t batch;              /* samples of a step of one rank: steps of it and of a half, a
                                 * quarter and an eighth are measured, as far as there are as many
                                 * samples, and the model can learn from so few */
    bpt_precision precision;
    bpt_learning learning;
    const char *device; /* --device, for bpt_device_option_open() */
    unsigned threads;   /* --threads; 0: as bpt-train has by default */
    double seconds;     /* > 0: that measuring the steps of one size takes about */
} bpt_probe_subject;

/** Measures; collective. Ranks measure the same at the same time, so that those which share a
 * machine get their parts of it.
 * @param[out] cluster a node a rank, named by its host ("node1", on whose others "node1.1", ...);
 *                     .latency_s too; the model's texts stay as they are. bpt_probe_free(), also on
 *                     error
 * @return BPT_OK, BPT_ENOMEM, BPT_EUSAGE, BPT_EBACKEND, BPT_ENUMERIC, BPT_EPEER, BPT_ECOMM, and
 * what reading a dataset fails with */
bpt_status bpt_probe_run(bpt_comm *comm, const bpt_probe_subject *subject, bpt_cluster *cluster);
void bpt_probe_free(bpt_cluster *cluster);

#endif
