/* A network on a split: sums over its records, what is said of each of them, and how it ends early.
 */
#include "base/memory.h"
#include "tests/base/near.h"
#include "tests/storage/made_dataset.h"
#include "tools/evaluate.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { COUNT = 50, BATCH = 8, SALT = 1, CLASSES = 3 };

static const char text[] =
    "name: small\n"
    "input: [1, 6, 6]\n"
    "classes: 3\n"
    "layers:\n"
    "  - fc: {name: fc1, outputs: classes}\n";

static made_place place;
static bpt_dataset *dataset;
static const bpt_split *split;
static bpt_model *model;
static bpt_pool *pool;
static bpt_network *net;

static int set_up(void **state) {
    (void)state;
    const bpt_writer_options o = made_options("test", 1, 6, 6);
    place = made_place_create();
    float *flat;
    if (made_split(place.dataset, &o, SALT, COUNT) != BPT_OK ||
        bpt_dataset_open(place.dataset, &dataset) != BPT_OK ||
        bpt_dataset_find(dataset, "test", &split) != BPT_OK ||
        bpt_model_parse("small", text, sizeof text - 1, NULL, &model) != BPT_OK ||
        bpt_pool_open("fifo", 2, &pool) != BPT_OK ||
        bpt_network_create(model, BATCH, BPT_F32, (bpt_learning){0}, pool, &net) != BPT_OK ||
        BPT_NEW("weights", model->segments.n_elements, &flat) != BPT_OK)
        return -1;
    bpt_segments_initialise(&model->segments, 1, flat);
    const bpt_status status = bpt_network_set(net, BPT_VECTOR_WEIGHTS, flat);
    bpt_free(flat);
    return status == BPT_OK ? 0 : -1;
}

static int tear_down(void **state) {
    (void)state;
    bpt_network_free(net);
    bpt_pool_free(pool);
    bpt_model_free(model);
    bpt_dataset_close(dataset);
    made_place_remove(&place);
    return 0;
}

/* ---- whom the network tells: ld --wrap ---- */

static const bpt_answer *told; /* NULL: nobody */

void __real_bpt_network_tell_answers(bpt_network *network, bpt_answer *answers);
void __wrap_bpt_network_tell_answers(bpt_network *network, bpt_answer *answers);

void __wrap_bpt_network_tell_answers(bpt_network *network, bpt_answer *answers) {
    told = answers;
    __real_bpt_network_tell_answers(network, answers);
}

/* ---- what is said of each record ---- */

typedef struct {
    uint32_t n, next;          /* records; the one that comes next */
    bpt_answer answers[COUNT]; /* by record */
    uint32_t fails_at;         /* batch, from 1; 0: none */
    uint32_t n_batches;
} taken;

static bpt_status take(void *arg, const bpt_batch_answers *batch) {
    taken *t = arg;
    assert_int_equal(batch->first, t->next);
    assert_true(batch->n >= 1 && batch->first + batch->n <= COUNT);
    for (uint32_t i = 0; i < batch->n; i++) {
        const uint32_t record = batch->first + i;
        assert_int_equal(batch->labels[i], made_label(SALT, record, CLASSES));
        t->answers[record] = batch->answers[i];
    }
    t->n += batch->n;
    t->next += batch->n;
    return ++t->n_batches == t->fails_at ? bpt_fail(BPT_EIO, "no room") : BPT_OK;
}

static bpt_evaluation evaluation_of(uint32_t first, uint32_t count) {
    return (bpt_evaluation){.dataset = dataset,
                            .split = split,
                            .normalise = split,
                            .first = first,
                            .count = count,
                            .batch = BATCH,
                            .loader_threads = 2};
}

static bpt_batch_result evaluate(const bpt_evaluation *e) {
    bpt_batch_result result;
    assert_int_equal(bpt_evaluate(net, e, &result), BPT_OK);
    assert_int_equal(result.n_samples, e->count);
    return result;
}

/* ---- tests ---- */

/* Parts come to the whole, wherever they begin, and whether or not batches are full. */
static void test_sums(void **state) {
    (void)state;
    const bpt_evaluation all = evaluation_of(0, COUNT);
    const bpt_batch_result whole = evaluate(&all);
    assert_true(whole.loss_sum > 1 && whole.n_correct > 0 && whole.n_correct < COUNT);
    static const uint32_t cuts[] = {1, 8, 21, 49};
    for (size_t i = 0; i < sizeof cuts / sizeof *cuts; i++) {
        const bpt_evaluation a = evaluation_of(0, cuts[i]);
        const bpt_evaluation b = evaluation_of(cuts[i], COUNT - cuts[i]);
        const bpt_batch_result x = evaluate(&a), y = evaluate(&b);
        assert_near(x.loss_sum + y.loss_sum, whole.loss_sum, 1e-4);
        assert_int_equal(x.n_correct + y.n_correct, whole.n_correct);
    }
    const bpt_evaluation none = evaluation_of(3, 0);
    assert_near(evaluate(&none).loss_sum, 0, 0);
}

