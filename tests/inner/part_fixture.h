/** @file tests/inner/part_fixture.h
 * The networks of a model's head and tail, and steps of them.
 *
 * Every function ends the running test where something fails.
 *
 * Threads: one; the test's own. */
#ifndef TESTS_INNER_PART_FIXTURE_H
#define TESTS_INNER_PART_FIXTURE_H

#include "inner/models/model_part.h"
#include "inner/network/network_border.h"
#include "tests/inner/net_fixture.h"

#include <stddef.h>
#include <stdint.h>

typedef struct part_fixture {
    bpt_model *head_model, *tail_model;
    bpt_network *head, *tail;
    bpt_border from, to; /* of the head, of the tail */
} part_fixture;

/** Parts the model of @p whole behind a layer, with its pool, batch and weights.
 * @param options learning and activations of both */
part_fixture part_open(const net_fixture *whole, size_t layer, net_options options);
void part_close(part_fixture *p);

/** Gives both their slices of a vector of the whole model. */
void part_set(part_fixture *p, bpt_vector which, const float *flat);

/** @return the vector of the whole model, put together; free() */
float *part_vector(const part_fixture *p, bpt_vector which);

/** Names the random numbers of a step of both. */
void part_set_draw(part_fixture *p, bpt_draw draw);

/** Forward, the tail's step, backward, both with update. The tail reads the border where the head
 * has it. */
void part_train(part_fixture *p, const net_fixture *batch, float rate, float denominator,
                bpt_batch_result *result);

/** The same without updates. */
void part_gradient(part_fixture *p, const net_fixture *batch, float denominator,
                   bpt_batch_result *result);

#endif
