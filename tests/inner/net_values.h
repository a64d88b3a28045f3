/** @file tests/inner/net_values.h
 * The values of activations of a network, which it keeps to itself.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_NET_VALUES_H
#define TESTS_INNER_NET_VALUES_H

#include "tests/inner/net_fixture.h"

#include <stddef.h>

/** @param layer its output, or that of layers that do its work too
 * @return the values of the last training step or gradient, computed again with the weights as they
 * are, shape [batch, C, H, W]; free() */
float *net_values(const net_fixture *f, size_t layer);

/** @return the values of the last layer, shape [batch, classes]; free() */
float *net_logits(const net_fixture *f);

/** What ReLUs and maxima see, for ref_batch.switched_by: [0] the network's input, [1 + i] the
 * output of layer i or NULL, as from net_values(). @return net_switches_free() */
float **net_switches(const net_fixture *f);
void net_switches_free(const net_fixture *f, float **values);

#endif
