#include "tests/inner/part_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void check_borders(const part_fixture *p) {
    assert_memory_equal(&p->from.shape, &p->to.shape, sizeof p->from.shape);
    assert_int_equal(p->from.type, p->to.type);
    assert_int_equal(p->from.bytes, p->to.bytes);
    assert_non_null(p->from.values);
    assert_null(p->to.values);
}

part_fixture part_open(const net_fixture *whole, size_t layer, net_options o) {
    part_fixture p = {0};
    net_assert_ok(bpt_model_part(whole->model, layer, BPT_MODEL_HEAD, &p.head_model));
    net_assert_ok(bpt_model_part(whole->model, layer, BPT_MODEL_TAIL, &p.tail_model));
    net_assert_ok(bpt_network_create(p.head_model, whole->batch, o.activations, o.learning,
                                     whole->pool, &p.head));
    net_assert_ok(bpt_network_create(p.tail_model, whole->batch, o.activations, o.learning,
                                     whole->pool, &p.tail));
    p.from = bpt_network_border(p.head);
    p.to = bpt_network_border(p.tail);
    check_borders(&p);
    part_set(&p, BPT_VECTOR_WEIGHTS, whole->weights);
    return p;
}

void part_close(part_fixture *p) {
    bpt_network_free(p->tail);
    bpt_network_free(p->head);
    bpt_model_free(p->tail_model);
    bpt_model_free(p->head_model);
}

void part_set(part_fixture *p, bpt_vector which, const float *flat) {
    net_assert_ok(bpt_network_set(p->head, which, flat + p->head_model->first_element));
    net_assert_ok(bpt_network_set(p->tail, which, flat + p->tail_model->first_element));
}

float *part_vector(const part_fixture *p, bpt_vector which) {
    float *flat =
        net_floats(p->head_model->segments.n_elements + p->tail_model->segments.n_elements);
    net_assert_ok(bpt_network_get(p->head, which, flat + p->head_model->first_element));
    net_assert_ok(bpt_network_get(p->tail, which, flat + p->tail_model->first_element));
    return flat;
}

void part_set_draw(part_fixture *p, bpt_draw draw) {
    bpt_network_set_draw(p->head, draw);
    bpt_network_set_draw(p->tail, draw);
}

void part_train(part_fixture *p, const net_fixture *batch, float rate, float denominator,
                bpt_batch_result *result) {
    net_assert_ok(bpt_network_forward(p->head, batch->pixels, batch->labels, denominator));
    net_assert_ok(
        bpt_network_train(p->tail, p->from.values, batch->labels, rate, denominator, result));
    memcpy(p->from.gradient, p->to.gradient, p->to.bytes);
    net_assert_ok(bpt_network_backward_train(p->head, rate));
}

void part_gradient(part_fixture *p, const net_fixture *batch, float denominator,
                   bpt_batch_result *result) {
    net_assert_ok(bpt_network_forward(p->head, batch->pixels, batch->labels, denominator));
    net_assert_ok(
        bpt_network_gradient(p->tail, p->from.values, batch->labels, denominator, result));
    memcpy(p->from.gradient, p->to.gradient, p->to.bytes);
    net_assert_ok(bpt_network_backward(p->head));
}
