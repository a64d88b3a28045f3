#include "tools/train/chart/chart_page.h"

#include "tools/train/chart/chart_panel.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* Where things are, from top to bottom. Between panels there is room for a heading, and for numbers
 * where an axis of x ends. */
enum {
    TITLE_Y = 32,
    SUBTITLE_Y = 52,
    MARKS_Y = 78,
    LOSS_TOP = 106,
    LOSS_HEIGHT = 220,
    ACCURACY_TOP = LOSS_TOP + LOSS_HEIGHT + 38,
    ACCURACY_HEIGHT = 160,
    RATE_TOP = ACCURACY_TOP + ACCURACY_HEIGHT + 38,
    RATE_HEIGHT = 64,
    SPEED_TOP = RATE_TOP + RATE_HEIGHT + 62,
    SPEED_HEIGHT = 90,
    PAGE_HEIGHT = SPEED_TOP + SPEED_HEIGHT + 34
};

static const double no_bound = 1e300;
static const char nothing[] = "nothing measured yet";

/* ---- what was trained ---- */

static void put_title(const bpt_chart_metrics *m, char *text, size_t size) {
    const bpt_chart_start *s = &m->start;
    snprintf(text, size, "%s%s%s", s->model[0] ? s->model : "a run", s->data[0] ? " on " : "",
             s->data);
}

static void append(char *text, size_t size, const char *what) {
    const size_t n = strlen(text);
    snprintf(text + n, size - n, "%s%s", n > 0 ? ", " : "", what);
}

static void append_count(char *text, size_t size, const char *before, uint64_t n,
                         const char *behind) {
    char one[64];
    snprintf(one, sizeof one, "%s%" PRIu64 "%s", before, n, behind);
    if (n > 0) append(text, size, one);
}

static void append_rate(char *text, size_t size, const bpt_chart_start *s) {
    char one[2 * BPT_CHART_NUMBER_SIZE + 16], lr[BPT_CHART_NUMBER_SIZE],
        factor[BPT_CHART_NUMBER_SIZE];
    bpt_chart_number(s->lr, lr);
    bpt_chart_number(s->lr_factor, factor);
    const bool scaled = s->lr_factor > 0 && strcmp(factor, "1") != 0;
    snprintf(one, sizeof one, "lr %s%s%s", lr, scaled ? " \xC3\x97 " : "", scaled ? factor : "");
    if (s->lr > 0) append(text, size, one);
}

/* "2031-05-06T07:08:09Z" */
static void append_time(char *text, size_t size, const char *time) {
    char one[64];
    if (strlen(time) < 16) return;
    snprintf(one, sizeof one, "begun %.10s %.5s UTC", time, time + 11);
    append(text, size, one);
}

static void put_subtitle(const bpt_chart_metrics *m, char *text, size_t size) {
    const bpt_chart_start *s = &m->start;
    text[0] = '\0';
    append_count(text, size, "", s->ranks, s->ranks == 1 ? " rank" : " ranks");
    if (s->update[0]) append(text, size, s->update);
    append_count(text, size, "batch size ", s->batch_size, "");
    append_rate(text, size, s);
    append_time(text, size, m->first_time);
}

static void put_head(FILE *out, const bpt_chart_metrics *m) {
    static const bpt_svg_style title_style = {18, BPT_SVG_INK, BPT_SVG_START, true};
    static const bpt_svg_style subtitle_style = {BPT_CHART_LETTER + 1, BPT_SVG_DIM, BPT_SVG_START,
                                                 false};
    char title[2 * BPT_CHART_NAME_SIZE + 8], subtitle[256];
    put_title(m, title, sizeof title);
    put_subtitle(m, subtitle, sizeof subtitle);
    bpt_svg_begin(out, BPT_CHART_WIDTH, PAGE_HEIGHT, title);
    bpt_svg_text(out, BPT_CHART_LEFT, TITLE_Y, &title_style, title);
    bpt_svg_text(out, BPT_CHART_LEFT, SUBTITLE_Y, &subtitle_style, subtitle);
}

/* ---- axes ---- */

