/** @file tests/inner/cuda_net_fixture.h
 * Networks on a GPU, beside the one on the cores that a fixture has, and beside loops in double
 * precision.
 *
 * Every function ends the running test where something fails.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_CUDA_NET_FIXTURE_H
#define TESTS_INNER_CUDA_NET_FIXTURE_H

#include "inner/device.h"
#include "tests/inner/net_fixture.h"

/** @return a network on the GPU with the weights of the one on the cores; bpt_network_free() */
bpt_network *cuda_net_open(bpt_device *device, const net_fixture *f, bpt_value_type type,
                           bpt_learning learning);

bpt_draw cuda_net_draw(uint64_t step);

/** Compares the gradients of floats with those in double precision, by gradient_check(): of a run
 * task by task, and of captured ones. @param f the cores' network is of floats */
void cuda_net_check_floats(bpt_device *device, net_fixture *f);

/** The same of bfloat16, which rounds to 8 bits at every layer: what remains must point the same
 * way. */
void cuda_net_check_halves(bpt_device *device, net_fixture *f);

/** Trains both; their losses differ by no more than 1e-3. @param net learns as the cores' */
void cuda_net_train(net_fixture *f, bpt_network *net, int n_steps);

/** Compares a vector with that of the cores: 1e-3. */
void cuda_net_compare(const net_fixture *f, bpt_network *net, bpt_vector which, const char *what);

/** Compares losses of three evaluations with that of the cores: 1e-3. */
void cuda_net_compare_evaluations(const net_fixture *f, bpt_network *net);

#endif
