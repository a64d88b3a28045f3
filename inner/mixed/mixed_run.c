/* What is done with a network that a device and the cores have in common. */
#include "inner/mixed/mixed_network.h"

#include <assert.h>

static const bpt_device_kind *kind_of(const bpt_mixed_network *m) {
    return m->device->fast->kind;
}

/* ---- the cores' part ---- */

/* Those of a batch from sample @p first on. */
static bpt_status run_cores(bpt_mixed_network *m, bpt_device_work work, const bpt_device_run *run,
                            int64_t first) {
    const bpt_shape in = m->wish.model->input;
    const float *pixels = run->input;
    assert(!m->wish.images);
    const int32_t *labels = run->labels ? run->labels + first : NULL;
    if (pixels) pixels += first * in.c * in.h * in.w;
    bpt_draw draw = run->draw;
    draw.first_sample += (uint64_t)first;
    bpt_network_set_draw(m->cores, draw);
    if (run->second) bpt_network_set_second(m->cores, run->second + first, run->parts + first);
    switch (work) {
    case BPT_DEVICE_TRAIN:
        return bpt_network_train(m->cores, pixels, labels, run->rate, run->denominator,
                                 &m->by_cores);
    case BPT_DEVICE_GRADIENT:
        return bpt_network_gradient(m->cores, pixels, labels, run->denominator, &m->by_cores);
    case BPT_DEVICE_APPLY:
        return bpt_network_apply(m->cores, run->rate);
    case BPT_DEVICE_EVALUATE:
    case BPT_DEVICE_N_WORKS:
        break;
    }
    return bpt_network_evaluate(m->cores, pixels, labels, &m->by_cores);
}

/* The cores have all samples. */
static void run_whole(bpt_mixed_network *m, bpt_device_work work, const bpt_device_run *run) {
    if (bpt_device_updates(work)) bpt_network_set_updates(m->cores, run->updates - 1);
    m->cores_status = run_cores(m, work, run, 0);
}

/* While the device computes its samples: the weights that it left behind the last update, and the
 * gradients for it. */
static bpt_status run_beside(bpt_mixed_network *m, bpt_device_work work,
                             const bpt_device_run *run) {
    const int64_t first = m->wish.batch - m->n_cores;
    if (m->fresh) BPT_TRY(bpt_network_set_learned(m->cores, BPT_VECTOR_WEIGHTS, m->flat));
    m->fresh = false;
    BPT_TRY(run_cores(m, work, run, first));
    if (work == BPT_DEVICE_EVALUATE) return BPT_OK;
    return bpt_network_get_learned(m->cores, BPT_VECTOR_GRADIENTS, m->flat);
}

/* ---- runs ---- */

/* What the device does first of a work that both do. */
static bpt_device_work part_of(const bpt_mixed_network *m, bpt_device_work work) {
    return m->cores && work == BPT_DEVICE_TRAIN ? BPT_DEVICE_GRADIENT : work;
}

bpt_status bpt__mixed_network_begin(bpt_device_network *net, bpt_device_work work,
                                    const bpt_device_run *run) {
    bpt_mixed_network *m = bpt__mixed(net);
    m->run = *run;
    m->by_cores = (bpt_batch_result){0};
    m->cores_status = BPT_OK;
    if (!m->fast) {
        run_whole(m, work, run);
        return BPT_OK;
    }
    BPT_TRY(kind_of(m)->begin(m->fast, part_of(m, work), run));
    if (m->cores && work != BPT_DEVICE_APPLY)
        m->cores_status = run_beside(m, part_of(m, work), run);
    return BPT_OK;
}

/* After an update: the cores take the new weights when they begin the next time. */
static bpt_status fetch_weights(bpt_mixed_network *m) {
    const size_t first = bpt_model_frozen_segments(m->wish.model);
    BPT_TRY(kind_of(m)->get(m->fast, BPT_VECTOR_WEIGHTS, first, m->flat));
    m->fresh = true;
    return BPT_OK;
}

static void add_result(bpt_batch_result *sum, const bpt_batch_result *r) {
    sum->loss_sum += r->loss_sum;
    sum->n_correct += r->n_correct;
    sum->n_samples += r->n_samples;
}

