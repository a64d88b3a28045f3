/** @file tools/train/exchange/quality.h
 * How good this rank's own weights are, which its pushes are weighed by: Q of ALGORITHMS 1.3.
 *
 * At each push the rank evaluates one batch of the held-out records, the next ones each time, and
 * round again. Q is a mean of these accuracies in which the latest counts a quarter, so that some
 * hundred images judge and not one batch; of k right ones among n it takes (k + 1) / (n + 2), which
 * is never 0. So a push costs the forward pass of one batch, a third of a step or less, and memory
 * for one batch; a thread of its own loads it meanwhile.
 *
 * Threads: the one that trains. */
#ifndef BPT_TOOLS_QUALITY_H
#define BPT_TOOLS_QUALITY_H

#include "base/json.h"
#include "inner/network/network.h"
#include "storage/loader/loader.h"

typedef struct bpt_quality bpt_quality;

/** What a checkpoint stores: with it a job goes on as if it had not stopped. */
typedef struct bpt_quality_state {
    uint64_t taken; /* batches evaluated */
    double mean;    /* Q; 0 before the first */
} bpt_quality_state;

/** Takes an accuracy into Q. Pure.
 * @param n_correct of @p n_samples, at least 1 */
void bpt_quality_note(bpt_quality_state *state, uint64_t n_correct, uint64_t n_samples);

/** @return how the records are loaded: as many bytes as bpt_loader_bytes() says
 * @param train whose mean and deviation normalise; borrowed; NULL where only bytes are asked for
 * @param batch that the network is made for
 * @param as_images bpt_device_takes_images() of where it is */
bpt_loader_options bpt_quality_loader(const bpt_split *train, uint32_t batch, bool as_images);

/** @param records held out, shape [n]; borrowed
 * @param n at least 1
 * @param batch, as_images as of bpt_quality_loader()
 * @param state where it goes on; zeros: at the start
 * @param[out] q caller owns, bpt_quality_free()
 * @return BPT_OK, BPT_ENOMEM, BPT_EIO */
bpt_status bpt_quality_create(const bpt_dataset *dataset, const bpt_split *train,
                              const uint32_t *records, uint32_t n, uint32_t batch, bool as_images,
                              bpt_quality_state state, bpt_quality **q);
void bpt_quality_free(bpt_quality *q);

/** Evaluates the network's present weights on the next batch.
 * @return BPT_OK, BPT_ENUMERIC, BPT_ECORRUPT, BPT_EBACKEND */
bpt_status bpt_quality_measure(bpt_quality *q, bpt_network *network);

/** @return Q, and what it follows from */
bpt_quality_state bpt_quality_state_get(const bpt_quality *q);

/** Adds a state to a JSON text, as object @p key; reads it back.
 * @return BPT_OK, BPT_EDATA */
void bpt_quality_put(bpt_quality_state state, bpt_json_writer *w, const char *key);
bpt_status bpt_quality_get(const bpt_json_doc *doc, const bpt_json *object, const char *key,
                           bpt_quality_state *state);

#endif
