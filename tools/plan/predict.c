#include "tools/plan/predict.h"

#include "base/memory.h"
#include "outer/placement/placement.h"
#include "tools/train/exchange/pace.h"
#include "tools/train/job/batch_cut.h"

#include <math.h>

/* Of what ranks do alone: what is lost by less limits nothing. */
static const double worth_naming = 0.05;

/* ---- a node by itself ---- */

static double load_s(const bpt_node *node, double samples) {
    return samples * node->load_s_per_image;
}

/* @return what threads that train lose by a thread that computes beside them for so long */
static double lost_s(const bpt_node *node, double seconds) {
    return node->on_device ? 0 : seconds / node->threads;
}

/* The loader has a thread of its own, which takes its time from those that train, and cannot be
 * later than they are. */
double bpt_node_training_s(const bpt_node *node, double samples) {
    const double shared = bpt_node_step_s(node, samples) + lost_s(node, load_s(node, samples));
    return fmax(shared, load_s(node, samples));
}

double bpt_node_alone(const bpt_node *node, double samples) {
    return samples / bpt_node_training_s(node, samples);
}

static double sum_alone(const bpt_team *team, double samples) {
    double sum = 0;
    for (uint32_t r = 0; r < team->n; r++) sum += bpt_node_alone(team->nodes[r], samples);
    return sum;
}

/* @return the part of their speed that ranks lose by reading images */
static double lost_by_data(const bpt_team *team, double samples) {
    double without = 0;
    for (uint32_t r = 0; r < team->n; r++)
        without += samples / bpt_node_step_s(team->nodes[r], samples);
    return 1 - sum_alone(team, samples) / without;
}

static void name_limit(bpt_forecast *f, double data, double slowest, double messages) {
    const double lost[BPT_N_PLAN_LIMITS] = {worth_naming, data, slowest, messages};
    f->limit = BPT_PLAN_COMPUTE;
    for (int i = BPT_PLAN_DATA; i < BPT_N_PLAN_LIMITS; i++)
        if (lost[i] > lost[f->limit]) f->limit = (bpt_plan_limit)i;
}

static void predict_local(const bpt_team *team, const bpt_work *work, bpt_forecast *f) {
    f->images_per_s = bpt_node_alone(team->nodes[0], work->batch);
    f->part = 1;
    name_limit(f, lost_by_data(team, work->batch), 0, 0);
}

/* ---- exchanges of weights ---- */

/* What a rank has to do with exchanges, for each of its own. */
typedef struct traffic {
    double each_way; /* bytes on its link */
    double thread_s; /* processor time of the MPI thread: messages, merging */
    double copies_s; /* of the thread that trains, while the others wait */
} traffic;

/* @param f the rank's part of all pushes
 * @param p its part of the weights */
static traffic traffic_of(const bpt_node *node, const bpt_work *work, double f, double p) {
    const double own = 1 - p, others = p * (1 - f) / f;
    traffic t = {.each_way = work->weight_bytes * (own + others)};
    /* Weights are copied out and in for the push, and for the answer; and to merge a push is to
     * read it, and to read and write what it is merged into. */
    t.thread_s = 2 * t.each_way * node->message_s_per_byte + p / f * node->copy_s;
    t.copies_s = 2 * node->copy_s;
    return t;
}

/* @param[out] part of the weights that each rank hosts */
static void place(const bpt_team *team, const double *speed, double pushed_bytes_per_s,
                  bool in_rounds, double *links, double *part) {
    const bpt_place_inputs in = {
        .n_ranks = team->n,
        .speed = speed,
        .bytes_per_s = links,
        .pushed_bytes_per_s = pushed_bytes_per_s,
        .in_rounds = in_rounds,
    };
    for (uint32_t r = 0; r < team->n; r++) links[r] = team->nodes[r]->link_bytes_per_s;
    bpt_place_shards(&in, part);
}

static bpt_pace pace_at_start(const bpt_team *team, const bpt_work *work) {
    const bpt_pace_run run = {
        .epoch_samples = work->epoch_samples,
        .total_samples = work->total_samples,
        .batch_all = (uint64_t)work->batch * team->n,
        .n_workers = team->n,
        .shared_momentum = work->shared_momentum,
    };
    return bpt_pace_begin("auto", run);
}

