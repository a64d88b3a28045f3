/* Heads of several ranks and one tail: what RALP makes of a step. Every rank has a head of its own,
 * as on a machine of its own. In step the tail has all ranks' batches at once, against the classic
 * step, in which every rank has the whole network and gradients are summed over the ranks; out of
 * step it learns from one rank's batch after the other.
 *
 * ctest: cpu TIMEOUT=120 */
#include "base/random.h"
#include "tests/base/near.h"
#include "tests/inner/part_fixture.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20273, N_RANKS = 3, ALL = 18, N_STEPS = 40 };

/* Ranks of unlike speed have unlike parts of a batch. */
static const int64_t batches[N_RANKS] = {5, 9, 4}, firsts[N_RANKS] = {0, 5, 14};

static const char model[] =
    "{name: t, input: [3, 6, 6], classes: 5, layers: ["
    "conv: {name: a, filters: 17, kernel: 3, pad: 1}, batchnorm: {name: n}, relu, "
    "conv: {name: b, filters: 16, kernel: 3, pad: 1}, relu, maxpool: {kernel: 2}, dropout, "
    "fc: {name: c, outputs: 70}, relu, dropout: {rate: 0.25}, fc: {name: e, outputs: classes}]}";

static const double RATE = 0.02;

static const net_options options = {.n_workers = 2, .seed = SEED, .learning = {.momentum = 0.9}};

/* ---- a cluster ---- */

typedef struct {
    net_fixture all;            /* the batch of all ranks; its network is not used */
    net_fixture whole[N_RANKS]; /* classic ranks */
    part_fixture part[N_RANKS]; /* ranks with a head; of their tails none is used */
    bpt_network *merged;        /* tail of all samples at once */
    float *border;              /* of all samples, shape [ALL, C, H, W] */
    size_t n_sample;            /* floats of a sample at the border */
    size_t n_head, n_weights;
} cluster;

static bpt_network *open_tail(const cluster *c) {
    bpt_network *net = NULL;
    const bpt_model *tail = c->part[0].tail_model;
    net_assert_ok(bpt_network_create(tail, ALL, BPT_F32, options.learning, c->all.pool, &net));
    net_assert_ok(bpt_network_set(net, BPT_VECTOR_WEIGHTS, c->all.weights + tail->first_element));
    return net;
}

static cluster open_cluster(void) {
    size_t layer = 0;
    cluster c = {.all = net_open(model, ALL, options)};
    net_assert_ok(bpt_model_find_border(c.all.model, "c", &layer));
    for (int r = 0; r < N_RANKS; r++) {
        c.whole[r] = net_open(model, batches[r], options);
        c.part[r] = part_open(&c.whole[r], layer, options);
        net_assert_same_bits("weights", c.all.weights, c.whole[r].weights, c.all.n_weights);
    }
    c.merged = open_tail(&c);
    c.n_sample = bpt_network_border(c.merged).bytes / sizeof(float) / ALL;
    c.border = net_floats(ALL * c.n_sample);
    c.n_head = c.part[0].head_model->segments.n_elements;
    c.n_weights = c.all.n_weights;
    return c;
}

static void close_cluster(cluster *c) {
    free(c->border);
    bpt_network_free(c->merged);
    for (int r = 0; r < N_RANKS; r++) {
        part_close(&c->part[r]);
        net_close(&c->whole[r]);
    }
    net_close(&c->all);
}

/* The next batch of all ranks, and each rank's part of it. */
static void next_batch(cluster *c, uint64_t step) {
    bpt_random r = bpt_random_stream(SEED, BPT_PURPOSE_TEST, 100 + step);
    const size_t sample = c->all.n_pixels / ALL;
    for (size_t i = 0; i < c->all.n_pixels; i++) c->all.pixels[i] = bpt_random_normal(&r);
    for (int i = 0; i < ALL; i++)
        c->all.labels[i] = (int32_t)bpt_random_below(&r, (uint32_t)c->all.model->classes);
    for (int k = 0; k < N_RANKS; k++) {
        net_fixture *f = &c->whole[k];
        memcpy(f->pixels, c->all.pixels + (size_t)firsts[k] * sample,
               f->n_pixels * sizeof *f->pixels);
        memcpy(f->labels, c->all.labels + firsts[k], (size_t)batches[k] * sizeof *f->labels);
    }
}

static bpt_draw draw_of(int rank, uint64_t step) {
    return (bpt_draw){SEED, step, (uint64_t)firsts[rank]};
}

