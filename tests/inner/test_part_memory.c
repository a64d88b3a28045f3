/* Networks of parts: memory, measurements, and what goes wrong.
 *
 * ctest: cpu TIMEOUT=60 */
#include "base/memory.h"
#include "inner/network/network_private.h"
#include "tests/inner/part_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20271 };

static const net_options options = {
    .n_workers = 2, .seed = SEED, .learning = {.momentum = 0.9, .decay = 1e-2}};

static part_fixture open_before(const net_fixture *f, const char *first) {
    size_t layer = 0;
    net_assert_ok(bpt_model_find_border(f->model, first, &layer));
    return part_open(f, layer, options);
}

/* ---- memory ---- */

static void check_plan(const bpt_model *m, const bpt_network *net) {
    bpt_network_memory plan;
    net_assert_ok(bpt_network_plan(m, 23, BPT_F32, options.learning, 2, &plan));
    const bpt_network_memory real = bpt_network_memory_of(net);
    assert_memory_equal(&plan, &real, sizeof plan);
}

static void test_plan_is_what_is_allocated(void **state) {
    (void)state;
    static const char *const firsts[] = {"relu1", "conv5", "fc1", "fc2"};
    net_fixture f = net_open(net_mixed, 23, options);
    const bpt_network_memory whole = bpt_network_memory_of(f.net);
    for (size_t i = 0; i < sizeof firsts / sizeof *firsts; i++) {
        part_fixture p = open_before(&f, firsts[i]);
        check_plan(p.head_model, p.head);
        check_plan(p.tail_model, p.tail);
        const bpt_network_memory head = bpt_network_memory_of(p.head);
        const bpt_network_memory tail = bpt_network_memory_of(p.tail);
        assert_int_equal(head.parameters + tail.parameters, whole.parameters);
        assert_int_equal(head.gradients + tail.gradients, whole.gradients);
        assert_int_equal(head.state + tail.state, whole.state);
        part_close(&p);
    }
    net_close(&f);
}

/* A step allocates nothing, and the border stays where it is. */
static void test_steps_allocate_nothing(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 23, options);
    part_fixture p = open_before(&f, "fc1");
    bpt_batch_result result;
    const uint64_t before = bpt_memory_allocations();
    for (uint64_t step = 0; step < 3; step++) {
        part_set_draw(&p, (bpt_draw){1, step, 0});
        part_train(&p, &f, 0.01f, 23.0f, &result);
        part_gradient(&p, &f, 23.0f, &result);
        net_assert_ok(bpt_network_apply(p.head, 0.01f));
        net_assert_ok(bpt_network_apply(p.tail, 0.01f));
    }
    assert_int_equal(bpt_memory_allocations(), before);
    assert_ptr_equal(bpt_network_border(p.head).values, p.from.values);
    assert_ptr_equal(bpt_network_border(p.head).gradient, p.from.gradient);
    assert_ptr_equal(bpt_network_border(p.tail).gradient, p.to.gradient);
    part_close(&p);
    net_close(&f);
}

/* What is at the border is not touched until the next half: the caller may take its time. */
static void check_border_stays(const net_fixture *f, size_t layer) {
    part_fixture p = part_open(f, layer, options);
    bpt_batch_result result;
    float *kept = malloc(p.from.bytes);
    assert_non_null(kept);
    net_assert_ok(bpt_network_forward(p.head, f->pixels, f->labels, 23.0f));
    memcpy(kept, p.from.values, p.from.bytes);
    memset(p.from.gradient, 0x11, p.from.bytes);
    assert_memory_equal(kept, p.from.values, p.from.bytes);
    net_assert_ok(bpt_network_train(p.tail, kept, f->labels, 0.01f, 23.0f, &result));
    memcpy(kept, p.to.gradient, p.to.bytes);
    float *weights = net_floats(f->n_weights); /* as at a checkpoint, or an exchange */
    net_assert_ok(bpt_network_get(p.tail, BPT_VECTOR_WEIGHTS, weights));
    net_assert_ok(bpt_network_set(p.tail, BPT_VECTOR_WEIGHTS, weights));
    assert_memory_equal(kept, p.to.gradient, p.to.bytes);
    free(weights);
    free(kept);
    part_close(&p);
}

static void test_border_stays(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 23, options);
    for (size_t i = 0; i < f.model->n_layers; i++)
        if (bpt_model_border(f.model, i, NULL) == BPT_BORDER_POSSIBLE) check_border_stays(&f, i);
    net_close(&f);
}

