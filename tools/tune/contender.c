#include "tools/tune/contender.h"

#include "base/clock.h"
#include "base/memory.h"
#include "base/random.h"
#include "storage/loader/loader.h"

enum { SEED = 1, WARM_UP_STEPS = 3 };

struct bpt_contender {
    const bpt_tune_subject *subject;
    bpt_tuned_choices choices;
    bpt_pool *pool;
    bpt_network *network;
    bpt_loader *loader; /* NULL without a dataset */
    uint32_t *indices;  /* of a batch, shape [batch] */
    bpt_random order;
    bpt_batch ahead; /* what the next step trains on */
    bool has_ahead;
    bpt_task_costs *costs;
    uint64_t n_steps;
};

/* ---- life ---- */

static bpt_status open_network(bpt_contender *c) {
    const bpt_tune_subject *s = c->subject;
    float *weights;
    BPT_TRY(bpt_pool_open(c->choices.policy, (unsigned)c->choices.threads, &c->pool));
    bpt_model_use_costs(s->model, c->choices.cuts);
    BPT_TRY(
        bpt_network_create(s->model, s->batch, s->activations, s->learning, c->pool, &c->network));
    BPT_TRY(BPT_NEW("initial weights", s->model->segments.n_elements, &weights));
    bpt_segments_initialise(&s->model->segments, SEED, weights);
    const bpt_status status = bpt_network_set(c->network, BPT_VECTOR_WEIGHTS, weights);
    bpt_free(weights);
    return status;
}

static bpt_status open_loader(bpt_contender *c) {
    const bpt_tune_subject *s = c->subject;
    if (!s->dataset) return BPT_OK;
    const bpt_loader_options options = {
        .batch = (uint32_t)s->batch,
        .n_threads = (uint32_t)c->choices.loader_threads,
        .depth = (uint32_t)c->choices.prefetch,
        .mean = s->split->mean,
        .std = s->split->std,
        .seed = SEED,
    };
    /* Each its own images: what another has read just before is in the system's cache. */
    c->order = bpt_random_stream(bpt_clock_ns(), BPT_PURPOSE_SYNTHETIC, 0);
    BPT_TRY(BPT_NEW("indices of a batch", (size_t)s->batch, &c->indices));
    return bpt_loader_create(s->dataset, s->split, &options, &c->loader);
}

/* The first step touches all memory, the second tells what tasks take; later ones settle caches and
 * clock rates, where they are so short that it matters. */
static bpt_status warm_up(bpt_contender *c) {
    double seconds, sum = 0.0;
    for (int i = 0; i < WARM_UP_STEPS && (i < 2 || sum < 0.5); i++, sum += seconds)
        BPT_TRY(bpt_contender_run(c, 1, &seconds));
    return BPT_OK;
}

bpt_status bpt_contender_create(const bpt_tune_subject *subject, const bpt_tuned_choices *choices,
                                bpt_contender **out) {
    bpt_contender *c;
    BPT_TRY(BPT_NEW("side of a comparison", 1, &c));
    c->subject = subject;
    c->choices = *choices;
    bpt_status status = bpt_task_costs_create(&c->costs);
    if (status == BPT_OK) status = open_network(c);
    if (status == BPT_OK) status = open_loader(c);
    if (status == BPT_OK) status = warm_up(c);
    if (status == BPT_OK)
        *out = c;
    else
        bpt_contender_free(c);
    return status;
}

static void drop_ahead(bpt_contender *c) {
    if (c->has_ahead) bpt_loader_release(c->loader, &c->ahead);
    c->has_ahead = false;
}

void bpt_contender_free(bpt_contender *c) {
    if (!c) return;
    drop_ahead(c);
    bpt_loader_destroy(c->loader);
    bpt_network_free(c->network);
    bpt_pool_free(c->pool);
    bpt_task_costs_free(c->costs);
    bpt_free(c->indices);
    bpt_free(c);
}

/* ---- steps ---- */

/* A small fixed rate: the arithmetic of training without its convergence. */
static bpt_status train(bpt_contender *c, const float *pixels, const int32_t *labels) {
    bpt_batch_result result;
    bpt_network_set_draw(c->network, (bpt_draw){SEED, c->n_steps++, 0});
    return bpt_network_train(c->network, pixels, labels, 1e-4f, (float)c->subject->batch, &result);
}

/* Images in any order, as training takes them. */
static bpt_status request(bpt_contender *c) {
    const bpt_tune_subject *s = c->subject;
    for (int64_t i = 0; i < s->batch; i++)
        c->indices[i] = bpt_random_below(&c->order, s->split->count);
    return bpt_loader_request(c->loader, c->indices, NULL, (uint32_t)s->batch);
}

static bpt_status fetch_ahead(bpt_contender *c) {
    const bpt_status status = bpt_loader_next(c->loader, &c->ahead);
    c->has_ahead = status == BPT_OK;
    return status;
}

static bpt_status train_on_ahead(bpt_contender *c) {
    const bpt_status status = train(c, c->ahead.pixels, c->ahead.labels);
    drop_ahead(c);
    BPT_TRY(status);
    return fetch_ahead(c);
}

static bpt_status run_loaded(bpt_contender *c, uint64_t n_steps) {
    uint64_t requested = 0;
    if (!c->has_ahead) { /* the first of all */
        BPT_TRY(request(c));
        BPT_TRY(fetch_ahead(c));
    }
    for (uint64_t i = 0; i < n_steps; i++) {
        for (; requested < n_steps && bpt_loader_room(c->loader) > 0; requested++)
            BPT_TRY(request(c));
        BPT_TRY(train_on_ahead(c));
    }
    return BPT_OK;
}

static bpt_status run_synthetic(bpt_contender *c, uint64_t n_steps) {
    const bpt_synthetic *batch = &c->subject->synthetic;
    for (uint64_t i = 0; i < n_steps; i++) BPT_TRY(train(c, batch->pixels, batch->labels));
    return BPT_OK;
}

bpt_status bpt_contender_run(bpt_contender *c, uint64_t n_steps, double *seconds) {
    const uint64_t start_ns = bpt_clock_ns();
    BPT_TRY(c->loader ? run_loaded(c, n_steps) : run_synthetic(c, n_steps));
    *seconds = bpt_clock_seconds_since(start_ns);
    return bpt_task_costs_note(c->costs, c->network);
}

size_t bpt_contender_n_cuts(const bpt_contender *c) {
    return bpt_network_n_cuts(c->network);
}

bpt_status bpt_contender_note_parts(const bpt_contender *c, bpt_cost_table *costs) {
    return bpt_network_note_costs(c->network, costs);
}

const bpt_task_costs *bpt_contender_costs(const bpt_contender *c) {
    return c->costs;
}