/* Of what is measured from left to right; a run that has not come far yet has some of it too. */
static bpt_chart_axis axis_from(double first, double last) {
    const bpt_chart_range r = {.lo = first,
                               .hi = last > first ? last : first + 1,
                               .least = first,
                               .most = no_bound,
                               .n_most = 10};
    return bpt_chart_axis_linear(&r);
}

/* Where there is nothing, numbers would mean nothing. */
static const bpt_chart_axis axis_of_nothing = {.lo = 0, .hi = 1};

/* From 0 on, for quantities that are compared by how many times one is the other. What is drawn
 * lightly may reach beyond the line that counts by half of it. */
static bpt_chart_axis axis_from_zero(const bpt_chart_curve *strong, const bpt_chart_curve *light,
                                     unsigned n_most) {
    double lo = 0, hi = 0, high = 0;
    if (strong->n == 0) return axis_of_nothing;
    bpt_chart_curve_range(strong, &lo, &hi);
    bpt_chart_curve_range(light, &lo, &high);
    const bpt_chart_range r = {.lo = lo,
                               .hi = fmin(fmax(high, hi), 1.5 * hi),
                               .least = lo,
                               .most = no_bound,
                               .to_ticks = true,
                               .n_most = n_most};
    return bpt_chart_axis_linear(&r);
}

static bpt_chart_axis accuracy_axis(const bpt_chart_curve *curve) {
    double lo = INFINITY, hi = -INFINITY;
    if (curve->n == 0) return axis_of_nothing;
    bpt_chart_curve_range(curve, &lo, &hi);
    const bpt_chart_range r = {
        .lo = lo, .hi = hi, .least = 0, .most = 1, .to_ticks = true, .n_most = 5};
    return bpt_chart_axis_linear(&r);
}

/* What is drawn lightly may reach beyond the lines that count by half of their range, or by as many
 * times on an axis of factors; the rest of it is cut off. */
static bpt_chart_axis loss_axis(const bpt_chart_curve *strong, const bpt_chart_curve *test,
                                const bpt_chart_curve *light) {
    const double many_times = 10, margin = 1.1;
    double lo = INFINITY, hi = -INFINITY, low = INFINITY, high = -INFINITY;
    bpt_chart_curve_range(strong, &lo, &hi);
    bpt_chart_curve_range(test, &lo, &hi);
    bpt_chart_curve_range(light, &low, &high);
    if (strong->n + test->n == 0) return axis_of_nothing;
    bpt_chart_range r = {.lo = lo, .hi = hi, .most = no_bound, .to_ticks = true, .n_most = 6};
    if (lo > 0 && hi > many_times * lo) {
        r.lo = fmax(fmin(low, lo), lo / 2) / margin;
        r.hi = fmin(fmax(high, hi), hi * 2) * margin;
        return bpt_chart_axis_log(&r);
    }
    const double reach = 0.5 * (hi - lo);
    r.lo = fmax(fmin(low, lo), lo - reach);
    r.hi = fmin(fmax(high, hi), hi + reach);
    if (r.lo >= 0 && r.lo < 0.4 * r.hi) r.lo = 0;
    r.least = fmin(0, r.lo);
    return bpt_chart_axis_linear(&r);
}

/* ---- where the run was resumed ---- */

/* Those that would run into each other are one. */
static void mark_resumes(FILE *out, const bpt_chart_metrics *m, const bpt_chart_panel *p,
                         double unit_s) {
    const double apart = 6;
    double free_from = 0;
    for (size_t i = 0; i < m->n_resumes; i++) {
        const bpt_chart_resume *r = &m->resumes[i];
        const double x = unit_s > 0 ? r->seconds / unit_s : r->epoch;
        if (bpt_chart_panel_x(p, x) < free_from) continue;
        bpt_chart_panel_mark(out, p, x);
        free_from = bpt_chart_panel_x(p, x) + apart;
    }
}

