#include "inner/cuda/cuda_update.h"

#include "base/integers.h"
#include "base/memory.h"
#include "inner/cuda/cuda_update_kernels.h"

struct bpt_cuda_update {
    bpt__update_plan plan;
    bool wants_norms;
    void *ranges, *segments, *of_ranges, *of_segments, *scales; /* the GPU's; NULL: not wanted */
};

static int64_t ranges_of(const bpt_cuda_segment *s) {
    return bpt_quotient_up(s->count, BPT__UPDATE_RANGE);
}

static bpt__update_rule rule_of(const bpt_learning *l) {
    const bpt_optimizer *optimizer = bpt_learning_optimizer(l);
    const bool has_momentum = optimizer->n_states(l) > 0;
    switch (optimizer->id) {
    case BPT_OPTIMIZER_ADAMW:
        return BPT__UPDATE_ADAMW;
    case BPT_OPTIMIZER_SGD:
        if (has_momentum && l->nesterov) return BPT__UPDATE_NESTEROV;
        break;
    case BPT_OPTIMIZER_LARS: /* its trust is in the scales */
        break;
    }
    return has_momentum ? BPT__UPDATE_MOMENTUM : BPT__UPDATE_PLAIN;
}

static bpt__update_plan plan_of(const bpt_learning *l, const bpt_cuda_vectors *v) {
    return (bpt__update_plan){
        .weights = v->weights,
        .gradients = v->gradients,
        .state = {v->state[0], v->state[1]},
        .copies = v->copies,
        .rule = rule_of(l),
        .momentum = l->momentum,
        .decay = l->decay,
        .beta1 = l->beta1,
        .beta2 = l->beta2,
        .eps = l->eps,
        .trusts = bpt_learning_optimizer(l)->trust != NULL,
        .wants_weights = bpt_learning_wants_weight_norms(l),
        .eta = l->eta,
        .clip_norm = l->clip_norm,
        .step_limit = l->step_limit,
    };
}

/* Cuts a segment into ranges. @return how many */
static int32_t cut_segment(const bpt_cuda_segment *segments, size_t number,
                           bpt__update_range *ranges) {
    const bpt_cuda_segment *segment = &segments[number];
    int32_t n = 0;
    for (int64_t done = 0; done < segment->count; done += BPT__UPDATE_RANGE)
        ranges[n++] = (bpt__update_range){
            .begin = segment->begin + done,
            .count = (int32_t)bpt_smaller(segment->count - done, BPT__UPDATE_RANGE),
            .segment = (int32_t)number,
        };
    return n;
}

/* Ranges of what learns, and behind them of what is frozen; what both lists say of each other. */
static void cut(const bpt_cuda_segment *segments, size_t n, bpt__update_segment *cut_segments,
                bpt__update_range *ranges) {
    int32_t n_ranges = 0;
    for (size_t s = 0; s < n; s++) {
        const bpt_cuda_segment *segment = &segments[s];
        cut_segments[s] = (bpt__update_segment){
            .running = segment->running,
            .decays = segment->decays,
            .has_copy = segment->has_copy,
            .first = n_ranges,
        };
        if (segment->frozen) continue;
        cut_segments[s].n = cut_segment(segments, s, ranges + n_ranges);
        n_ranges += cut_segments[s].n;
    }
    for (size_t s = 0; s < n; s++)
        if (segments[s].frozen) n_ranges += cut_segment(segments, s, ranges + n_ranges);
}

static bpt_status upload_tables(bpt_cuda_update *u, const bpt_cuda_segment *segments, size_t n,
                                bpt__update_segment *cut_segments, bpt__update_range *ranges) {
    const size_t n_ranges = (size_t)(u->plan.n_ranges + u->plan.n_frozen_ranges);
    cut(segments, n, cut_segments, ranges);
    BPT_TRY(bpt_cuda_upload(ranges, n_ranges * sizeof *ranges, &u->ranges));
    BPT_TRY(bpt_cuda_upload(cut_segments, n * sizeof *cut_segments, &u->segments));
    u->plan.ranges = u->ranges;
    u->plan.segments = u->segments;
    return BPT_OK;
}