/* @return steps between exchanges that a rank comes to */
static double steps_between(const bpt_node *node, const bpt_pace *start, double step_s,
                            double cost_s) {
    bpt_pace pace = *start;
    const bpt_pace_span span = {
        .steps = pace.least,
        .steps_s = step_s * node->threads * (double)pace.least,
        .exchange_s = cost_s,
        .rate = 1,
        .left = UINT64_MAX,
    };
    bpt_pace_note(&pace, &span);
    return (double)pace.every;
}

/* Nobody waits, but exchanges take time from training, and links set how often they can be. */
static void predict_agwu(const bpt_team *team, const bpt_work *work, double *speed, double *part,
                         double *every, bpt_forecast *f) {
    const bpt_pace pace = pace_at_start(team, work);
    const double sum = sum_alone(team, work->batch);
    double *links = every; /* until the parts are known */
    for (uint32_t r = 0; r < team->n; r++) speed[r] = bpt_node_alone(team->nodes[r], work->batch);
    place(team, speed, work->weight_bytes * sum / (work->batch * (double)pace.least), false, links,
          part);
    double fullest = 1; /* of the links: how many times what they carry they would have to */
    for (uint32_t r = 0; r < team->n; r++) {
        const bpt_node *node = team->nodes[r];
        const double step_s = work->batch / speed[r];
        const traffic t = traffic_of(node, work, speed[r] / sum, part[r]);
        every[r] = steps_between(node, &pace, step_s, t.thread_s + t.copies_s);
        if (node->link_bytes_per_s > 0)
            fullest = fmax(fullest, t.each_way / node->link_bytes_per_s / (every[r] * step_s));
    }
    for (uint32_t r = 0; r < team->n; r++) {
        const bpt_node *node = team->nodes[r];
        const traffic t = traffic_of(node, work, speed[r] / sum, part[r]);
        const double steps = ceil(every[r] * fullest), step_s = work->batch / speed[r];
        const double span_s = steps * step_s + lost_s(node, t.thread_s) + t.copies_s;
        f->images_per_s += steps * work->batch / span_s;
        f->every = fmax(f->every, steps);
        f->sent_bytes_per_s = fmax(f->sent_bytes_per_s, t.each_way / span_s);
    }
    f->links_are_full = fullest > 1;
    f->part = f->images_per_s / sum;
    name_limit(f, lost_by_data(team, work->batch), 0, 1 - f->part);
}

/* Rounds: each rank makes steps by its share of the data, then all push, and all are answered. */
static void predict_sgwu(const bpt_team *team, const bpt_work *work, bool by_speed, double *speed,
                         double *part, double *links, bpt_forecast *f) {
    const double least = (double)pace_at_start(team, work).least;
    const double sum = sum_alone(team, work->batch);
    double compute_s = 0, phase_s = 0, copies_s = 0, samples = 0, most_sent = 0;
    for (uint32_t r = 0; r < team->n; r++) speed[r] = bpt_node_alone(team->nodes[r], work->batch);
    place(team, speed, work->weight_bytes * sum / (work->batch * least), true, links, part);
    for (uint32_t r = 0; r < team->n; r++) {
        const bpt_node *node = team->nodes[r];
        const double share = by_speed ? speed[r] / sum : 1.0 / team->n;
        const double steps = fmax(round(least * team->n * share), 1);
        const double out = 1 - part[r], in = part[r] * (team->n - 1);
        const double on_link = node->link_bytes_per_s > 0
                                   ? work->weight_bytes * fmax(out, in) / node->link_bytes_per_s
                                   : 0;
        const double in_thread = work->weight_bytes * (out + in) * node->message_s_per_byte;
        samples += steps * work->batch;
        compute_s = fmax(compute_s, steps * work->batch / speed[r]);
        most_sent = fmax(most_sent, work->weight_bytes * (out + in));
        phase_s = fmax(phase_s, fmax(on_link, in_thread));
        copies_s = fmax(copies_s, (2 + part[r] * team->n) * node->copy_s);
    }
    const double round_s = compute_s + 2 * (phase_s + team->latency_s) + copies_s;
    f->images_per_s = samples / round_s;
    f->part = f->images_per_s / sum;
    f->every = least;
    f->sent_bytes_per_s = most_sent / round_s;
    name_limit(f, lost_by_data(team, work->batch), 1 - samples / compute_s / sum,
               (round_s - compute_s) / round_s);
}

/* ---- sums of gradients ---- */

