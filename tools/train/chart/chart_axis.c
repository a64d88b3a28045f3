#include "tools/train/chart/chart_axis.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- equal differences ---- */

/* @return the least of 1, 2 and 5 times a power of ten that is not below it */
static double round_up(double least) {
    const double power = pow(10, floor(log10(least)));
    const double digits = least / power;
    return power * (digits <= 1 + 1e-9 ? 1 : digits <= 2 + 1e-9 ? 2 : digits <= 5 + 1e-9 ? 5 : 10);
}

/* A range in which all values are nearly the same shows as noise what is none. */
static void widen(bpt_chart_range *r) {
    const double size = fmax(fabs(r->lo), fabs(r->hi));
    if (r->hi - r->lo > 1e-4 * size) return;
    const double by = size > 0 ? 0.1 * size : 1;
    r->lo = fmax(r->lo - by, r->least);
    r->hi = fmin(r->hi + by, r->most);
}

bpt_chart_axis bpt_chart_axis_linear(const bpt_chart_range *range) {
    bpt_chart_range r = *range;
    widen(&r);
    bpt_chart_axis a = {.step = round_up((r.hi - r.lo) / (double)r.n_most)};
    const double off = 1e-6; /* a value at a tick is not behind it by a last bit */
    const double below = floor(r.lo / a.step + off), above = ceil(r.hi / a.step - off);
    a.lo = r.to_ticks ? fmax(below * a.step, r.least) : r.lo;
    a.hi = r.to_ticks ? fmin(above * a.step, r.most) : r.hi;
    for (double i = ceil(a.lo / a.step - off);
         i <= floor(a.hi / a.step + off) && a.n_ticks < BPT_CHART_TICKS; i++)
        a.ticks[a.n_ticks++] = i * a.step + 0.0; /* -0 is 0 */
    return a;
}

/* ---- equal factors ---- */

static void add_log_tick(bpt_chart_axis *a, double tick) {
    const bool inside = tick >= a->lo * (1 - 1e-6) && tick <= a->hi * (1 + 1e-6);
    if (inside && a->n_ticks < BPT_CHART_TICKS) a->ticks[a->n_ticks++] = tick;
}

bpt_chart_axis bpt_chart_axis_log(const bpt_chart_range *range) {
    static const double digits[] = {1, 2, 5};
    bpt_chart_axis a = {.lo = range->lo, .hi = fmax(range->hi, 2 * range->lo), .log = true};
    const double decades = log10(a.hi / a.lo), most = (double)range->n_most;
    const size_t n_digits = 3 * decades <= most + 1 ? 3 : 1;
    const double every = fmax(1, ceil(decades / most));
    for (double k = floor(log10(a.lo)); k <= ceil(log10(a.hi)); k++)
        for (size_t d = 0; d < n_digits; d++)
            if (fmod(k, every) == 0) add_log_tick(&a, digits[d] * pow(10, k));
    return a;
}

/* ---- both ---- */

double bpt_chart_axis_place(const bpt_chart_axis *a, double value) {
    if (!a->log) return (value - a->lo) / (a->hi - a->lo);
    if (!(value > 0)) return -1;
    return fmax(log(value / a->lo) / log(a->hi / a->lo), -1);
}

/* "1.5e-05" is 1.5e-5. */
static void strip_exponent(char *text) {
    char *at = strchr(text, 'e');
    if (!at) return;
    at += at[1] == '-' ? 2 : 1;
    const size_t idle = strspn(at, "+0");
    memmove(at, at + idle, strlen(at + idle) + 1);
}

static bool is_plain(double value) {
    return value == 0 || (fabs(value) >= 1e-4 && fabs(value) < 1e6);
}

/* Four, or as many as tell one tick from the next. */
static int digits_of(const bpt_chart_axis *a) {
    const int least = 4;
    if (a->log) return least;
    const double decades = log10(fmax(fabs(a->lo), fabs(a->hi)) / a->step);
    return least < 2 + (int)decades ? 2 + (int)decades : least;
}

void bpt_chart_axis_label(const bpt_chart_axis *a, double tick, char *text) {
    const double least = a->log ? tick : a->step;
    const double decimals = fmax(0, -floor(log10(least) + 1e-9));
    if (is_plain(a->log ? a->lo : a->step) && is_plain(fmax(fabs(a->lo), fabs(a->hi))))
        snprintf(text, BPT_CHART_NUMBER_SIZE, "%.*f", (int)decimals, tick);
    else
        snprintf(text, BPT_CHART_NUMBER_SIZE, "%.*g", digits_of(a), tick);
    strip_exponent(text);
}

void bpt_chart_number(double value, char *text) {
    const bool whole = fabs(value) >= 1000 && fabs(value) < 1e6;
    snprintf(text, BPT_CHART_NUMBER_SIZE, whole ? "%.0f" : "%.4g", value);
    strip_exponent(text);
}
