#include "inner/cuts/cuts.h"

#include "base/integers.h"

#include <math.h>
#include <string.h>

const char *bpt_conv_step_name(bpt_conv_step step) {
    static const char *const names[] = {"forward", "backward data", "backward weights"};
    return names[step];
}

static int64_t at_least_one(int64_t n) {
    return n < 1 ? 1 : n;
}

bpt_cut bpt_cut_normal(bpt_cut cut, int64_t n) {
    bpt_cut normal = {cut.samples, at_least_one(cut.channels), at_least_one(cut.rows)};
    if (normal.channels > 1 || normal.rows > 1) normal.samples = 1;
    if (normal.samples < 1 || normal.samples > n) normal.samples = n;
    return normal;
}

bool bpt_cut_is_whole(bpt_cut cut, int64_t n) {
    return bpt_cut_parts(cut, n) == 1;
}

size_t bpt_cut_parts(bpt_cut cut, int64_t n) {
    return bpt_cut_partials(cut, n) * (size_t)at_least_one(cut.channels);
}

size_t bpt_cut_partials(bpt_cut cut, int64_t n) {
    const bpt_cut normal = bpt_cut_normal(cut, n);
    return (size_t)(bpt_quotient_up(n, normal.samples) * normal.rows);
}

/* ---- ranges ---- */

typedef struct {
    int64_t begin, end;
} range;

/* Range @p i of @p n of some units, as even as they can be. */
static range split(int64_t units, int64_t n, int64_t i) {
    return (range){units * i / n, units * (i + 1) / n};
}

static void cut_samples(bpt_conv_part *part, bpt_cut cut, int64_t i) {
    bpt_conv_problem *p = &part->problem;
    const int64_t begin = i * cut.samples;
    part->in[0] = part->out[0] = begin;
    p->n = p->n - begin < cut.samples ? p->n - begin : cut.samples;
}

/* @return the fewest groups whose inputs and outputs are whole blocks */
static int64_t groups_of_blocks(const bpt_conv_problem *p) {
    int64_t n = 1;
    while (n * (p->c / p->groups) % BPT_CUT_LANES != 0 ||
           n * (p->k / p->groups) % BPT_CUT_LANES != 0)
        n++; /* at most BPT_CUT_LANES */
    return n;
}

static bool cut_groups(bpt_conv_part *part, bpt_cut cut, int64_t i) {
    bpt_conv_problem *p = &part->problem;
    const int64_t unit = groups_of_blocks(p), of_c = p->c / p->groups, of_k = p->k / p->groups;
    const range r = split(p->groups / unit, cut.channels, i);
    const int64_t groups = (r.end - r.begin) * unit;
    if (p->groups % unit != 0 || groups <= 1) return false;
    p->groups = groups;
    p->c = p->groups * of_c;
    p->k = p->groups * of_k;
    part->weights[0] = r.begin * unit;
    part->in[1] = r.begin * unit * of_c;
    part->out[1] = r.begin * unit * of_k;
    return true;
}

static bool cut_channels(bpt_conv_part *part, bpt_conv_step step, bpt_cut cut, int64_t i) {
    bpt_conv_problem *p = &part->problem;
    if (cut.channels == 1) return true;
    if (p->groups > 1) return cut_groups(part, cut, i);
    const bool of_input = step == BPT_CONV_BACKWARD_DATA;
    int64_t *channels = of_input ? &p->c : &p->k;
    const range r = split(*channels / BPT_CUT_LANES, cut.channels, i);
    if (*channels % BPT_CUT_LANES != 0 || r.begin == r.end) return false;
    *channels = (r.end - r.begin) * BPT_CUT_LANES;
    (of_input ? part->in : part->out)[1] = r.begin * BPT_CUT_LANES;
    part->weights[of_input ? 1 : 0] = r.begin * BPT_CUT_LANES;
    return true;
}

/* ---- rows: a range on one side, what belongs to it on the other ---- */

/* @return rows of the input from the first to the last that one row of the output is made of */
static int64_t window_rows(const bpt_conv_problem *p) {
    return (p->r - 1) * p->dilation[0] + 1;
}

/* @return rows of the input that rows of the output are made of */
static range rows_read(const bpt_conv_problem *p, range out) {
    const int64_t first = out.begin * p->stride[0] - p->pad[0];
    const int64_t last = (out.end - 1) * p->stride[0] - p->pad[0] + window_rows(p);
    return (range){bpt_larger(first, 0), bpt_smaller(last, p->h)};
}

/* @return rows of the output that have something of rows of the input */
static range rows_reached(const bpt_conv_problem *p, range in) {
    const int64_t first = in.begin + p->pad[0] - window_rows(p) + 1;
    const int64_t last = (in.end - 1 + p->pad[0]) / p->stride[0];
    return (range){first <= 0 ? 0 : bpt_quotient_up(first, p->stride[0]),
                   bpt_smaller(last + 1, p->p)};
}

/* The padding at the end follows from the sizes; oneDNN takes one below 0 if it is no more than
 * what a stride passes over. */
static bool cut_rows(bpt_conv_part *part, bpt_conv_step step, bpt_cut cut, int64_t i) {
    bpt_conv_problem *p = &part->problem;
    range in, out;
    if (cut.rows == 1) return true;
    if (step == BPT_CONV_BACKWARD_DATA) {
        in = split(p->h, cut.rows, i);
        out = rows_reached(p, in);
    } else {
        out = split(p->p, cut.rows, i);
        in = rows_read(p, out);
    }
    const int64_t pad = in.begin + p->pad[0] - out.begin * p->stride[0];
    const int64_t pad_end =
        (out.end - out.begin - 1) * p->stride[0] + window_rows(p) - (in.end - in.begin) - pad;
    if (in.begin >= in.end || out.begin >= out.end || pad < 0 || pad_end <= -p->stride[0])
        return false;
    p->h = in.end - in.begin;
    p->p = out.end - out.begin;
    p->pad[0] = pad;
    p->winograd = false; /* which wants blocks of channels, and pads alike at both ends */
    part->in[2] = in.begin;
    part->out[2] = out.begin;
    return true;
}

bool bpt_cut_part(const bpt_conv_problem *whole, bpt_conv_step step, bpt_cut cut, size_t i,
                  bpt_conv_part *part) {
    const bpt_cut normal = bpt_cut_normal(cut, whole->n);
    const int64_t number = (int64_t)i / normal.channels, of_channels = (int64_t)i % normal.channels;
    *part = (bpt_conv_part){
        .problem = *whole, .channel_range = (size_t)of_channels, .partial = (size_t)number};
    cut_samples(part, normal, number / normal.rows);
    return cut_channels(part, step, normal, of_channels) &&
           cut_rows(part, step, normal, number % normal.rows);
}

/* What a step computes, in a unit of its own. */
static double work(const bpt_conv_problem *p, bpt_conv_step step) {
    const int64_t rows = step == BPT_CONV_BACKWARD_DATA ? p->h : p->p;
    return (double)(p->n * rows) * (double)(p->c / p->groups * p->k);
}

double bpt_cut_largest(const bpt_conv_problem *whole, bpt_conv_step step, bpt_cut cut) {
    double most = 0.0;
    bpt_conv_part part;
    for (size_t i = 0; i < bpt_cut_parts(cut, whole->n); i++) {
        if (!bpt_cut_part(whole, step, cut, i, &part)) return 0.0;
        most = fmax(most, work(&part.problem, step));
    }
    return most / work(whole, step);
}
