/** @file tests/inner/net_fixture.h
 * A network with all that a test of it needs: model, workers, random weights and a random batch.
 *
 * Every function ends the running test where something fails.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_NET_FIXTURE_H
#define TESTS_INNER_NET_FIXTURE_H

#include "inner/models/model.h"
#include "inner/network/network.h"

#include <stddef.h>
#include <stdint.h>

typedef struct net_fixture {
    bpt_model *model;
    bpt_pool *pool;
    bpt_network *net;
    int64_t batch;
    size_t n_weights, n_pixels;
    float *weights;  /* shape [n_weights], in the canonical order; what the network was given */
    float *pixels;   /* shape [batch, C, H, W] */
    int32_t *labels; /* shape [batch], none is -1 */
} net_fixture;

/* Models. */
extern const char net_mixed[]; /* every kind of layer, and channels that fill no vector */
extern const char net_tiny[];  /* few tasks and little memory */

/** How a fixture is made; zeros are one worker, floats, plain SGD, seed 0 and whole convolutions.
 */
typedef struct net_options {
    unsigned n_workers;
    bpt_learning learning;
    uint64_t seed;
    bpt_value_type activations;
} net_options;

/** @param text a model in YAML */
net_fixture net_open(const char *text, int64_t batch, net_options options);

/** How convolutions are cut. */
typedef struct net_cuts {
    bpt_cut
        step[BPT_N_CONV_STEPS];  /* of each that is a convolution's; zeros leave it to the costs */
    const bpt_cost_table *costs; /* NULL: whole */
} net_cuts;

net_fixture net_open_cut(const char *text, int64_t batch, net_options options, net_cuts cuts);

/** Lets every convolution of a model be cut so. */
void net_cut(bpt_model *model, const net_cuts *cuts);

/** @param name a built-in model; @param override may be NULL
 * @param weights instead of those of the seed, shape [n_weights]; NULL: those */
net_fixture net_open_built_in(const char *name, const bpt_model_override *override, int64_t batch,
                              net_options options, const float *weights);
void net_close(net_fixture *f);

/** Makes the network anew with the layers before one frozen, and the same weights.
 * @param first as of bpt_model_freeze_before()
 * @param options learning and activations count; the workers stay those that there are */
void net_freeze(net_fixture *f, const char *first, net_options options);

/** @return a model parsed from YAML; bpt_model_free() */
bpt_model *net_parse(const char *text);

/** @return a pool; bpt_pool_free() */
bpt_pool *net_pool(unsigned n_workers);

/** @return uninitialised floats, shape [n]; free() */
float *net_floats(size_t n);

/** @return what bpt_network_get() gives, of the fixture's network or another one of its model,
 * shape [n_weights]; free() */
float *net_vector(const net_fixture *f, bpt_vector which);
float *net_vector_of(bpt_network *net, const net_fixture *f, bpt_vector which);

/** @return |x - y| / |y|, or |x - y| where y is 0 */
double net_distance(const float *x, const float *y, size_t n);

/** Ends the test unless the frozen layers of a network have the fixture's weights, bit for bit, and
 * neither momenta nor gradients. */
void net_assert_frozen(const net_fixture *f, bpt_network *net);

/** Compares bits: 0 and -0 differ, equal NaNs do not. */
void net_assert_same_bits(const char *what, const float *x, const float *y, size_t n);

/** Ends the test with the last error unless @p status is BPT_OK. */
void net_assert_ok(bpt_status status);

#endif
