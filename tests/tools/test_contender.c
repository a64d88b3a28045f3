/* The steps of a side of bpt-tune's comparisons: what it trains on, and how often. */
#include "base/memory.h"
#include "storage/loader/loader.h"
#include "tests/base/near.h"
#include "tests/storage/made_dataset.h"
#include "tools/tune/contender.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { COUNT = 50, BATCH = 4 };

static const char text[] =
    "name: small\n"
    "input: [1, 6, 6]\n"
    "classes: 3\n"
    "layers:\n"
    "  - fc: {name: fc1, outputs: classes}\n";

/* ---- what is done, and how long it takes: ld --wrap ---- */

static struct {
    unsigned n_steps, n_requests, n_taken, n_released;
    uint64_t next_draw;
    double step_s; /* of each run of steps, by the clock */
    unsigned asked[COUNT];
    bool shuffled;
} done;

bpt_status __real_bpt_network_train(bpt_network *net, const void *input, const int32_t *labels,
                                    float rate, float denominator, bpt_batch_result *result);
bpt_status __wrap_bpt_network_train(bpt_network *net, const void *input, const int32_t *labels,
                                    float rate, float denominator, bpt_batch_result *result);
void __real_bpt_network_set_draw(bpt_network *net, bpt_draw draw);
void __wrap_bpt_network_set_draw(bpt_network *net, bpt_draw draw);
bpt_status __real_bpt_loader_request(bpt_loader *l, const uint32_t *indices, const uint32_t *passes,
                                     uint32_t n);
bpt_status __wrap_bpt_loader_request(bpt_loader *l, const uint32_t *indices, const uint32_t *passes,
                                     uint32_t n);
bpt_status __real_bpt_loader_next(bpt_loader *l, bpt_batch *batch);
bpt_status __wrap_bpt_loader_next(bpt_loader *l, bpt_batch *batch);
void __real_bpt_loader_release(bpt_loader *l, const bpt_batch *batch);
void __wrap_bpt_loader_release(bpt_loader *l, const bpt_batch *batch);
double __wrap_bpt_clock_seconds_since(uint64_t start_ns);

bpt_status __wrap_bpt_network_train(bpt_network *net, const void *input, const int32_t *labels,
                                    float rate, float denominator, bpt_batch_result *result) {
    assert_true(rate > 0 && rate < 1e-3f); /* without convergence */
    assert_near(denominator, BATCH, 0);
    done.n_steps++;
    return __real_bpt_network_train(net, input, labels, rate, denominator, result);
}

/* What is drawn in a step is another thing in the next. */
void __wrap_bpt_network_set_draw(bpt_network *net, bpt_draw draw) {
    assert_int_equal(draw.step, done.next_draw++);
    __real_bpt_network_set_draw(net, draw);
}

bpt_status __wrap_bpt_loader_request(bpt_loader *l, const uint32_t *indices, const uint32_t *passes,
                                     uint32_t n) {
    assert_int_equal(n, BATCH);
    done.n_requests++;
    for (uint32_t i = 0; i < n; i++) {
        assert_true(indices[i] < COUNT);
        done.asked[indices[i]]++;
        if (i > 0 && indices[i] != indices[i - 1] + 1) done.shuffled = true;
    }
    return __real_bpt_loader_request(l, indices, passes, n);
}

bpt_status __wrap_bpt_loader_next(bpt_loader *l, bpt_batch *batch) {
    done.n_taken++;
    return __real_bpt_loader_next(l, batch);
}

void __wrap_bpt_loader_release(bpt_loader *l, const bpt_batch *batch) {
    done.n_released++;
    __real_bpt_loader_release(l, batch);
}

double __wrap_bpt_clock_seconds_since(uint64_t start_ns) {
    (void)start_ns;
    return done.step_s;
}

/* ---- a side ---- */

static made_place place;
static bpt_dataset *dataset;
static bpt_tune_subject subject;

static int set_up(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("train", 1, 6, 6);
    place = made_place_create();
    subject = (bpt_tune_subject){.batch = BATCH, .activations = BPT_F32};
    return made_split(place.dataset, &o, 1, COUNT) == BPT_OK &&
                   bpt_dataset_open(place.dataset, &dataset) == BPT_OK &&
                   bpt_dataset_find(dataset, "train", &subject.split) == BPT_OK &&
                   bpt_model_parse("small", text, sizeof text - 1, NULL, &subject.model) ==
                       BPT_OK &&
                   bpt_synthetic_make(subject.model, BATCH, 1, false, &subject.synthetic) == BPT_OK
               ? 0
               : -1;
}

static int tear_down(void **state) {
    (void)state;
    bpt_synthetic_release(&subject.synthetic);
    bpt_model_free(subject.model);
    bpt_dataset_close(dataset);
    made_place_remove(&place);
    return 0;
}

static bpt_contender *create(double step_s) {
    const bpt_tuned_choices choices = {
        .threads = 1, .policy = "fifo", .loader_threads = 2, .prefetch = 3};
    bpt_contender *c;
    memset(&done, 0, sizeof done);
    done.step_s = step_s;
    assert_int_equal(bpt_contender_create(&subject, &choices, &c), BPT_OK);
    return c;
}

static void run(bpt_contender *c, uint64_t n) {
    double seconds = 0;
    const unsigned before = done.n_steps;
    assert_int_equal(bpt_contender_run(c, n, &seconds), BPT_OK);
    assert_int_equal(done.n_steps, before + n);
    assert_near(seconds, done.step_s, 0); /* of all of them */
}

/* Two steps at least, and a third where these took less than half a second. */
static void test_warming_up(void **state) {
    (void)state;
    static const struct {
        double step_s;
        unsigned n;
    } cases[] = {{0.01, 3}, {0.24, 3}, {0.26, 2}, {10, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        bpt_contender_free(create(cases[i].step_s));
        assert_int_equal(done.n_steps, cases[i].n);
    }
}

static void test_made_up_images(void **state) {
    (void)state;
    bpt_contender *c = create(1);
    run(c, 5);
    run(c, 1);
    assert_int_equal(done.n_requests, 0);
    bpt_contender_free(c);
}

/* A batch is loaded for each step, the next one while it is made; in any order, of all the split.
 */
static void test_loaded_images(void **state) {
    (void)state;
    unsigned n_asked = 0;
    subject.dataset = dataset;
    bpt_contender *c = create(1); /* two steps */
    assert_int_equal(done.n_requests, 3);
    for (unsigned n = 1; n <= 20; n++) {
        const unsigned requests = done.n_requests, released = done.n_released;
        run(c, n);
        assert_int_equal(done.n_requests, requests + n);
        assert_int_equal(done.n_released, released + n);
        assert_int_equal(done.n_taken, done.n_steps + 1);
    }
    bpt_contender_free(c);
    subject.dataset = NULL;
    assert_int_equal(done.n_taken, done.n_released);
    assert_true(done.shuffled);
    for (unsigned i = 0; i < COUNT; i++) n_asked += done.asked[i] > 0;
    assert_true(n_asked > COUNT / 2); /* of 852 images */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_warming_up),
        cmocka_unit_test(test_made_up_images),
        cmocka_unit_test(test_loaded_images),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
