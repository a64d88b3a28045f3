/* What a job is said to take of memory, term by term. */
#include "inner/models/model_part.h"
#include "storage/dataset/scratch.h"
#include "storage/loader/loader.h"
#include "tests/tools/made_job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static size_t n_weights(void) {
    return made.model->segments.n_elements;
}

/* ---- batches ---- */

/* An image in a batch, with a label, another to mix with, and how much of each. */
static size_t image_bytes(void) {
    return MADE_VALUES * sizeof(float) + 2 * sizeof(int32_t) + sizeof(float);
}

/* --prefetch batches, and three where something is evaluated, also as long as no dataset is known.
 */
static void test_batches(void **state) {
    (void)state;
    bpt_job job = made_job_alone(&made.options);
    assert_int_equal(made_plan(&job).batches, (5 + 3) * MADE_BATCH * image_bytes());
    made_job_give_data(&job);
    assert_int_equal(made_plan(&job).batches, (5 + 3) * MADE_BATCH * image_bytes());
    job.test = NULL;
    assert_int_equal(made_plan(&job).batches, 5 * MADE_BATCH * image_bytes());
    const bpt_job server = made_job_of(&made.options, BPT_UPDATE_AGWU, 2, 3, 1);
    assert_int_equal(made_plan(&server).batches, 0);
}

/* Each of the three threads that load has scratch to augment in, of training alone. */
static void test_scratch_to_augment_in(void **state) {
    (void)state;
    bpt_train_options o = made.options;
    o.augment = "crop=2,flip";
    const bpt_loader_options loader = {
        .batch = MADE_BATCH, .n_threads = 3, .depth = 5, .augment = bpt_train_augment(&o)};
    const bpt_job plain = made_job_alone(&made.options), augmented = made_job_alone(&o);
    const size_t more = bpt_loader_bytes(&loader, MADE_VALUES) - 5 * MADE_BATCH * image_bytes();
    assert_true(more >= 3 * MADE_VALUES);
    assert_int_equal(made_plan(&augmented).batches, made_plan(&plain).batches + more);
}

static bool judges(bpt_update_choice update, bpt_job *job, bpt_train_options *o) {
    *o = made.options;
    o->quality = BPT_QUALITY_HELD_OUT;
    *job = made_job_of(o, update, 0, 2, 0);
    const bpt_job plain = made_job_of(&made.options, update, 0, 2, 0);
    const size_t more = made_plan(job).batches - made_plan(&plain).batches;
    assert_true(more == 0 || more == MADE_BATCH * image_bytes());
    return more != 0;
}

/* Who judges its weights has one more batch, of images that are held out. */
static void test_images_that_judge(void **state) {
    (void)state;
    bpt_train_options o;
    bpt_job job;
    assert_false(judges(BPT_UPDATE_ALLREDUCE, &job, &o));
    assert_true(judges(BPT_UPDATE_AGWU, &job, &o));
}

/* Encoded images are decoded by three threads of each split, and one more of those that judge. */
static void test_decoding(void **state) {
    (void)state;
    bpt_train_options o;
    bpt_job job, judging;
    assert_true(judges(BPT_UPDATE_AGWU, &judging, &o));
    made_job_give_data(&judging);
    job = made_job_alone(&made.options);
    made_job_give_data(&job);
    const size_t raw = made_plan(&job).batches, raw_judging = made_plan(&judging).batches;
    made.train.extent.most_pixels = 100;
    made.test.extent.most_pixels = 1000;
    const size_t of_train = 100 * 12 + MADE_VALUES, of_test = 1000 * 12 + MADE_VALUES;
    const size_t encoded = made_plan(&job).batches, encoded_judging = made_plan(&judging).batches;
    job.test = NULL;
    const size_t untested = made_plan(&job).batches;
    made.train.extent.most_pixels = made.test.extent.most_pixels = 0;
    assert_int_equal(encoded - raw, 3 * of_train + 3 * of_test);
    assert_int_equal(encoded_judging - raw_judging, 4 * of_train + 3 * of_test);
    assert_int_equal(untested, 5 * MADE_BATCH * image_bytes() + 3 * of_train);
}