/* Above the first panel; where they are close, not each has words. */
static void name_resumes(FILE *out, const bpt_chart_metrics *m, const bpt_chart_panel *p) {
    static const bpt_svg_style style = {BPT_CHART_LETTER, BPT_SVG_DIM, BPT_SVG_MIDDLE, false};
    const double half = 55;
    double free_from = 0;
    for (size_t i = 0; i < m->n_resumes; i++) {
        const bpt_chart_resume *r = &m->resumes[i];
        const double x = fmin(bpt_chart_panel_x(p, r->epoch), BPT_CHART_WIDTH - half);
        char text[64] = "resumed";
        if (x - half < free_from) continue;
        if (r->ranks > 0)
            snprintf(text, sizeof text, "resumed, %" PRIu64 " rank%s", r->ranks,
                     r->ranks == 1 ? "" : "s");
        bpt_svg_text(out, x, MARKS_Y, &style, text);
        free_from = x + half;
    }
}

/* ---- the panels ---- */

static void name_line(char *text, size_t size, const char *name, double value) {
    char number[BPT_CHART_NUMBER_SIZE];
    bpt_chart_number(value, number);
    snprintf(text, size, "%s %s", name, number);
}

static const char *test_name(const bpt_chart_metrics *m) {
    const size_t room = 10; /* at the right, beside a number */
    return m->split[0] && strlen(m->split) <= room ? m->split : "test";
}

static void put_loss_labels(FILE *out, const bpt_chart_panel *p, const bpt_chart_metrics *m,
                            const bpt_chart_curve *train, const bpt_chart_curve *test) {
    char texts[2][64];
    bpt_chart_label labels[2];
    size_t n = 0;
    if (train->n > 0) {
        const double value = train->y[train->n - 1];
        name_line(texts[n], sizeof texts[n], "training", value);
        labels[n] = (bpt_chart_label){texts[n], value, BPT_SVG_TRAIN};
        n++;
    }
    if (test->n > 0) {
        const double value = test->y[test->n - 1];
        name_line(texts[n], sizeof texts[n], test_name(m), value);
        labels[n] = (bpt_chart_label){texts[n], value, BPT_SVG_TEST};
        n++;
    }
    bpt_chart_panel_labels(out, p, labels, n);
}

static void put_loss(FILE *out, const bpt_chart_metrics *m, const bpt_chart_axis *epochs) {
    bpt_chart_curve train, test, smooth;
    bpt_chart_curve_of(&m->train_loss, 0, &train);
    bpt_chart_curve_of(&m->test_loss, 0, &test);
    const bool noisy = bpt_chart_curve_smooth(&train, &smooth);
    const bpt_chart_curve *strong = noisy ? &smooth : &train;
    const bpt_chart_panel p = {1, LOSS_TOP, LOSS_HEIGHT, *epochs, loss_axis(strong, &test, &train)};
    bpt_chart_panel_begin(out, &p, p.y.log ? "loss, logarithmic" : "loss", NULL);
    name_resumes(out, m, &p);
    mark_resumes(out, m, &p, 0);
    if (train.n + test.n == 0) bpt_chart_panel_say(out, &p, nothing);
    if (noisy) bpt_chart_panel_curve(out, &p, &train, BPT_SVG_TRAIN, BPT_CHART_LIGHT);
    bpt_chart_panel_curve(out, &p, strong, BPT_SVG_TRAIN, BPT_CHART_STRONG);
    bpt_chart_panel_curve(out, &p, &test, BPT_SVG_TEST, BPT_CHART_STRONG);
    bpt_chart_panel_dots(out, &p, &test, BPT_SVG_TEST, "loss");
    put_loss_labels(out, &p, m, strong, &test);
    if (noisy)
        bpt_chart_panel_remark(out, &p, BPT_SVG_DIM, "training: smoothed, as measured behind it");
}

static void put_best(FILE *out, const bpt_chart_metrics *m, const bpt_chart_panel *p) {
    const bpt_chart_point *best = bpt_chart_series_top(&m->test_accuracy);
    char text[96], epoch[BPT_CHART_NUMBER_SIZE];
    bpt_chart_number(best->top_epoch, epoch);
    snprintf(text, sizeof text, "best %.4f at epoch %s", best->top, epoch);
    bpt_chart_panel_ring(out, p, best->top_epoch, best->top, BPT_SVG_TEST);
    bpt_chart_panel_remark(out, p, BPT_SVG_TEST, text);
}