/* Images are brought to the mean and deviation of the split that was trained on. */
static void test_normalising(void **state) {
    (void)state;
    bpt_split other = *split;
    const double mean = 0.1, std = 3;
    other.mean = &mean;
    other.std = &std;
    bpt_evaluation e = evaluation_of(0, COUNT);
    const bpt_batch_result own = evaluate(&e);
    e.normalise = &other;
    const bpt_batch_result mean_of_another = evaluate(&e);
    assert_true(fabs(own.loss_sum - mean_of_another.loss_sum) > 0.1);
    other.std = split->std;
    const bpt_batch_result deviation_of_own = evaluate(&e);
    assert_true(fabs(deviation_of_own.loss_sum - mean_of_another.loss_sum) > 0.1);
    assert_true(fabs(deviation_of_own.loss_sum - own.loss_sum) > 0.1);
}

static taken answers_of(bpt_evaluation e) {
    taken t = {.next = e.first};
    e.take = take;
    e.take_arg = &t;
    const bpt_batch_result result = evaluate(&e);
    assert_int_equal(t.n, e.count);
    assert_null(told);
    double loss_sum = 0;
    uint32_t n_correct = 0;
    for (uint32_t r = e.first; r < e.first + e.count && !e.no_labels; r++) {
        loss_sum -= log(t.answers[r].label_probability);
        n_correct += t.answers[r].predicted == (int32_t)made_label(SALT, r, CLASSES);
    }
    assert_near(result.loss_sum, loss_sum, 1e-4);
    assert_int_equal(result.n_correct, n_correct);
    return t;
}

static void test_answers(void **state) {
    (void)state;
    const taken all = answers_of(evaluation_of(0, COUNT));
    const taken some = answers_of(evaluation_of(5, 20));
    for (uint32_t r = 5; r < 25; r++) {
        assert_int_equal(some.answers[r].predicted, all.answers[r].predicted);
        assert_near(some.answers[r].probability, all.answers[r].probability, 1e-6);
    }
}

/* Without labels as much is said as with them, but of these. */
static void test_no_labels(void **state) {
    (void)state;
    bpt_evaluation e = evaluation_of(2, 21);
    const taken labelled = answers_of(e);
    e.no_labels = true;
    const taken t = answers_of(e);
    for (uint32_t r = 2; r < 23; r++) {
        assert_int_equal(t.answers[r].predicted, labelled.answers[r].predicted);
        assert_near(t.answers[r].probability, labelled.answers[r].probability, 1e-6);
        assert_near(t.answers[r].label_probability, 0, 0);
    }
    assert_near(evaluate(&e).loss_sum, 0, 0); /* nobody asks for answers */
}

static bool stop_at_third(const void *arg) {
    int *n = *(int *const *)arg;
    return ++*n == 3;
}

static void test_early_ends(void **state) {
    (void)state;
    bpt_evaluation e = evaluation_of(0, COUNT);
    bpt_batch_result result;
    int n = 0, *const counts = &n;
    e.stop = stop_at_third;
    e.stop_arg = &counts;
    assert_int_equal(bpt_evaluate(net, &e, &result), BPT_ESTOPPED);
    assert_int_equal(result.n_samples, 2 * BATCH);
    taken t = {.fails_at = 2};
    e.stop = NULL;
    e.take = take;
    e.take_arg = &t;
    assert_int_equal(bpt_evaluate(net, &e, &result), BPT_EIO);
    assert_int_equal(t.n, 2 * BATCH);
    assert_null(told);
}

/* Where memory ends the network does not tell what is gone, and nothing is left. */
static void test_lack_of_memory(void **state) {
    (void)state;
    bpt_evaluation e = evaluation_of(0, COUNT);
    bpt_status status = BPT_ENOMEM;
    int n = 0;
    e.no_labels = true;
    e.take = take;
    for (; status == BPT_ENOMEM; n++) {
        taken t = {0};
        bpt_batch_result result;
        const uint64_t live = bpt_memory_live();
        e.take_arg = &t;
        bpt_memory_fail_at(n);
        status = bpt_evaluate(net, &e, &result);
        bpt_memory_fail_at(-1);
        assert_null(told);
        assert_true(bpt_memory_live() == live);
    }
    assert_int_equal(status, BPT_OK);
    assert_true(n > 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),       cmocka_unit_test(test_normalising),
        cmocka_unit_test(test_answers),    cmocka_unit_test(test_no_labels),
        cmocka_unit_test(test_early_ends), cmocka_unit_test(test_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
