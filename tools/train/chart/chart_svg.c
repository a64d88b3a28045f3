#include "tools/train/chart/chart_svg.h"

#include "base/text.h"

#include <string.h>

/* Blue and vermilion of a palette for the colour-blind (Okabe and Ito, Color Universal Design,
 * 2008), on dark ground sky blue and orange of it. */
static const struct {
    const char *name, *light, *dark;
} colours[] = {
    [BPT_SVG_GROUND] = {"ground", "#ffffff", "#16181c"},
    [BPT_SVG_INK] = {"ink", "#202124", "#e8e8e8"},
    [BPT_SVG_DIM] = {"dim", "#5f6368", "#a8adb3"},
    [BPT_SVG_GRID] = {"grid", "#e3e5e8", "#34383e"},
    [BPT_SVG_TRAIN] = {"train", "#0072b2", "#56b4e9"},
    [BPT_SVG_TEST] = {"test", "#d55e00", "#e69f00"},
    [BPT_SVG_PLAIN] = {"plain", "#4a4e54", "#c4c8cc"},
};

/* What is given as an attribute every program knows; the class is for those that know of dark
 * pages. */
static void put_fill(FILE *out, bpt_svg_colour colour) {
    fprintf(out, " class=\"f-%s\" fill=\"%s\"", colours[colour].name, colours[colour].light);
}

static void put_stroke(FILE *out, const bpt_svg_stroke *s) {
    fprintf(out, " class=\"s-%s\" stroke=\"%s\" stroke-width=\"%g\"", colours[s->colour].name,
            colours[s->colour].light, s->width);
    if (s->opacity < 1) fprintf(out, " stroke-opacity=\"%g\"", s->opacity);
    if (s->dashed) fputs(" stroke-dasharray=\"4 4\"", out);
}

void bpt_svg_begin(FILE *out, double width, double height, const char *title) {
    fprintf(out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" role=\"img\" width=\"%g\" height=\"%g\" "
            "viewBox=\"0 0 %g %g\" font-family=\"Helvetica, Arial, sans-serif\">\n<title>",
            width, height, width, height);
    bpt_svg_escape(out, title);
    fputs("</title>\n<style>@media (prefers-color-scheme: dark) {", out);
    for (size_t i = 0; i < sizeof colours / sizeof *colours; i++)
        fprintf(out, " .f-%s { fill: %s } .s-%s { stroke: %s }", colours[i].name, colours[i].dark,
                colours[i].name, colours[i].dark);
    fputs(" }</style>\n<rect width=\"100%\" height=\"100%\"", out);
    put_fill(out, BPT_SVG_GROUND);
    fputs("/>\n", out);
}

void bpt_svg_end(FILE *out) {
    fputs("</svg>\n", out);
}

/* @return bytes of the first character */
static size_t put_first(FILE *out, const char *text) {
    static const char special[] = "&<>\"'";
    static const char *const spelled[] = {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"};
    const char *found = strchr(special, text[0]);
    size_t n = 1;
    while (((unsigned char)text[0] & 0x80) && ((unsigned char)text[n] & 0xC0) == 0x80) n++;
    if (found)
        fputs(spelled[found - special], out);
    else if (bpt_text_unfit(text))
        fputc('?', out);
    else
        fwrite(text, 1, n, out);
    return n;
}

void bpt_svg_escape(FILE *out, const char *text) {
    while (*text) text += put_first(out, text);
}

void bpt_svg_text(FILE *out, double x, double y, const bpt_svg_style *style, const char *text) {
    static const char *const anchors[] = {
        [BPT_SVG_START] = "start", [BPT_SVG_MIDDLE] = "middle", [BPT_SVG_END] = "end"};
    fprintf(out, "<text x=\"%.1f\" y=\"%.1f\" font-size=\"%g\"", x, y, style->size);
    if (style->anchor != BPT_SVG_START) fprintf(out, " text-anchor=\"%s\"", anchors[style->anchor]);
    if (style->bold) fputs(" font-weight=\"bold\"", out);
    put_fill(out, style->colour);
    fputc('>', out);
    bpt_svg_escape(out, text);
    fputs("</text>\n", out);
}

void bpt_svg_line(FILE *out, double x1, double y1, double x2, double y2,
                  const bpt_svg_stroke *stroke) {
    fprintf(out, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"", x1, y1, x2, y2);
    put_stroke(out, stroke);
    fputs("/>\n", out);
}

void bpt_svg_clip(FILE *out, unsigned id, const bpt_svg_box *box) {
    fprintf(out,
            "<clipPath id=\"clip%u\"><rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>"
            "</clipPath>\n",
            id, box->x, box->y, box->width, box->height);
}

void bpt_svg_path(FILE *out, unsigned clip_id, const double *x, const double *y, size_t n,
                  const bpt_svg_stroke *stroke) {
    fprintf(out,
            "<path clip-path=\"url(#clip%u)\" fill=\"none\" stroke-linejoin=\"round\" "
            "stroke-linecap=\"round\"",
            clip_id);
    put_stroke(out, stroke);
    fputs(" d=\"", out);
    for (size_t i = 0; i < n; i++) fprintf(out, "%c%.1f %.1f", i > 0 ? 'L' : 'M', x[i], y[i]);
    fputs("\"/>\n", out);
}

void bpt_svg_dot(FILE *out, double x, double y, double radius, bpt_svg_colour colour, bool ring,
                 const char *told) {
    fprintf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%g\"", x, y, radius);
    if (ring)
        fprintf(out, " class=\"f-ground s-%s\" fill=\"%s\" stroke=\"%s\" stroke-width=\"2\"",
                colours[colour].name, colours[BPT_SVG_GROUND].light, colours[colour].light);
    else
        put_fill(out, colour);
    if (!told) {
        fputs("/>\n", out);
        return;
    }
    fputs("><title>", out);
    bpt_svg_escape(out, told);
    fputs("</title></circle>\n", out);
}
