#include "tools/train/chart/chart_series.h"

#include <math.h>

/* ---- thinning ---- */

static double mean_of(double a, uint64_t n_a, double b, uint64_t n_b) {
    const double part = (double)n_b / ((double)n_a + (double)n_b);
    return a + (b - a) * part;
}

/* The later of the two joins the earlier. */
static void join(bpt_chart_point *p, const bpt_chart_point *later) {
    p->epoch = mean_of(p->epoch, p->n, later->epoch, later->n);
    p->seconds = mean_of(p->seconds, p->n, later->seconds, later->n);
    p->value = mean_of(p->value, p->n, later->value, later->n);
    p->last_epoch = later->last_epoch;
    if (later->top > p->top) {
        p->top = later->top;
        p->top_epoch = later->top_epoch;
    }
    p->n += later->n;
}

static void halve(bpt_chart_series *s) {
    for (size_t i = 0; i < s->n / 2; i++) {
        bpt_chart_point p = s->points[2 * i];
        join(&p, &s->points[2 * i + 1]);
        s->points[i] = p;
    }
    s->n /= 2;
    s->joined = 2 * (s->joined ? s->joined : 1);
}

void bpt_chart_series_add(bpt_chart_series *s, const bpt_chart_place *place, double value) {
    const bpt_chart_point new = {.epoch = place->epoch,
                                 .seconds = place->seconds,
                                 .value = value,
                                 .last_epoch = place->last_epoch,
                                 .top = value,
                                 .top_epoch = place->epoch,
                                 .n = 1};
    if (s->n > 0 && s->points[s->n - 1].n < s->joined) {
        join(&s->points[s->n - 1], &new);
        return;
    }
    if (s->n == BPT_CHART_POINTS) halve(s);
    s->points[s->n++] = new;
}

void bpt_chart_series_cut(bpt_chart_series *s, double epoch) {
    while (s->n > 0 && s->points[s->n - 1].last_epoch > epoch) s->n--;
}

const bpt_chart_point *bpt_chart_series_top(const bpt_chart_series *s) {
    const bpt_chart_point *top = NULL;
    for (size_t i = 0; i < s->n; i++)
        if (!top || s->points[i].top > top->top) top = &s->points[i];
    return top;
}

/* ---- curves ---- */

void bpt_chart_curve_of(const bpt_chart_series *s, double unit_s, bpt_chart_curve *curve) {
    curve->n = s->n;
    for (size_t i = 0; i < s->n; i++) {
        const bpt_chart_point *p = &s->points[i];
        curve->x[i] = unit_s > 0 ? p->seconds / unit_s : p->epoch;
        curve->y[i] = p->value;
    }
}

void bpt_chart_curve_range(const bpt_chart_curve *curve, double *lo, double *hi) {
    for (size_t i = 0; i < curve->n; i++) {
        *lo = fmin(*lo, curve->y[i]);
        *hi = fmax(*hi, curve->y[i]);
    }
}

/* The line that fits the neighbours of point i best, at that point. What is further away than
 * three widths has no weight worth its time. */
static double fit_at(const bpt_chart_curve *c, size_t i, double width) {
    double weights = 0, by_d = 0, by_dd = 0, by_y = 0, by_dy = 0;
    size_t first = i;
    while (first > 0 && c->x[i] - c->x[first - 1] <= 3 * width) first--;
    for (size_t k = first; k < c->n; k++) {
        const double d = (c->x[k] - c->x[i]) / width;
        if (d > 3) break;
        const double w = exp(-0.5 * d * d);
        weights += w;
        by_d += w * d;
        by_dd += w * d * d;
        by_y += w * c->y[k];
        by_dy += w * d * c->y[k];
    }
    const double spread = weights * by_dd - by_d * by_d;
    if (spread < 1e-9 * weights * weights) return by_y / weights; /* all at one place */
    return (by_dd * by_y - by_d * by_dy) / spread;
}

bool bpt_chart_curve_smooth(const bpt_chart_curve *curve, bpt_chart_curve *smooth) {
    enum { LEAST_POINTS = 40 };
    const double scatter_shown = 0.02;
    const size_t n = curve->n;
    if (n < LEAST_POINTS) return false;
    const double width = fmax(0.01, 2 / (double)n) * (curve->x[n - 1] - curve->x[0]);
    if (!(width > 0)) return false;
    double lo = INFINITY, hi = -INFINITY, squares = 0;
    *smooth = *curve;
    for (size_t i = 0; i < n; i++) {
        smooth->y[i] = fit_at(curve, i, width);
        const double off = curve->y[i] - smooth->y[i];
        squares += off * off / (double)n;
    }
    bpt_chart_curve_range(smooth, &lo, &hi);
    const double of_rounding = 1e-6 * fmax(fabs(lo), fabs(hi));
    return sqrt(squares) > fmax(scatter_shown * (hi - lo), of_rounding);
}
