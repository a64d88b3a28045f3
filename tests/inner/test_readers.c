/* Who reads which activation: branches, and layers that do the work of others.
 *
 * ctest: cpu TIMEOUT=30 */
#include "inner/models/readers.h"
#include "tests/inner/net_fixture.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

/* A block of a ResNet: bn2 does the add and the ReLU behind it, bn1 its ReLU. */
static const char block[] =
    "{name: t, input: [4, 6, 6], classes: 3, layers: ["
    "conv: {name: c1, filters: 4, kernel: 3, pad: 1, bias: false}, batchnorm: {name: bn1}, "
    "relu: {name: r1}, conv: {name: c2, filters: 4, kernel: 3, pad: 1, bias: false}, "
    "batchnorm: {name: bn2}, add: {name: a, input: [bn2, r1]}, relu: {name: r2}, "
    "fc: {name: f, outputs: classes}]}";

enum { C1, BN1, R1, C2, BN2, A, R2, F, N_LAYERS };

static void assert_reads(const bpt_readers *r, size_t layer, size_t j, size_t activation,
                         size_t reader) {
    assert_true(j < r->n_inputs[layer]);
    assert_int_equal(r->inputs[layer][j].activation, activation);
    assert_int_equal(r->inputs[layer][j].reader, reader);
}

static void test_block(void **state) {
    (void)state;
    static const size_t n_readers[N_LAYERS + 1] = {1, 1, 1, 2, 1, 1, 1, 1, 0};
    static const size_t n_inputs[N_LAYERS] = {1, 1, 1, 1, 2, 1, 1, 1};
    bpt_model *m = net_parse(block);
    bpt_readers r;
    assert_int_equal(m->n_layers, N_LAYERS);
    assert_true(m->layers[A].fusion.done && m->layers[R2].fusion.done);
    net_assert_ok(bpt_readers_find(m, &r));
    for (size_t a = 0; a <= N_LAYERS; a++) assert_int_equal(r.n[a], n_readers[a]);
    for (size_t l = 0; l < N_LAYERS; l++) assert_int_equal(r.n_inputs[l], n_inputs[l]);
    assert_reads(&r, C1, 0, 0, 0);
    assert_reads(&r, C2, 0, 1 + R1, 0);
    assert_reads(&r, BN2, 0, 1 + C2, 0);
    assert_reads(&r, BN2, 1, 1 + R1, 1); /* what is added */
    assert_reads(&r, A, 0, 1 + BN2, 0);  /* who does its work */
    assert_reads(&r, R2, 0, 1 + A, 0);
    assert_reads(&r, F, 0, 1 + R2, 0);
    bpt_readers_clear(&r);
    bpt_model_free(m);
}

/* Every input of every layer is read once, by a number of its own. */
static void test_all_once(void **state) {
    (void)state;
    bpt_model *m = net_parse(net_mixed);
    bpt_readers r;
    net_assert_ok(bpt_readers_find(m, &r));
    for (size_t a = 0; a <= m->n_layers; a++)
        for (size_t reader = 0; reader < r.n[a]; reader++) {
            unsigned n = 0;
            for (size_t l = 0; l < m->n_layers; l++)
                for (size_t j = 0; j < r.n_inputs[l]; j++)
                    n += r.inputs[l][j].activation == a && r.inputs[l][j].reader == reader;
            assert_int_equal(n, 1);
        }
    bpt_readers_clear(&r);
    bpt_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_block),
        cmocka_unit_test(test_all_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
