/** @file tests/inner/net_logits.h
 * The logits of a network, which it keeps to itself.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_NET_LOGITS_H
#define TESTS_INNER_NET_LOGITS_H

#include "tests/inner/net_fixture.h"

/** @return the logits of the last training step or gradient, computed again with the weights as
 * they are, shape [batch, classes]; free() */
float *net_logits(const net_fixture *f);

#endif