/* Both halves of a head share memory as those of a whole network do. */
static void test_sharing_saves(void **state) {
    (void)state;
    static const struct {
        const char *name, *first;
    } cases[] = {{"vgg16", "fc6"}, {"resnet20", "global_avgpool1"}, {"googlenet", "fc1"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_model *whole = NULL, *head = NULL;
        bpt_network_memory of_whole, of_head;
        size_t layer = 0;
        net_assert_ok(bpt_model_load(cases[i].name, NULL, &whole));
        net_assert_ok(bpt_model_find_border(whole, cases[i].first, &layer));
        net_assert_ok(bpt_model_part(whole, layer, BPT_MODEL_HEAD, &head));
        net_assert_ok(bpt_network_plan(whole, 16, BPT_F32, options.learning, 2, &of_whole));
        net_assert_ok(bpt_network_plan(head, 16, BPT_F32, options.learning, 2, &of_head));
        const size_t all = of_whole.activations + of_whole.activation_gradients;
        const size_t mine = of_head.activations + of_head.activation_gradients;
        if (!((double)mine <= 1.01 * (double)all))
            fail_msg("%s: the head takes %zu bytes, and the whole network %zu", cases[i].name, mine,
                     all);
        bpt_model_free(head);
        bpt_model_free(whole);
    }
}

/* ---- measurements ---- */

typedef struct {
    uint64_t n_tasks, ns;
    bool seen_forward, seen_backward, seen_update, seen_border;
} times;

static void add_time(void *context, const char *label, const char *kind, unsigned n_tasks,
                     uint64_t ns) {
    times *t = context;
    t->n_tasks += n_tasks;
    t->ns += ns;
    t->seen_forward |= strcmp(label, "conv1") == 0 && strcmp(kind, "forward") == 0;
    t->seen_backward |= strcmp(label, "conv1") == 0 && strcmp(kind, "backward weights") == 0;
    t->seen_update |= strcmp(label, "conv1.weight") == 0 && strcmp(kind, "update") == 0;
    t->seen_border |= strcmp(label, "border") == 0;
}

static void test_times_cover_both_halves(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 23, options);
    part_fixture p = open_before(&f, "fc1");
    bpt_batch_result result;
    part_train(&p, &f, 0.01f, 23.0f, &result);
    const bpt_run_stats run = bpt_network_last_run(p.head);
    times t = {0};
    bpt_network_visit_times(p.head, add_time, &t);
    assert_int_equal(t.n_tasks, run.n_tasks);
    assert_true(t.ns > 0 && t.ns <= run.busy_ns);
    assert_true(t.seen_forward && t.seen_backward && t.seen_update && t.seen_border);
    assert_true(bpt_network_critical_path(p.head) > 0);
    assert_true(bpt_network_critical_path(p.head) <= t.ns);
    part_close(&p);
    net_close(&f);
}

/* Also where the second half makes no update. */
static void test_path_of_a_gradient(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 23, options);
    part_fixture p = open_before(&f, "fc1");
    bpt_batch_result result;
    part_gradient(&p, &f, 23.0f, &result);
    const uint64_t path = bpt_network_critical_path(p.head);
    const uint64_t first = bpt_graph_measured_path(p.head->graphs[BPT_GRAPH_FORWARD]);
    assert_true(first > 0 && path > first);
    assert_true(path <= bpt_network_last_run(p.head).busy_ns);
    part_close(&p);
    net_close(&f);
}

/* Layers have all of a step but updates, loss and what is at the border. */
static void check_layer_times(const bpt_model *m, const bpt_network *net) {
    double *seconds = calloc(m->n_layers, sizeof *seconds), sum = 0.0;
    assert_non_null(seconds);
    bpt_network_layer_times(net, seconds);
    for (size_t i = 0; i < m->n_layers; i++) {
        const bpt_layer *l = &m->layers[i];
        assert_true(seconds[i] >= 0.0);
        if (l->fusion.done) assert_true(seconds[i] == 0.0);
        if (l->n_segments > 0) assert_true(seconds[i] > 0.0);
        sum += seconds[i];
    }
    assert_true(sum < 1e-9 * (double)bpt_network_last_run(net).wall_ns);
    free(seconds);
}

static void test_times_of_layers(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 23, options);
    part_fixture p = open_before(&f, "conv5");
    bpt_batch_result result;
    part_train(&p, &f, 0.01f, 23.0f, &result);
    check_layer_times(p.head_model, p.head);
    check_layer_times(p.tail_model, p.tail);
    net_assert_ok(bpt_network_train(f.net, f.pixels, f.labels, 0.01f, 23.0f, &result));
    check_layer_times(f.model, f.net);
    part_close(&p);
    net_close(&f);
}

