#include "tools/train/chart/chart_panel.h"

#include <math.h>

static const bpt_svg_style number_left = {BPT_CHART_LETTER, BPT_SVG_DIM, BPT_SVG_END, false};
static const bpt_svg_style number_below = {BPT_CHART_LETTER, BPT_SVG_DIM, BPT_SVG_MIDDLE, false};
static const bpt_svg_style unit_below = {BPT_CHART_LETTER, BPT_SVG_DIM, BPT_SVG_START, false};
static const bpt_svg_style heading_style = {BPT_CHART_LETTER + 1, BPT_SVG_INK, BPT_SVG_START, true};

double bpt_chart_panel_x(const bpt_chart_panel *p, double x) {
    const double place = bpt_chart_axis_place(&p->x, x);
    return BPT_CHART_LEFT + place * (BPT_CHART_RIGHT - BPT_CHART_LEFT);
}

static double bottom_of(const bpt_chart_panel *p) {
    return p->top + p->height;
}

/* What is far outside is not drawn, and its number is not to be one of twenty digits. */
static double y_of(const bpt_chart_panel *p, double y) {
    return bottom_of(p) - fmax(-2, fmin(bpt_chart_axis_place(&p->y, y), 3)) * p->height;
}

/* ---- the frame ---- */

static void put_y_ticks(FILE *out, const bpt_chart_panel *p) {
    const bpt_svg_stroke grid = {BPT_SVG_GRID, 1, 1, false};
    for (size_t i = 0; i < p->y.n_ticks; i++) {
        char text[BPT_CHART_NUMBER_SIZE];
        const double y = y_of(p, p->y.ticks[i]);
        bpt_chart_axis_label(&p->y, p->y.ticks[i], text);
        bpt_svg_line(out, BPT_CHART_LEFT, y, BPT_CHART_RIGHT, y, &grid);
        bpt_svg_text(out, BPT_CHART_LEFT - 8, y + 4, &number_left, text);
    }
}

static void put_x_ticks(FILE *out, const bpt_chart_panel *p, const char *unit) {
    const bpt_svg_stroke grid = {BPT_SVG_GRID, 1, 1, false};
    for (size_t i = 0; i < p->x.n_ticks; i++) {
        char text[BPT_CHART_NUMBER_SIZE];
        const double x = bpt_chart_panel_x(p, p->x.ticks[i]);
        bpt_svg_line(out, x, p->top, x, bottom_of(p), &grid);
        if (!unit) continue;
        bpt_chart_axis_label(&p->x, p->x.ticks[i], text);
        bpt_svg_text(out, x, bottom_of(p) + 17, &number_below, text);
    }
    if (unit) bpt_svg_text(out, BPT_CHART_RIGHT + 24, bottom_of(p) + 17, &unit_below, unit);
}

void bpt_chart_panel_begin(FILE *out, const bpt_chart_panel *p, const char *heading,
                           const char *x_unit) {
    const bpt_svg_stroke axis = {BPT_SVG_DIM, 1, 1, false};
    const bpt_svg_box box = {BPT_CHART_LEFT, p->top - 2, BPT_CHART_RIGHT - BPT_CHART_LEFT + 2,
                             p->height + 4};
    bpt_svg_clip(out, p->id, &box);
    put_x_ticks(out, p, x_unit);
    put_y_ticks(out, p);
    bpt_svg_line(out, BPT_CHART_LEFT, bottom_of(p), BPT_CHART_RIGHT, bottom_of(p), &axis);
    bpt_svg_text(out, BPT_CHART_LEFT, p->top - 10, &heading_style, heading);
}

void bpt_chart_panel_say(FILE *out, const bpt_chart_panel *p, const char *why) {
    bpt_svg_text(out, (BPT_CHART_LEFT + BPT_CHART_RIGHT) / 2.0, p->top + p->height / 2 + 4,
                 &number_below, why);
}

void bpt_chart_panel_remark(FILE *out, const bpt_chart_panel *p, bpt_svg_colour colour,
                            const char *text) {
    const bpt_svg_style style = {BPT_CHART_LETTER, colour, BPT_SVG_END, false};
    bpt_svg_text(out, BPT_CHART_RIGHT, p->top - 10, &style, text);
}

/* ---- lines ---- */

void bpt_chart_panel_curve(FILE *out, const bpt_chart_panel *p, const bpt_chart_curve *curve,
                           bpt_svg_colour colour, bpt_chart_weight weight) {
    static const bpt_svg_stroke strokes[] = {
        [BPT_CHART_LIGHT] = {.width = 1, .opacity = 0.4},
        [BPT_CHART_STRONG] = {.width = 2, .opacity = 1},
    };
    bpt_chart_curve at = {.n = curve->n};
    for (size_t i = 0; i < curve->n; i++) {
        at.x[i] = bpt_chart_panel_x(p, curve->x[i]);
        at.y[i] = y_of(p, curve->y[i]);
    }
    bpt_svg_stroke stroke = strokes[weight];
    stroke.colour = colour;
    if (at.n == 1)
        bpt_svg_dot(out, at.x[0], at.y[0], 3, colour, false, NULL);
    else if (at.n > 1)
        bpt_svg_path(out, p->id, at.x, at.y, at.n, &stroke);
}

void bpt_chart_panel_dots(FILE *out, const bpt_chart_panel *p, const bpt_chart_curve *curve,
                          bpt_svg_colour colour, const char *name) {
    enum { MOST_DOTS = 60 };
    if (curve->n > MOST_DOTS) return;
    for (size_t i = 0; i < curve->n; i++) {
        char told[128], x[BPT_CHART_NUMBER_SIZE], y[BPT_CHART_NUMBER_SIZE];
        bpt_chart_number(curve->x[i], x);
        bpt_chart_number(curve->y[i], y);
        snprintf(told, sizeof told, "epoch %s: %s %s", x, name, y);
        bpt_svg_dot(out, bpt_chart_panel_x(p, curve->x[i]), y_of(p, curve->y[i]), 3, colour, false,
                    told);
    }
}

void bpt_chart_panel_ring(FILE *out, const bpt_chart_panel *p, double x, double y,
                          bpt_svg_colour colour) {
    bpt_svg_dot(out, bpt_chart_panel_x(p, x), y_of(p, y), 5, colour, true, NULL);
}

void bpt_chart_panel_mark(FILE *out, const bpt_chart_panel *p, double x) {
    const bpt_svg_stroke stroke = {BPT_SVG_DIM, 1, 1, true};
    const double at = bpt_chart_panel_x(p, x);
    bpt_svg_line(out, at, p->top, at, bottom_of(p), &stroke);
}

void bpt_chart_panel_labels(FILE *out, const bpt_chart_panel *p, const bpt_chart_label *labels,
                            size_t n) {
    const double apart = BPT_CHART_LETTER + 3;
    double y[2] = {0};
    for (size_t i = 0; i < n; i++)
        y[i] = fmax(p->top, fmin(y_of(p, labels[i].value), bottom_of(p)));
    const double lack = n == 2 ? apart - fabs(y[1] - y[0]) : 0;
    if (lack > 0) { /* both give way */
        const double up = y[0] <= y[1] ? -lack / 2 : lack / 2;
        y[0] += up;
        y[1] -= up;
    }
    for (size_t i = 0; i < n; i++) {
        const bpt_svg_style style = {BPT_CHART_LETTER, labels[i].colour, BPT_SVG_START, false};
        bpt_svg_text(out, BPT_CHART_RIGHT + 10, y[i] + 4, &style, labels[i].text);
    }
}
