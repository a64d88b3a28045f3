/** @file tools/train/chart/chart_svg.h
 * The few shapes of SVG that a chart is of. What is written needs nothing beside it: no script, no
 * font, no link. Colours are those of light pages; where a reader prefers dark ones, and its
 * program knows of that, they are exchanged, the ground with them, so that it can be read anywhere.
 *
 * Lengths are pixels, from the upper left corner. What cannot be written the stream remembers.
 *
 * Threads: one at a time may use a stream. */
#ifndef BPT_TOOLS_CHART_SVG_H
#define BPT_TOOLS_CHART_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/** What a shape is for. The two lines can be told apart by the colour-blind and in grey. */
typedef enum bpt_svg_colour {
    BPT_SVG_GROUND,
    BPT_SVG_INK,
    BPT_SVG_DIM, /* words of less weight */
    BPT_SVG_GRID,
    BPT_SVG_TRAIN, /* what is trained on */
    BPT_SVG_TEST,  /* what is tested with */
    BPT_SVG_PLAIN, /* the only line of its kind */
} bpt_svg_colour;

typedef enum bpt_svg_anchor { BPT_SVG_START, BPT_SVG_MIDDLE, BPT_SVG_END } bpt_svg_anchor;

typedef struct bpt_svg_style {
    double size; /* of letters */
    bpt_svg_colour colour;
    bpt_svg_anchor anchor; /* which part of the text is at x */
    bool bold;
} bpt_svg_style;

typedef struct bpt_svg_stroke {
    bpt_svg_colour colour;
    double width, opacity; /* opacity 1: covers */
    bool dashed;
} bpt_svg_stroke;

/** A rectangle. */
typedef struct bpt_svg_box {
    double x, y, width, height;
} bpt_svg_box;

/** Writes the head, and the ground that all is drawn on.
 * @param title what a program shows as the name of the picture */
void bpt_svg_begin(FILE *out, double width, double height, const char *title);
void bpt_svg_end(FILE *out);

/** Writes a text so that it is one in XML: what means something there is spelled out, and what may
 * not be in it, a control character, is a question mark. */
void bpt_svg_escape(FILE *out, const char *text);

/** @param y of the line that letters stand on */
void bpt_svg_text(FILE *out, double x, double y, const bpt_svg_style *style, const char *text);

void bpt_svg_line(FILE *out, double x1, double y1, double x2, double y2,
                  const bpt_svg_stroke *stroke);

/** Names a box, and draws a line through points, of which what is outside of it is not shown.
 * @param x,y shape [n] */
void bpt_svg_clip(FILE *out, unsigned id, const bpt_svg_box *box);
void bpt_svg_path(FILE *out, unsigned clip_id, const double *x, const double *y, size_t n,
                  const bpt_svg_stroke *stroke);

/** Draws a disc, or a ring on the ground's colour.
 * @param told what a reader is told who points at it; NULL: nothing */
void bpt_svg_dot(FILE *out, double x, double y, double radius, bpt_svg_colour colour, bool ring,
                 const char *told);

#endif