static void put_accuracy(FILE *out, const bpt_chart_metrics *m, const bpt_chart_axis *epochs) {
    bpt_chart_curve curve;
    bpt_chart_curve_of(&m->test_accuracy, 0, &curve);
    const bpt_chart_panel p = {2, ACCURACY_TOP, ACCURACY_HEIGHT, *epochs, accuracy_axis(&curve)};
    bpt_chart_panel_begin(out, &p, "accuracy", NULL);
    mark_resumes(out, m, &p, 0);
    if (curve.n == 0) {
        bpt_chart_panel_say(out, &p, "no evaluation yet");
        return;
    }
    char text[64];
    const double last = curve.y[curve.n - 1];
    snprintf(text, sizeof text, "%s %.4f", test_name(m), last);
    bpt_chart_panel_curve(out, &p, &curve, BPT_SVG_TEST, BPT_CHART_STRONG);
    put_best(out, m, &p);
    bpt_chart_panel_dots(out, &p, &curve, BPT_SVG_TEST, "accuracy");
    bpt_chart_panel_labels(out, &p, &(bpt_chart_label){text, last, BPT_SVG_TEST}, 1);
}

static void put_rate(FILE *out, const bpt_chart_metrics *m, const bpt_chart_axis *epochs) {
    bpt_chart_curve curve;
    bpt_chart_curve_of(&m->rate, 0, &curve);
    const bpt_chart_panel p = {3, RATE_TOP, RATE_HEIGHT, *epochs,
                               axis_from_zero(&curve, &curve, 2)};
    bpt_chart_panel_begin(out, &p, "learning rate", "epochs");
    mark_resumes(out, m, &p, 0);
    if (curve.n == 0) bpt_chart_panel_say(out, &p, nothing);
    bpt_chart_panel_curve(out, &p, &curve, BPT_SVG_PLAIN, BPT_CHART_STRONG);
}

/* What a person would count such a time in. */
static double unit_of(double seconds, const char **name) {
    static const struct {
        double from_s, unit_s;
        const char *name;
    } units[] = {{3 * 86400, 86400, "days"}, {2 * 3600, 3600, "hours"}, {120, 60, "minutes"}};
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (seconds >= units[i].from_s) {
            *name = units[i].name;
            return units[i].unit_s;
        }
    *name = "seconds";
    return 1;
}

static void put_speed(FILE *out, const bpt_chart_metrics *m) {
    const char *unit_name;
    bpt_chart_curve curve, smooth;
    const double unit_s = unit_of(m->last_seconds - m->first_seconds, &unit_name);
    bpt_chart_curve_of(&m->images_per_s, unit_s, &curve);
    const bool noisy = bpt_chart_curve_smooth(&curve, &smooth);
    const bpt_chart_curve *strong = noisy ? &smooth : &curve;
    const bpt_chart_panel p = {4, SPEED_TOP, SPEED_HEIGHT,
                               axis_from(m->first_seconds / unit_s, m->last_seconds / unit_s),
                               axis_from_zero(strong, &curve, 3)};
    bpt_chart_panel_begin(out, &p, "images a second, all ranks", unit_name);
    mark_resumes(out, m, &p, unit_s);
    if (curve.n == 0) bpt_chart_panel_say(out, &p, nothing);
    if (noisy) bpt_chart_panel_curve(out, &p, &curve, BPT_SVG_PLAIN, BPT_CHART_LIGHT);
    bpt_chart_panel_curve(out, &p, strong, BPT_SVG_PLAIN, BPT_CHART_STRONG);
}

void bpt_chart_page_write(const bpt_chart_metrics *m, FILE *out) {
    const bpt_chart_axis epochs = axis_from(m->first_epoch, m->last_epoch);
    put_head(out, m);
    put_loss(out, m, &epochs);
    put_accuracy(out, m, &epochs);
    put_rate(out, m, &epochs);
    put_speed(out, m);
    bpt_svg_end(out);
}