/* To a device go two pinned batches more: of floats, or of images and how each is moved. */
static void test_batches_for_a_device(void **state) {
    (void)state;
    bpt_train_options o;
    bpt_device device = {.name = "made up"};
    bpt_job job;
    assert_true(judges(BPT_UPDATE_AGWU, &job, &o));
    const size_t on_cores = made_plan(&job).batches;
    job.device = &device;
    assert_int_equal(made_plan(&job).batches,
                     on_cores + 2 * MADE_BATCH * MADE_VALUES * sizeof(float));
    device.takes_images = true;
    const bpt_loader_options loader = {
        .batch = MADE_BATCH, .n_threads = 3, .depth = 1, .as_images = true};
    assert_int_equal(made_plan(&job).batches,
                     (5 + 3 + 1) * bpt_loader_bytes(&loader, MADE_VALUES) +
                         2 * MADE_BATCH * (MADE_VALUES + sizeof(bpt_image_move)));
    assert_int_equal(made_plan(&job).network.total, 0); /* it is there */
}

/* ---- order, and samples that are given out ---- */

static void test_order(void **state) {
    (void)state;
    bpt_train_options o = made.options;
    const bpt_order random = {.kind = BPT_ORDER_SHUFFLE};
    const size_t order = bpt_sampler_bytes(random, MADE_TRAIN);
    const size_t shares = bpt_partition_bytes(MADE_TRAIN);
    bpt_job job = made_job_alone(&o);
    assert_true(order >= MADE_TRAIN * sizeof(uint32_t) && shares > 0);
    assert_int_equal(made_plan(&job).order, order);
    job = made_job_of(&o, BPT_UPDATE_ALLREDUCE, 0, 2, 0);
    assert_int_equal(made_plan(&job).order, order);
    job = made_job_of(&o, BPT_UPDATE_AGWU, 0, 2, 0);
    assert_int_equal(made_plan(&job).order, order + shares);
    job.held_out = 70; /* all are listed, those held out and those trained on */
    assert_int_equal(made_plan(&job).order, order + shares + (MADE_TRAIN + 70) * sizeof(uint32_t));
    job = made_job_of(&o, BPT_UPDATE_AGWU, 2, 3, 1);
    assert_int_equal(made_plan(&job).order, 0);
    o.order = BPT_ORDER_BLOCKS;
    o.order_block = 10;
    const bpt_order blocks = {.kind = BPT_ORDER_BLOCKS, .block = 10};
    job = made_job_alone(&o);
    assert_true(bpt_sampler_bytes(blocks, MADE_TRAIN) != order);
    assert_int_equal(made_plan(&job).order, bpt_sampler_bytes(blocks, MADE_TRAIN));
}

/* Rank 0 has the dataset; another rank notes of each sample of it whether it is there, and asks for
 * its part of the test split. */
static void test_delivery(void **state) {
    (void)state;
    bpt_train_options o = made.options;
    const size_t scratch = bpt_scratch_bytes(bpt_dataset_describe(made.dataset));
    assert_true(scratch > 0);
    for (uint32_t rank = 0; rank < 3; rank++) {
        bpt_job job = made_job_of(&o, BPT_UPDATE_AGWU, rank, 3, 0);
        o.data_mode = BPT_DATA_SCATTER;
        assert_int_equal(made_plan(&job).delivery, 0); /* without a dataset */
        made_job_give_data(&job);
        assert_int_equal(made_plan(&job).delivery,
                         bpt_delivery_bytes(MADE_TRAIN, MADE_TEST / 3, MADE_VALUES, 3, rank) +
                             (rank == 0 ? 0 : scratch));
        o.data_mode = BPT_DATA_SHARED;
        assert_int_equal(made_plan(&job).delivery, 0);
    }
}

/* ---- weights ---- */

/* One vector to read and write through; then the first weights, or two that a merge compares. */
static void test_vectors(void **state) {
    (void)state;
    static const struct {
        bpt_update_choice update;
        size_t n;
    } cases[] = {{BPT_UPDATE_AGWU, 3},
                 {BPT_UPDATE_SGWU, 3},
                 {BPT_UPDATE_EASGD, 3},
                 {BPT_UPDATE_ALLREDUCE, 2}};
    const bpt_job one = made_job_alone(&made.options);
    assert_int_equal(made_plan(&one).vectors, 2 * n_weights() * sizeof(float));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const bpt_job job = made_job_of(&made.options, cases[i].update, 0, 2, 0);
        assert_int_equal(made_plan(&job).vectors, cases[i].n * n_weights() * sizeof(float));
    }
    const bpt_job server = made_job_of(&made.options, BPT_UPDATE_AGWU, 2, 3, 1);
    assert_int_equal(made_plan(&server).vectors, 2 * n_weights() * sizeof(float));
}