/* @param cut of the batch, as of bpt_batch_cut(), shape [n + 1] */
static void cut_batch(const bpt_team *team, const bpt_work *work, bool by_speed, double *speed,
                      uint64_t *cut) {
    for (uint32_t r = 0; r < team->n; r++)
        speed[r] = by_speed ? bpt_node_alone(team->nodes[r], work->batch / (double)team->n) : 1;
    bpt_batch_cut(speed, team->n, work->batch, cut);
    if (by_speed) return;
    for (uint32_t r = 0; r <= team->n; r++) cut[r] = (uint64_t)work->batch * r / team->n;
}

/* Each way a rank's link carries the others' parts of its gradients and its own part of theirs, and
 * then as much of sums. */
static void predict_allreduce(const bpt_team *team, const bpt_work *work, bool by_speed,
                              double *speed, uint64_t *cut, bpt_forecast *f) {
    const double sum = sum_alone(team, work->batch);
    const double twice = 2.0 * (team->n - 1) / team->n;
    double compute_s = 0, busy_s = 0, s_per_byte = 0, copy_s = 0;
    cut_batch(team, work, by_speed, speed, cut);
    for (uint32_t r = 0; r < team->n; r++) {
        const bpt_node *node = team->nodes[r];
        const double step_s = bpt_node_training_s(node, (double)(cut[r + 1] - cut[r]));
        const double in_thread = 2 * twice * node->message_s_per_byte;
        const double on_link = node->link_bytes_per_s > 0 ? twice / node->link_bytes_per_s : 0;
        compute_s = fmax(compute_s, step_s);
        busy_s = fmax(busy_s, step_s + lost_s(node, work->weight_bytes * in_thread));
        s_per_byte = fmax(s_per_byte, fmax(in_thread, on_link));
        copy_s = fmax(copy_s, node->copy_s);
    }
    const double walk_s =
        bpt_gradient_walk(&work->gradient, compute_s, s_per_byte, 2 * team->latency_s);
    const double step_s = fmax(walk_s, busy_s) + copy_s;
    f->images_per_s = work->batch / step_s;
    f->part = f->images_per_s / sum;
    f->every = 1;
    f->sent_bytes_per_s = twice * work->weight_bytes / step_s;
    name_limit(f, lost_by_data(team, work->batch), 1 - work->batch / compute_s / sum,
               (step_s - compute_s) / step_s);
}

/* ---- all of them ---- */

bpt_status bpt_plan_scratch_make(uint32_t n, bpt_plan_scratch *scratch) {
    *scratch = (bpt_plan_scratch){0};
    BPT_TRY(BPT_NEW("speeds of ranks", n, &scratch->speed));
    BPT_TRY(BPT_NEW("parts of ranks", n, &scratch->part));
    BPT_TRY(BPT_NEW("figures of ranks", n, &scratch->more));
    return BPT_NEW("cuts of a batch", n + 1u, &scratch->cut);
}

void bpt_plan_scratch_free(bpt_plan_scratch *scratch) {
    bpt_free(scratch->speed);
    bpt_free(scratch->part);
    bpt_free(scratch->more);
    bpt_free(scratch->cut);
    *scratch = (bpt_plan_scratch){0};
}

bool bpt_way_suits(bpt_way way, const bpt_team *team, const bpt_work *work) {
    const bool sums = way.update == BPT_UPDATE_ALLREDUCE;
    const uint64_t of_rank = sums ? work->batch / team->n : work->batch;
    const uint64_t of_all = sums ? work->batch : (uint64_t)work->batch * team->n;
    if ((way.update == BPT_UPDATE_LOCAL) != (team->n == 1)) return false;
    return of_rank >= work->least_batch && of_all <= work->epoch_samples;
}

void bpt_predict(bpt_way way, const bpt_team *team, const bpt_work *work, bpt_plan_scratch *scratch,
                 bpt_forecast *f) {
    const bool by_speed = way.partition == BPT_PARTITION_IDPA;
    *f = (bpt_forecast){0};
    if (way.update == BPT_UPDATE_LOCAL)
        predict_local(team, work, f);
    else if (way.update == BPT_UPDATE_ALLREDUCE)
        predict_allreduce(team, work, by_speed, scratch->speed, scratch->cut, f);
    else if (way.update == BPT_UPDATE_SGWU)
        predict_sgwu(team, work, by_speed, scratch->speed, scratch->part, scratch->more, f);
    else
        predict_agwu(team, work, scratch->speed, scratch->part, scratch->more, f);
}

const char *bpt_plan_limit_name(bpt_plan_limit limit) {
    static const char *const names[BPT_N_PLAN_LIMITS] = {"compute", "data", "slowest rank",
                                                         "messages"};
    return names[limit];
}
