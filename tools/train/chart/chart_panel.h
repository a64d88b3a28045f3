/** @file tools/train/chart/chart_panel.h
 * One of the panels of a chart, which are of one width, one below the other: its frame with numbers
 * and a heading, and the lines in it.
 *
 * Threads: one at a time may use a stream. */
#ifndef BPT_TOOLS_CHART_PANEL_H
#define BPT_TOOLS_CHART_PANEL_H

#include "tools/train/chart/chart_axis.h"
#include "tools/train/chart/chart_series.h"
#include "tools/train/chart/chart_svg.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { BPT_CHART_LEFT = 64, BPT_CHART_RIGHT = 728, BPT_CHART_WIDTH = 860, BPT_CHART_LETTER = 12 };

typedef struct bpt_chart_panel {
    unsigned id; /* one of its own in the picture */
    double top, height;
    bpt_chart_axis x, y;
} bpt_chart_panel;

/** Writes frame, grid and numbers.
 * @param x_unit what is written behind the numbers below; NULL: there are none */
void bpt_chart_panel_begin(FILE *out, const bpt_chart_panel *p, const char *heading,
                           const char *x_unit);

/** Says in the middle why there is nothing. */
void bpt_chart_panel_say(FILE *out, const bpt_chart_panel *p, const char *why);

/** Says something at the right of the heading. */
void bpt_chart_panel_remark(FILE *out, const bpt_chart_panel *p, bpt_svg_colour colour,
                            const char *text);

typedef enum bpt_chart_weight {
    BPT_CHART_LIGHT, /* behind a line that says the same more clearly */
    BPT_CHART_STRONG,
} bpt_chart_weight;

/** Draws a curve; one of a single point is a dot. */
void bpt_chart_panel_curve(FILE *out, const bpt_chart_panel *p, const bpt_chart_curve *curve,
                           bpt_svg_colour colour, bpt_chart_weight weight);

/** Marks each point of a curve, unless they are so many that dots would run into each other, with
 * its numbers for who points at it.
 * @param name of what they are, for these */
void bpt_chart_panel_dots(FILE *out, const bpt_chart_panel *p, const bpt_chart_curve *curve,
                          bpt_svg_colour colour, const char *name);

/** Rings the place of a value. */
void bpt_chart_panel_ring(FILE *out, const bpt_chart_panel *p, double x, double y,
                          bpt_svg_colour colour);

/** Draws a line from top to bottom. */
void bpt_chart_panel_mark(FILE *out, const bpt_chart_panel *p, double x);

/** @return where a value of x is, in pixels */
double bpt_chart_panel_x(const bpt_chart_panel *p, double x);

/** The name of a line, at its end. */
typedef struct bpt_chart_label {
    const char *text;
    double value; /* of y, there */
    bpt_svg_colour colour;
} bpt_chart_label;

/** Writes the names of at most two lines beside their ends, so that they do not touch. */
void bpt_chart_panel_labels(FILE *out, const bpt_chart_panel *p, const bpt_chart_label *labels,
                            size_t n);

#endif