/* Shards are planned for at an even part, or twice that where they may go by speed. */
static void test_exchange(void **state) {
    (void)state;
    const size_t n = n_weights();
    bpt_job job = made_job_alone(&made.options);
    assert_int_equal(made_plan(&job).exchange, 0);
    job = made_job_of(&made.options, BPT_UPDATE_ALLREDUCE, 1, 4, 0);
    assert_int_equal(made_plan(&job).exchange, bpt_gradient_sums_bytes(made.model, 4));
    job = made_job_of(&made.options, BPT_UPDATE_AGWU, 1, 4, 0);
    job.terms.momentum = 0.5;
    assert_int_equal(made_plan(&job).exchange, bpt_exchange_bytes(n, 4, 0.25, &job.terms));
    job.partition = BPT_PARTITION_IDPA;
    assert_int_equal(made_plan(&job).exchange, bpt_exchange_bytes(n, 4, 0.5, &job.terms));
}

/* Servers have the shards, and workers what they send and what comes back. */
static void test_exchange_with_servers(void **state) {
    (void)state;
    const size_t n = n_weights();
    bpt_job worker = made_job_of(&made.options, BPT_UPDATE_AGWU, 4, 9, 4);
    bpt_job server = made_job_of(&made.options, BPT_UPDATE_AGWU, 5, 9, 4);
    server.terms.momentum = worker.terms.momentum = 0.5;
    assert_int_equal(made_plan(&worker).exchange, 2 * n * sizeof(float));
    assert_int_equal(made_plan(&server).exchange,
                     bpt_exchange_server_bytes(n, 5, 0.25, &server.terms));
    server.partition = BPT_PARTITION_IDPA;
    const bpt_memory_plan plan = made_plan(&server);
    assert_int_equal(plan.exchange, bpt_exchange_server_bytes(n, 5, 0.5, &server.terms));
    assert_int_equal(plan.network.total, 0);
    assert_int_equal(plan.total, plan.vectors + plan.exchange);
}

/* What is frozen is exchanged by nobody, and nobody compares it. */
static void test_frozen(void **state) {
    (void)state;
    const size_t all = n_weights();
    assert_int_equal(bpt_model_freeze_before(made.model, "fc2"), BPT_OK);
    const size_t n = bpt_model_learned_elements(made.model);
    assert_true(0 < n && 2 * n < all);
    bpt_job job = made_job_of(&made.options, BPT_UPDATE_AGWU, 1, 4, 0);
    bpt_memory_plan plan = made_plan(&job);
    assert_int_equal(plan.vectors, 2 * all * sizeof(float));
    assert_int_equal(plan.exchange, bpt_exchange_bytes(n, 4, 0.25, &job.terms));
    assert_true(plan.network.gradients < plan.network.parameters / 2);
    job = made_job_of(&made.options, BPT_UPDATE_ALLREDUCE, 1, 4, 0);
    plan = made_plan(&job);
    made.model->n_frozen = 0;
    assert_true(plan.exchange < bpt_gradient_sums_bytes(made.model, 4) / 2);
}

/* ---- the network ---- */

static bpt_network_memory network_of(const bpt_model *model, int64_t batch) {
    const bpt_learning learning = bpt_train_learning(&made.options, 1);
    bpt_network_memory m;
    assert_int_equal(bpt_network_plan(model, batch, BPT_F32, learning, 2, &m), BPT_OK);
    return m;
}

static void assert_network(const bpt_network_memory *m, const bpt_network_memory *a,
                           const bpt_network_memory *b) {
    assert_int_equal(m->parameters, a->parameters + b->parameters);
    assert_int_equal(m->gradients, a->gradients + b->gradients);
    assert_int_equal(m->state, a->state + b->state);
    assert_int_equal(m->activations, a->activations + b->activations);
    assert_int_equal(m->activation_gradients, a->activation_gradients + b->activation_gradients);
    assert_int_equal(m->workspaces, a->workspaces + b->workspaces);
    assert_int_equal(m->total, a->total + b->total);
    assert_int_equal(m->unshared, a->unshared + b->unshared);
}

static size_t sum_of(const bpt_memory_plan *p) {
    return p->network.total + p->evaluation + p->border + p->batches + p->order + p->delivery +
           p->vectors + p->exchange + p->trace;
}

static const bpt_network_memory nothing;

