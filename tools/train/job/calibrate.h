/** @file tools/train/job/calibrate.h
 * How fast this rank trains by itself, before there is anything to train on together.
 *
 * Gradients of a made-up batch are computed for a short while by the network that will train. All
 * ranks do it at the same moment, so that ranks which share a machine get their part of it.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_CALIBRATE_H
#define BPT_TOOLS_CALIBRATE_H

#include "tools/train/job/job.h"

/** Measures for as long as --calibrate of rank 0 says, by at least one step after another that does
 * not count, on a device after three and before a last one. The network's weights and gradients are
 * undefined afterwards; uses job->flat. Collective; servers have nothing to measure.
 * @param[out] images_per_s of each rank, shape [n_ranks]; 0 of servers, and with --calibrate 0
 * @return BPT_OK, BPT_ENOMEM, BPT_ENUMERIC, BPT_EBACKEND, BPT_EPEER, BPT_ECOMM */
bpt_status bpt_calibrate(bpt_job *job, double *images_per_s);

#endif