/* Sums over ranks, in their order, and lets all update by the sum, as an exchange does. */
static void update_all(bpt_network *const *nets, size_t n) {
    float *sum = calloc(n, sizeof *sum), *x = net_floats(n);
    assert_non_null(sum);
    for (int r = 0; r < N_RANKS; r++) {
        net_assert_ok(bpt_network_get(nets[r], BPT_VECTOR_GRADIENTS, x));
        for (size_t i = 0; i < n; i++) sum[i] += x[i];
    }
    for (int r = 0; r < N_RANKS; r++) {
        net_assert_ok(bpt_network_set(nets[r], BPT_VECTOR_GRADIENTS, sum));
        net_assert_ok(bpt_network_apply(nets[r], (float)RATE));
    }
    free(x);
    free(sum);
}

/* ---- steps; each @return the loss of all samples ---- */

static double step_classic(cluster *c, uint64_t step) {
    bpt_network *nets[N_RANKS];
    double loss = 0.0;
    for (int r = 0; r < N_RANKS; r++) {
        const net_fixture *f = &c->whole[r];
        bpt_batch_result result;
        nets[r] = f->net;
        bpt_network_set_draw(f->net, draw_of(r, step));
        net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, ALL, &result));
        loss += result.loss_sum;
    }
    update_all(nets, c->n_weights);
    return loss;
}

static void forward(cluster *c, int r, uint64_t step) {
    const net_fixture *f = &c->whole[r];
    bpt_network_set_draw(c->part[r].head, draw_of(r, step));
    net_assert_ok(bpt_network_forward(c->part[r].head, f->pixels, f->labels, ALL));
}

static void backward(cluster *c, int r, const float *gradient) {
    memcpy(c->part[r].from.gradient, gradient, c->part[r].from.bytes);
    net_assert_ok(bpt_network_backward(c->part[r].head));
}

static void update_heads(cluster *c) {
    bpt_network *nets[N_RANKS];
    for (int r = 0; r < N_RANKS; r++) nets[r] = c->part[r].head;
    update_all(nets, c->n_head);
}

static double step_merged(cluster *c, uint64_t step) {
    bpt_batch_result result;
    for (int r = 0; r < N_RANKS; r++) {
        forward(c, r, step);
        memcpy(c->border + (size_t)firsts[r] * c->n_sample, c->part[r].from.values,
               c->part[r].from.bytes);
    }
    bpt_network_set_draw(c->merged, draw_of(0, step));
    net_assert_ok(
        bpt_network_train(c->merged, c->border, c->all.labels, (float)RATE, ALL, &result));
    const float *gradient = bpt_network_border(c->merged).gradient;
    for (int r = 0; r < N_RANKS; r++) backward(c, r, gradient + (size_t)firsts[r] * c->n_sample);
    update_heads(c);
    return result.loss_sum;
}

/* ---- the loss curve ---- */

static void check_weights(const cluster *c) {
    const char *name = "";
    float *x = net_vector(&c->whole[0], BPT_VECTOR_WEIGHTS), *parts = net_floats(c->n_weights);
    double *expected = ref_doubles(x, c->n_weights);
    net_assert_ok(bpt_network_get(c->part[0].head, BPT_VECTOR_WEIGHTS, parts));
    net_assert_ok(bpt_network_get(c->merged, BPT_VECTOR_WEIGHTS, parts + c->n_head));
    const double error = ref_segments_error(&c->all.model->segments, parts, expected, &name);
    if (!(error <= 1e-4)) fail_msg("%s is off by %.2g", name, error);
    free(expected);
    free(parts);
    free(x);
}

/* Statistics of a batch norm in the head are those of each rank's samples, either way. */
static void test_tail_of_all_samples_at_once(void **state) {
    (void)state;
    cluster c = open_cluster();
    double first = 0.0, last = 0.0;
    for (uint64_t i = 0; i < N_STEPS; i++) {
        next_batch(&c, i % 4);
        const double expected = step_classic(&c, i) / ALL, loss = step_merged(&c, i) / ALL;
        assert_near(loss, expected, 1e-5);
        if (i == 0) first = expected;
        last = expected;
    }
    if (!(last < 0.7 * first)) fail_msg("nothing is learnt: %.3f, then %.3f", first, last);
    check_weights(&c);
    close_cluster(&c);
}

/* ---- gradients of the border ---- */

static double largest(const float *x, size_t n) {
    double most = 0.0;
    for (size_t i = 0; i < n; i++) most = fmax(most, fabs((double)x[i]));
    return most;
}