static bpt_status make_tables(bpt_cuda_update *u, const bpt_cuda_segment *segments, size_t n) {
    bpt__update_segment *cut_segments = NULL;
    bpt__update_range *ranges = NULL;
    int64_t n_ranges[2] = {0}; /* of what learns, and of what is frozen */
    bpt_status st;
    for (size_t s = 0; s < n; s++) n_ranges[segments[s].frozen] += ranges_of(&segments[s]);
    u->plan.n_ranges = (int32_t)n_ranges[0];
    u->plan.n_frozen_ranges = (int32_t)n_ranges[1];
    u->plan.n_segments = (int32_t)n;
    BPT_TRY_GOTO(st, BPT_NEW("segments of the update", n, &cut_segments), out);
    BPT_TRY_GOTO(st, BPT_NEW("ranges of the update", (size_t)(n_ranges[0] + n_ranges[1]), &ranges),
                 out);
    st = upload_tables(u, segments, n, cut_segments, ranges);
out:
    bpt_free(ranges);
    bpt_free(cut_segments);
    return st;
}

static bpt_status make_norms(bpt_cuda_update *u) {
    const size_t n_ranges = (size_t)u->plan.n_ranges, n = (size_t)u->plan.n_segments;
    BPT_TRY(bpt_cuda_allocate(n_ranges * sizeof *u->plan.of_ranges, &u->of_ranges));
    BPT_TRY(bpt_cuda_allocate(n * sizeof *u->plan.of_segments, &u->of_segments));
    BPT_TRY(bpt_cuda_allocate(n * sizeof *u->plan.scales, &u->scales));
    u->plan.of_ranges = u->of_ranges;
    u->plan.of_segments = u->of_segments;
    u->plan.scales = u->scales;
    return BPT_OK;
}

bpt_status bpt_cuda_update_create(const bpt_cuda_segment *segments, size_t n,
                                  const bpt_learning *learning, bpt_cuda_vectors vectors,
                                  bpt_cuda_update **update) {
    bpt_cuda_update *u;
    bpt_status st;
    BPT_TRY(BPT_NEW("update", 1, &u));
    u->plan = plan_of(learning, &vectors);
    u->wants_norms = bpt_learning_wants_norms(learning);
    BPT_TRY_GOTO(st, make_tables(u, segments, n), err_free);
    if (u->wants_norms) BPT_TRY_GOTO(st, make_norms(u), err_free);
    *update = u;
    return BPT_OK;

err_free:
    bpt_cuda_update_free(u);
    return st;
}

void bpt_cuda_update_free(bpt_cuda_update *update) {
    if (!update) return;
    bpt_cuda_free(update->scales);
    bpt_cuda_free(update->of_segments);
    bpt_cuda_free(update->of_ranges);
    bpt_cuda_free(update->segments);
    bpt_cuda_free(update->ranges);
    bpt_free(update);
}

bpt_status bpt_cuda_update_run(bpt_cuda_stream stream, const bpt_cuda_update *update,
                               const bpt_cuda_step *step, bpt_cuda_outcome *outcome) {
    if (update->wants_norms) BPT_TRY(bpt__update_measure(stream, &update->plan, step));
    return bpt__update_apply(stream, &update->plan, step, outcome);
}

bpt_status bpt_cuda_update_check(bpt_cuda_stream stream, const bpt_cuda_update *update,
                                 bpt_cuda_outcome *outcome) {
    return bpt__update_look(stream, &update->plan, outcome);
}

bpt_status bpt_cuda_update_copies(bpt_cuda_stream stream, const bpt_cuda_update *update) {
    return bpt__update_narrow(stream, &update->plan);
}
