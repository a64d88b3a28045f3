#include "tools/tune/arm.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/loader.h"

enum { SEED = 1, WARM_UP_STEPS = 3 };

struct bpt_arm {
    const bpt_tune_subject *subject;
    bpt_tuned_choices choices;
    bpt_pool *pool;
    bpt_network *network;
    bpt_loader *loader; /* NULL without a dataset */
    uint32_t *indices;  /* of a batch, shape [batch] */
    bpt_random order;
    bpt_task_costs *costs;
    uint64_t n_steps;
};

/* ---- life ---- */

static bpt_status open_network(bpt_arm *arm) {
    const bpt_tune_subject *s = arm->subject;
    bpt_pool_options pool = BPT_POOL_OPTIONS_INIT;
    float *weights;
    pool.n_workers = (unsigned)arm->choices.threads;
    BPT_TRY(bpt_policy_find(arm->choices.policy, &pool.policy));
    BPT_TRY(bpt_pool_create(&pool, &arm->pool));
    bpt_model_use_costs(s->model, arm->choices.cuts);
    BPT_TRY(bpt_network_create(s->model, s->batch, s->activations, s->learning, arm->pool,
                               &arm->network));
    BPT_TRY(BPT_NEW("initial weights", s->model->segments.n_elements, &weights));
    bpt_segments_initialise(&s->model->segments, SEED, weights);
    const bpt_status status = bpt_network_set(arm->network, BPT_VECTOR_WEIGHTS, weights);
    bpt_free(weights);
    return status;
}

static bpt_status open_loader(bpt_arm *arm) {
    const bpt_tune_subject *s = arm->subject;
    if (!s->dataset) return BPT_OK;
    const bpt_loader_options options = {
        .batch = (uint32_t)s->batch,
        .n_threads = (uint32_t)arm->choices.loader_threads,
        .depth = (uint32_t)arm->choices.prefetch,
        .mean = s->split->mean,
        .std = s->split->std,
        .seed = SEED,
    };
    arm->order = bpt_random_stream(SEED, BPT_PURPOSE_SYNTHETIC, 0);
    BPT_TRY(BPT_NEW("indices of a batch", (size_t)s->batch, &arm->indices));
    return bpt_loader_create(s->dataset, s->split, &options, &arm->loader);
}

/* The first step touches all memory, the second tells what tasks take; later ones settle caches and
 * clock rates, where they are so short that it matters. */
static bpt_status warm_up(bpt_arm *arm) {
    double seconds, sum = 0.0;
    for (int i = 0; i < WARM_UP_STEPS && (i < 2 || sum < 0.5); i++, sum += seconds)
        BPT_TRY(bpt_arm_run(arm, 1, &seconds));
    return BPT_OK;
}

bpt_status bpt_arm_create(const bpt_tune_subject *subject, const bpt_tuned_choices *choices,
                          bpt_arm **out) {
    bpt_arm *arm;
    BPT_TRY(BPT_NEW("side of a comparison", 1, &arm));
    arm->subject = subject;
    arm->choices = *choices;
    bpt_status status = bpt_task_costs_create(&arm->costs);
    if (status == BPT_OK) status = open_network(arm);
    if (status == BPT_OK) status = open_loader(arm);
    if (status == BPT_OK) status = warm_up(arm);
    if (status == BPT_OK)
        *out = arm;
    else
        bpt_arm_free(arm);
    return status;
}

void bpt_arm_free(bpt_arm *arm) {
    if (!arm) return;
    bpt_loader_destroy(arm->loader);
    bpt_network_free(arm->network);
    bpt_pool_free(arm->pool);
    bpt_task_costs_free(arm->costs);
    bpt_free(arm->indices);
    bpt_free(arm);
}

/* ---- steps ---- */

/* A small fixed rate: the arithmetic of training without its convergence. */
static bpt_status train(bpt_arm *arm, const float *pixels, const int32_t *labels) {
    bpt_batch_result result;
    bpt_network_set_draw(arm->network, (bpt_draw){SEED, arm->n_steps++, 0});
    return bpt_network_train(arm->network, pixels, labels, 1e-4f, (float)arm->subject->batch,
                             &result);
}

/* Images in any order, as training takes them. */
static bpt_status request(bpt_arm *arm) {
    const bpt_tune_subject *s = arm->subject;
    for (int64_t i = 0; i < s->batch; i++)
        arm->indices[i] = bpt_random_below(&arm->order, s->split->count);
    return bpt_loader_request(arm->loader, arm->indices, NULL, (uint32_t)s->batch);
}

static bpt_status train_on_next(bpt_arm *arm) {
    bpt_batch batch;
    BPT_TRY(bpt_loader_next(arm->loader, &batch));
    const bpt_status status = train(arm, batch.pixels, batch.labels);
    bpt_loader_release(arm->loader, &batch);
    return status;
}

static bpt_status run_loaded(bpt_arm *arm, uint64_t n_steps) {
    uint64_t requested = 0;
    for (uint64_t i = 0; i < n_steps; i++) {
        for (; requested < n_steps && bpt_loader_room(arm->loader) > 0; requested++)
            BPT_TRY(request(arm));
        BPT_TRY(train_on_next(arm));
    }
    return BPT_OK;
}

static bpt_status run_synthetic(bpt_arm *arm, uint64_t n_steps) {
    const bpt_synthetic *batch = &arm->subject->synthetic;
    for (uint64_t i = 0; i < n_steps; i++) BPT_TRY(train(arm, batch->pixels, batch->labels));
    return BPT_OK;
}

bpt_status bpt_arm_run(bpt_arm *arm, uint64_t n_steps, double *seconds) {
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(arm->loader ? run_loaded(arm, n_steps) : run_synthetic(arm, n_steps));
    *seconds = bpt_clock_seconds_since(start_ns);
    return bpt_task_costs_note(arm->costs, arm->network);
}

const bpt_tuned_choices *bpt_arm_choices(const bpt_arm *arm) {
    return &arm->choices;
}

size_t bpt_arm_n_cuts(const bpt_arm *arm) {
    return bpt_network_n_cuts(arm->network);
}

bpt_status bpt_arm_note_parts(const bpt_arm *arm, bpt_cost_table *costs) {
    return bpt_network_note_costs(arm->network, costs);
}

const bpt_task_costs *bpt_arm_costs(const bpt_arm *arm) {
    return arm->costs;
}