/* Of an update by the device, which has begun. */
static bpt_status end_update(bpt_mixed_network *m, bool *updated) {
    bpt_device_outcome outcome;
    const bpt_status status = kind_of(m)->end(m->fast, BPT_DEVICE_APPLY, &outcome);
    *updated = outcome.updated;
    if (status == BPT_OK) return outcome.updated ? fetch_weights(m) : BPT_OK;
    bpt_error first;
    bpt_error_get(&first);
    if (outcome.updated) (void)fetch_weights(m);
    return bpt_error_put(&first);
}

static bpt_status update(bpt_mixed_network *m, bool *updated) {
    m->run.next = NULL; /* it is on its way since the step began */
    BPT_TRY(kind_of(m)->begin(m->fast, BPT_DEVICE_APPLY, &m->run));
    return end_update(m, updated);
}

/* Both have ended without an error. */
static bpt_status join(bpt_mixed_network *m, bpt_device_work work, bpt_device_outcome *outcome) {
    add_result(&outcome->result, &m->by_cores);
    if (work == BPT_DEVICE_EVALUATE) return BPT_OK;
    BPT_TRY(kind_of(m)->add_gradients(m->fast, m->flat));
    return work == BPT_DEVICE_TRAIN ? update(m, &outcome->updated) : BPT_OK;
}

static bpt_status end_whole(const bpt_mixed_network *m, bpt_device_work work,
                            bpt_device_outcome *outcome) {
    outcome->result = m->by_cores;
    outcome->updated = bpt_device_updates(work) && bpt_network_updates(m->cores) == m->run.updates;
    return m->cores_status;
}

bpt_status bpt__mixed_network_end(bpt_device_network *net, bpt_device_work work,
                                  bpt_device_outcome *outcome) {
    bpt_mixed_network *m = bpt__mixed(net);
    *outcome = (bpt_device_outcome){0};
    if (!m->fast) return end_whole(m, work, outcome);
    if (m->cores && work == BPT_DEVICE_APPLY) return end_update(m, &outcome->updated);
    BPT_TRY(kind_of(m)->end(m->fast, part_of(m, work), outcome));
    BPT_TRY(m->cores_status);
    return m->cores ? join(m, work, outcome) : BPT_OK;
}

/* ---- vectors ---- */

bpt_status bpt__mixed_network_get(bpt_device_network *net, bpt_vector which, size_t first,
                                  float *flat) {
    bpt_mixed_network *m = bpt__mixed(net);
    if (m->fast) return kind_of(m)->get(m->fast, which, first, flat);
    return first > 0 ? bpt_network_get_learned(m->cores, which, flat)
                     : bpt_network_get(m->cores, which, flat);
}

/* What is frozen the cores have since all weights were set. */
bpt_status bpt__mixed_network_set(bpt_device_network *net, bpt_vector which, size_t first,
                                  const float *flat) {
    bpt_mixed_network *m = bpt__mixed(net);
    const bool cores_too = m->cores && (!m->fast || which == BPT_VECTOR_WEIGHTS);
    if (m->fast) BPT_TRY(kind_of(m)->set(m->fast, which, first, flat));
    if (which == BPT_VECTOR_WEIGHTS) m->fresh = false;
    if (!cores_too) return BPT_OK;
    return first > 0 ? bpt_network_set_learned(m->cores, which, flat)
                     : bpt_network_set(m->cores, which, flat);
}

/* ---- asking ---- */

const char *bpt__mixed_network_sharing(const bpt_device_network *net) {
    return ((const bpt_mixed_network *)net)->sharing;
}

typedef struct {
    bpt_device_visit visit;
    void *context;
} visitor;

static void visit_one(void *context, const char *label, const char *kind, unsigned n_tasks,
                      uint64_t ns) {
    const visitor *v = context;
    (void)n_tasks;
    v->visit(v->context, label, kind, ns);
}

void bpt__mixed_network_visit(const bpt_device_network *net, bpt_device_visit visit,
                              void *context) {
    const bpt_mixed_network *m = (const bpt_mixed_network *)net;
    visitor v = {visit, context};
    if (m->fast) kind_of(m)->visit(m->fast, visit, context);
    if (!m->fast) bpt_network_visit_times(m->cores, visit_one, &v);
}

uint64_t bpt__mixed_network_products_ns(const bpt_device_network *net) {
    const bpt_mixed_network *m = (const bpt_mixed_network *)net;
    return m->fast ? kind_of(m)->products_ns(m->fast) : 0;
}
