/** @file inner/mixed/mixed_network.h
 * A network on a device and on the cores. Private to inner/mixed/.
 *
 * Threads: one, that which owns the device and the pool. */
#ifndef BPT_INNER_MIXED_MIXED_NETWORK_H
#define BPT_INNER_MIXED_MIXED_NETWORK_H

#include "inner/device.h"
#include "inner/mixed/mixed_shares.h"

typedef struct bpt_mixed_device {
    bpt_device base;  /* first */
    bpt_device *fast; /* owned */
    bpt__mixed_shares shares;
    unsigned n_measured; /* shares that were not read */
} bpt_mixed_device;

/** What bpt_device_network is here. Samples [0, batch - n_cores) are the device's. */
typedef struct bpt_mixed_network {
    bpt_mixed_device *device;
    bpt_device_wish wish;
    int64_t n_cores;
    bpt_device_network *fast; /* on the device; NULL: the cores have all samples */
    bpt_network *cores;       /* NULL: the device has all samples */
    float *flat; /* a vector on its way between them, in memory of the device's kind; NULL unless
                  * both have samples and learn; shape [elements that learn] */
    bool fresh;  /* flat has weights that the cores have not */
    char sharing[160];
    /* Between begin and end. */
    bpt_device_run run;
    bpt_status cores_status; /* of the cores' part */
    bpt_batch_result by_cores;
} bpt_mixed_network;

static inline bpt_mixed_network *bpt__mixed(bpt_device_network *net) {
    return (bpt_mixed_network *)net;
}

/* ---- life (mixed_network.c) ---- */

/** @return samples that a side is to have of a step at least, if it has any */
int64_t bpt__mixed_least(const bpt_device_wish *wish);

/** With a share that is known. @param[out] m bpt__mixed_unmake(); set also on failure
 * @return as bpt_device_kind.create */
bpt_status bpt__mixed_make(bpt_mixed_device *device, const bpt_device_wish *wish, int64_t n_cores,
                           bpt_mixed_network *m, bpt_network_memory *memory);
void bpt__mixed_unmake(bpt_mixed_network *m);

/** With the share that is kept, or else measured. As bpt_device_kind.create. */
bpt_status bpt__mixed_network_create(bpt_device *device, const bpt_device_wish *wish,
                                     bpt_device_network **net, bpt_network_memory *memory);
void bpt__mixed_network_free(bpt_device_network *net);

/** The cores' part, and what is on its way between them and the device. */
bpt_network_memory bpt__mixed_network_host_memory(const bpt_device_network *net);

/* ---- as the functions of bpt_device_kind (mixed_run.c) ---- */

bpt_status bpt__mixed_network_begin(bpt_device_network *net, bpt_device_work work,
                                    const bpt_device_run *run);
bpt_status bpt__mixed_network_end(bpt_device_network *net, bpt_device_work work,
                                  bpt_device_outcome *outcome);
bpt_status bpt__mixed_network_get(bpt_device_network *net, bpt_vector which, size_t first,
                                  float *flat);
bpt_status bpt__mixed_network_set(bpt_device_network *net, bpt_vector which, size_t first,
                                  const float *flat);
const char *bpt__mixed_network_sharing(const bpt_device_network *net);
void bpt__mixed_network_visit(const bpt_device_network *net, bpt_device_visit visit, void *context);
uint64_t bpt__mixed_network_products_ns(const bpt_device_network *net);

#endif