/* ---- failures ---- */

static void check_not_finite(bpt_status status, const char *where) {
    assert_int_equal(status, BPT_ENUMERIC);
    const char *text = bpt_error_last()->text;
    if (!strstr(text, where)) fail_msg("\"%s\" does not name \"%s\"", text, where);
}

static float *segment_of(const net_fixture *f, const char *name) {
    for (size_t i = 0; i < f->model->segments.n; i++)
        if (strcmp(f->model->segments.items[i].name, name) == 0)
            return f->weights + f->model->segments.items[i].offset;
    fail_msg("no segment %s", name);
    return NULL;
}

/* Behind a ReLU, which drops a NaN, it would not be noticed until the backward pass. */
static void test_head_that_is_not_finite(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 7, options);
    *segment_of(&f, "conv3.weight") = NAN;
    part_fixture p = open_before(&f, "conv5");
    check_not_finite(bpt_network_forward(p.head, f.pixels, f.labels, 7.0f), "layer conv3 is");
    f.pixels[5] = INFINITY;
    check_not_finite(bpt_network_forward(p.head, f.pixels, f.labels, 7.0f), "nor is all of the in");
    part_close(&p);
    net_close(&f);
}

/* What comes back for the border, and goes in at a tail's. */
static void test_border_that_is_not_finite(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 7, options);
    part_fixture p = open_before(&f, "fc1");
    bpt_batch_result result;
    float *gradient = p.from.gradient;
    float *border = malloc(p.from.bytes), *before = part_vector(&p, BPT_VECTOR_WEIGHTS);
    assert_non_null(border);
    net_assert_ok(bpt_network_forward(p.head, f.pixels, f.labels, 7.0f));
    memcpy(border, p.from.values, p.from.bytes);
    for (size_t i = 0; i < p.from.bytes / sizeof(float); i++) gradient[i] = NAN;
    check_not_finite(bpt_network_backward_train(p.head, 0.1f), "a gradient");
    float *after = part_vector(&p, BPT_VECTOR_WEIGHTS);
    net_assert_same_bits("conv1.weight", before, after, p.head_model->segments.items[0].count);
    border[3] = NAN;
    check_not_finite(bpt_network_train(p.tail, border, f.labels, 0.1f, 7.0f, &result),
                     "comes in at the border");
    free(after);
    free(before);
    free(border);
    part_close(&p);
    net_close(&f);
}

static void test_clipping_is_refused(void **state) {
    (void)state;
    net_fixture f = net_open(net_mixed, 7, options);
    part_fixture p = open_before(&f, "fc1");
    const bpt_learning clips = {.clip_norm = 1.0};
    bpt_network_memory memory;
    bpt_network *net = NULL;
    assert_int_equal(bpt_network_create(p.head_model, 7, BPT_F32, clips, f.pool, &net), BPT_EUSAGE);
    assert_int_equal(bpt_network_plan(p.tail_model, 7, BPT_F32, clips, 1, &memory), BPT_EUSAGE);
    assert_null(net);
    part_close(&p);
    net_close(&f);
}

static void check_no_memory(const bpt_model *m, bpt_pool *pool) {
    const uint64_t live = bpt_memory_live();
    bpt_network *net = NULL;
    int64_t n = 0;
    for (;; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_network_create(m, 2, BPT_F32, options.learning, pool, &net);
        bpt_memory_fail_at(-1);
        if (status == BPT_OK) break;
        assert_int_equal(status, BPT_ENOMEM);
        assert_null(net);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_in_range(n, 20, 5000);
    bpt_network_free(net);
    assert_int_equal(bpt_memory_live(), live);
}

static void test_no_memory(void **state) {
    (void)state;
    net_fixture f = net_open(net_tiny, 2, options);
    part_fixture p = open_before(&f, "fc1");
    check_no_memory(p.head_model, f.pool);
    check_no_memory(p.tail_model, f.pool);
    part_close(&p);
    net_close(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plan_is_what_is_allocated),
        cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_border_stays),
        cmocka_unit_test(test_sharing_saves),
        cmocka_unit_test(test_times_cover_both_halves),
        cmocka_unit_test(test_path_of_a_gradient),
        cmocka_unit_test(test_times_of_layers),
        cmocka_unit_test(test_head_that_is_not_finite),
        cmocka_unit_test(test_border_that_is_not_finite),
        cmocka_unit_test(test_clipping_is_refused),
        cmocka_unit_test(test_no_memory),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