/* Each sample gets the gradient that it would get in its rank's own batch. */
static void test_batch_of_two_ranks(void **state) {
    (void)state;
    static const struct {
        int64_t first, n;
        bpt_draw draw;
    } ranks[] = {{0, 9, {3, 17, 40}}, {9, 5, {3, 17, 49}}};
    net_fixture f = net_open(model, 14, options);
    size_t layer = 0;
    net_assert_ok(bpt_model_find_border(f.model, "c", &layer));
    part_fixture p = part_open(&f, layer, options);
    const size_t sample = p.from.bytes / sizeof(float) / 14;
    bpt_batch_result result, part;
    double loss = 0.0;
    net_assert_ok(bpt_network_forward(p.head, f.pixels, f.labels, 14.0f));
    const float *border = p.from.values;
    bpt_network_set_draw(p.tail, ranks[0].draw);
    net_assert_ok(bpt_network_gradient(p.tail, border, f.labels, 14.0f, &result));
    const float *gradients = p.to.gradient;
    for (int r = 0; r < 2; r++) {
        const size_t first = (size_t)ranks[r].first * sample, n = (size_t)ranks[r].n * sample;
        bpt_network *alone = NULL;
        net_assert_ok(bpt_network_create(p.tail_model, ranks[r].n, BPT_F32, options.learning,
                                         f.pool, &alone));
        net_assert_ok(
            bpt_network_set(alone, BPT_VECTOR_WEIGHTS, f.weights + p.tail_model->first_element));
        bpt_network_set_draw(alone, ranks[r].draw);
        net_assert_ok(
            bpt_network_gradient(alone, border + first, f.labels + ranks[r].first, 14.0f, &part));
        const float *expected = bpt_network_border(alone).gradient;
        const double tolerance = 1e-6 * largest(expected, n);
        assert_true(tolerance > 0.0);
        for (size_t i = 0; i < n; i++)
            if (!(fabs((double)gradients[first + i] - (double)expected[i]) <= tolerance))
                fail_msg("rank %d: value %zu is %.9g, not %.9g", r, i, (double)gradients[first + i],
                         (double)expected[i]);
        loss += part.loss_sum;
        bpt_network_free(alone);
    }
    assert_true(fabs(loss - result.loss_sum) <= 1e-6 * loss);
    part_close(&p);
    net_close(&f);
}

/* ---- ranks in turn ---- */

static const bpt_vector vectors[] = {BPT_VECTOR_WEIGHTS, BPT_VECTOR_STATE_0};
enum { N_VECTORS = sizeof vectors / sizeof *vectors };

/* A step of the whole network with a rank's head and the tail as the last step has left it.
 * @param own,last vectors of the rank, of whoever was last */
static void train_whole(net_fixture *f, float *const *own, float *const *last, size_t n_head) {
    bpt_batch_result result;
    for (int v = 0; v < N_VECTORS; v++) {
        memmove(own[v] + n_head, last[v] + n_head, (f->n_weights - n_head) * sizeof **own);
        net_assert_ok(bpt_network_set(f->net, vectors[v], own[v]));
    }
    net_assert_ok(bpt_network_train(f->net, f->pixels, f->labels, (float)RATE, 9.0F, &result));
    for (int v = 0; v < N_VECTORS; v++) net_assert_ok(bpt_network_get(f->net, vectors[v], own[v]));
}

/* Ranks of unlike seeds and steps, and a tail that makes an update of each one's batch. */
static void test_tail_of_one_rank_after_the_other(void **state) {
    (void)state;
    static const int order[] = {0, 1, 2, 2, 0, 1, 1, 0, 2};
    net_fixture f = net_open(model, 9, options);
    part_fixture p[N_RANKS];
    float *expected[N_RANKS][N_VECTORS];
    uint64_t steps[N_RANKS] = {17, 2, 40};
    size_t layer = 0;
    int last = 0;
    net_assert_ok(bpt_model_find_border(f.model, "c", &layer));
    for (int r = 0; r < N_RANKS; r++) {
        p[r] = part_open(&f, layer, options);
        for (int v = 0; v < N_VECTORS; v++) expected[r][v] = net_vector(&f, vectors[v]);
    }
    const size_t n_head = p[0].head_model->segments.n_elements;
    for (size_t i = 0; i < sizeof order / sizeof *order; i++) {
        const int r = order[i];
        const bpt_draw draw = {SEED + (uint64_t)r, steps[r]++, 9 * (uint64_t)r};
        part_fixture served = p[r];
        served.tail = p[0].tail;
        served.to = p[0].to;
        bpt_network_set_draw(f.net, draw);
        train_whole(&f, expected[r], expected[last], n_head);
        part_set_draw(&served, draw);
        bpt_batch_result result;
        part_train(&served, &f, (float)RATE, 9.0F, &result);
        float *x = part_vector(&served, BPT_VECTOR_WEIGHTS);
        net_assert_same_bits("weights", expected[r][0], x, f.n_weights);
        free(x);
        last = r;
    }
    for (int r = 0; r < N_RANKS; r++) {
        for (int v = 0; v < N_VECTORS; v++) free(expected[r][v]);
        part_close(&p[r]);
    }
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tail_of_all_samples_at_once),
        cmocka_unit_test(test_batch_of_two_ranks),
        cmocka_unit_test(test_tail_of_one_rank_after_the_other),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
