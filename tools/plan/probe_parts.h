/** @file tools/plan/probe_parts.h
 * What is measured of a node, a file each; probe.c puts it together.
 *
 * Each is collective: what fails on one rank ends all, and what is left open is closed.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_PROBE_PARTS_H
#define BPT_TOOLS_PROBE_PARTS_H

#include "tools/plan/probe.h"

enum { BPT__PROBE_SEED = 1 };

/** What is open while a rank measures. */
typedef struct bpt_probe {
    bpt_comm *comm;
    const bpt_probe_subject *subject;
    bpt_device *device; /* NULL: the processor's cores */
    bpt_pool *pool;     /* from bpt__probe_steps() on */
    float *flat;        /* likewise: initial weights, shape [elements of the model] */
    bpt_pinned pinned;
} bpt_probe;

/** Reading images (probe_load.c): sets .load_s_per_image. The process has no workers meanwhile.
 * @return BPT_OK, BPT_EPEER, BPT_ECOMM, or what a loader fails with */
bpt_status bpt__probe_load(const bpt_probe *p, bpt_node *node);

/** Steps, and copies of all weights (probe_steps.c): sets .steps and .copy_s.
 * @return as bpt_probe_run() */
bpt_status bpt__probe_steps(const bpt_probe *p, bpt_node *node);

/** Links and messages (probe_links.c): sets .link_bytes_per_s and .message_s_per_byte; zeros of one
 * rank.
 * @param[out] latency_s as of bpt_cluster, by this rank's clock
 * @return BPT_OK, BPT_ENOMEM, BPT_EPEER, BPT_ECOMM */
bpt_status bpt__probe_links(const bpt_probe *p, bpt_node *node, double *latency_s);

#endif