static void test_network(void **state) {
    (void)state;
    bpt_train_options o = made.options;
    o.trace = "trace.json";
    o.data_mode = BPT_DATA_SCATTER;
    bpt_job job = made_job_of(&o, BPT_UPDATE_AGWU, 1, 3, 0);
    made_job_give_data(&job);
    const bpt_network_memory whole = network_of(made.model, MADE_BATCH);
    bpt_memory_plan plan = made_plan(&job);
    assert_true(plan.delivery > 0 && plan.trace == bpt_step_trace_bytes(&o, 2) && plan.trace > 0);
    assert_network(&plan.network, &whole, &nothing);
    assert_int_equal(plan.batch, MADE_BATCH);
    assert_int_equal(plan.total, sum_of(&plan));
    const bpt_network_memory more = {1, 2, 3, 4, 5, 6, 21, 30};
    bpt_memory_plan_add(&plan, &more);
    assert_network(&plan.network, &whole, &more);
    assert_int_equal(plan.total, sum_of(&plan));
}

/* In two parts: each rank trains the head and evaluates the whole, the host has the tail besides,
 * under allreduce for the batches of all ranks, and batches at the border with their labels. */
static void check_parts(bpt_update_choice update, int64_t batch_of_tail) {
    size_t border;
    bpt_model *head, *tail;
    bpt_network_memory forward;
    bpt_job job = made_job_of(&made.options, update, 1, 3, 0);
    assert_int_equal(bpt_model_find_border(made.model, "fc1", &border), BPT_OK);
    assert_int_equal(bpt_model_part(made.model, border, BPT_MODEL_HEAD, &head), BPT_OK);
    assert_int_equal(bpt_model_part(made.model, border, BPT_MODEL_TAIL, &tail), BPT_OK);
    assert_int_equal(bpt_network_plan_forward(made.model, MADE_BATCH, BPT_F32, 2, &forward),
                     BPT_OK);
    const bpt_network_memory of_head = network_of(head, MADE_BATCH);
    const bpt_network_memory of_tail = network_of(tail, batch_of_tail);
    const size_t n = head->segments.n_elements, all = n_weights();
    const bpt_memory_plan before = made_plan(&job);
    job.parting = (bpt_parting){BPT_PARTING_DONE, false, border};
    const bpt_memory_plan guest = made_plan(&job);
    job.parting.host = true;
    const bpt_memory_plan host = made_plan(&job);

    assert_network(&guest.network, &of_head, &nothing);
    assert_network(&host.network, &of_head, &of_tail);
    assert_true(guest.evaluation == forward.total && host.evaluation == forward.total);
    assert_true(before.evaluation == 0 && before.border == 0 && guest.border == 0);
    assert_int_equal(host.border,
                     3 * MADE_BATCH * (16 * 10 * 10 * sizeof(float) + sizeof(int32_t)));
    /* A vector has all weights; what is exchanged and compared are those of the head. */
    assert_true(2 * n < all);
    assert_int_equal(guest.vectors, 2 * all * sizeof(float));
    if (update == BPT_UPDATE_AGWU)
        assert_int_equal(host.exchange, bpt_exchange_bytes(n, 3, 1.0 / 3, &job.terms));
    else
        assert_int_equal(host.exchange, bpt_gradient_sums_bytes(head, 3));
    assert_true(guest.total == sum_of(&guest) && host.total == sum_of(&host));
    bpt_model_free(tail);
    bpt_model_free(head);
}

static void test_network_in_parts(void **state) {
    (void)state;
    check_parts(BPT_UPDATE_AGWU, MADE_BATCH);
    check_parts(BPT_UPDATE_ALLREDUCE, 3 * MADE_BATCH);
}

/* While it is still whole, to be measured, there is nothing else but weights to begin with. */
static void test_network_before_it_is_parted(void **state) {
    (void)state;
    bpt_job job = made_job_of(&made.options, BPT_UPDATE_AGWU, 1, 3, 0);
    const bpt_network_memory whole = network_of(made.model, MADE_BATCH);
    job.parting.stage = BPT_PARTING_BEFORE;
    const bpt_memory_plan plan = made_plan(&job);
    assert_network(&plan.network, &whole, &nothing);
    assert_int_equal(plan.vectors, 2 * n_weights() * sizeof(float));
    assert_int_equal(plan.batch, MADE_BATCH);
    assert_int_equal(plan.total, plan.network.total + plan.vectors);
    assert_int_equal(plan.total, sum_of(&plan));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_scratch_to_augment_in),
        cmocka_unit_test(test_images_that_judge),
        cmocka_unit_test(test_decoding),
        cmocka_unit_test(test_batches_for_a_device),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_delivery),
        cmocka_unit_test(test_vectors),
        cmocka_unit_test(test_exchange),
        cmocka_unit_test(test_exchange_with_servers),
        cmocka_unit_test(test_frozen),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_network_in_parts),
        cmocka_unit_test(test_network_before_it_is_parted),
    };
    return cmocka_run_group_tests(tests, made_set_up, made_tear_down);
}
