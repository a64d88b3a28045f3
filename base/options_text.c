/* The option table as text: help, effective configuration, and the nearest name to a typing error.
 */
#include "base/options.h"
#include "base/text.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HELP_COLUMN = 30, HELP_WIDTH = 100, MAX_WORD = 64 };

static void print_indented(const char *text, FILE *out) {
    for (const char *p = text; *p; p++) {
        fputc(*p, out);
        if (*p == '\n') fprintf(out, "%*s", HELP_COLUMN, "");
    }
    fputc('\n', out);
}

static void print_flag(const bpt_option *o, FILE *out) {
    char left[128];
    const char *unit = o->type == BPT_OPTION_CHOICE ? o->choices : o->unit ? o->unit : "";
    const char *space = *unit && o->type != BPT_OPTION_FLAG ? " " : "";
    if (o->letter)
        snprintf(left, sizeof left, "  -%c, --%s%s%s", o->letter, o->name, space,
                 *space ? unit : "");
    else
        snprintf(left, sizeof left, "      --%s%s%s", o->name, space, *space ? unit : "");
    fputs(left, out);
    if (strlen(left) + 2 > HELP_COLUMN)
        fprintf(out, "\n%*s", HELP_COLUMN, "");
    else
        fprintf(out, "%*s", HELP_COLUMN - (int)strlen(left), "");
}

static void print_option(const bpt_option *o, FILE *out) {
    print_flag(o, out);
    char text[1200];
    const bool has_default = o->value && o->type != BPT_OPTION_FLAG && *o->value;
    const char *line = strrchr(o->help, '\n');
    const size_t last = strlen(line ? line + 1 : o->help);
    const size_t more = has_default ? sizeof " (default: )" - 1 + strlen(o->value) : 0;
    const char *gap = HELP_COLUMN + last + more > HELP_WIDTH ? "\n" : " ";
    if (has_default)
        snprintf(text, sizeof text, "%s%s(default: %s)", o->help, gap, o->value);
    else
        snprintf(text, sizeof text, "%s", o->help);
    print_indented(text, out);
}

void bpt_options_help(const bpt_command *c, FILE *out) {
    fprintf(out, "usage: %s %s\n\n%s\n", c->name, c->synopsis, c->summary);
    for (size_t i = 0; i < c->n_options; i++) {
        if (c->options[i].group) fprintf(out, "\n%s:\n", c->options[i].group);
        if (i == 0 && !c->options[i].group) fprintf(out, "\noptions:\n");
        print_option(&c->options[i], out);
    }
    static const bpt_option common[] = {
        {.name = "config",
         .type = BPT_OPTION_TEXT,
         .unit = "FILE",
         .help = "read options from a YAML file, one a line (name: value); of\n"
                 "several files later ones win, and the command line always"},
        {.name = "help", .type = BPT_OPTION_FLAG, .help = "print this and exit"},
        {.name = "version", .type = BPT_OPTION_FLAG, .help = "print the version and exit"},
    };
    fprintf(out, "\ncommon:\n");
    for (size_t i = 0; i < sizeof common / sizeof *common; i++) print_option(&common[i], out);
    if (c->epilogue) fprintf(out, "\n%s\n", c->epilogue);
}

/* YAML plain text would change some values (": ", "#", "true"), so every text is quoted. Control
 * characters are not allowed as they are, nor what is no character, and U+0085, U+2028 and U+2029
 * would break the line. */
static void print_quoted(const char *text, FILE *out) {
    fputc('"', out);
    for (const char *p = text; *p; p++) {
        const unsigned unfit = bpt_text_unfit(p);
        if (*p == '"' || *p == '\\')
            fprintf(out, "\\%c", *p);
        else if (unfit)
            fprintf(out, unfit < 0x100 ? "\\x%02x" : "\\u%04x", unfit);
        else
            fputc(*p, out);
        if (unfit >= 0x80) p += unfit < 0x800 ? 1 : 2; /* it has as many more bytes */
    }
    fputc('"', out);
}

static void print_choice(const bpt_option *o, int index, FILE *out) {
    const char *p = o->choices;
    for (; index > 0; index--) p += strcspn(p, "|") + 1;
    fprintf(out, "%.*s", (int)strcspn(p, "|"), p);
}

static void print_real(double value, FILE *out) {
    char text[40];
    for (int digits = 6; digits <= 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value) break;
    }
    fputs(text, out);
}

/* A zero without a default was never given, and may be out of the option's range. What has a
 * default is always printed: also a list that was emptied. */
static bool has_value(const bpt_option *o, const void *field) {
    const int64_t *numbers = field;
    switch (o->type) {
    case BPT_OPTION_TEXT:
        return *(const char *const *)field != NULL;
    case BPT_OPTION_INT:
        return o->value || numbers[0] != 0;
    case BPT_OPTION_SIZE:
        return o->value || *(const uint64_t *)field != 0;
    case BPT_OPTION_REAL:
        return o->value || *(const double *)field != 0;
    case BPT_OPTION_PAIR:
        return o->value || numbers[0] != 0 || numbers[1] != 0;
    case BPT_OPTION_LIST:
        return o->value || numbers[0] >= 0;
    case BPT_OPTION_FLAG:
    case BPT_OPTION_CHOICE:
        break;
    }
    return true;
}

static void print_value(const bpt_option *o, const void *field, FILE *out) {
    switch (o->type) {
    case BPT_OPTION_FLAG:
        fputs(*(const bool *)field ? "true" : "false", out);
        break;
    case BPT_OPTION_INT:
        fprintf(out, "%" PRId64, *(const int64_t *)field);
        break;
    case BPT_OPTION_SIZE:
        fprintf(out, "%" PRIu64, *(const uint64_t *)field);
        break;
    case BPT_OPTION_REAL:
        print_real(*(const double *)field, out);
        break;
    case BPT_OPTION_TEXT:
        print_quoted(*(const char *const *)field, out);
        break;
    case BPT_OPTION_CHOICE:
        print_choice(o, *(const int *)field, out);
        break;
    case BPT_OPTION_PAIR:
        fprintf(out, "[%" PRId64 ", %" PRId64 "]", ((const int64_t *)field)[0],
                ((const int64_t *)field)[1]);
        break;
    case BPT_OPTION_LIST:
        fputc('[', out);
        for (size_t i = 0; i < BPT_OPTION_LIST_MAX && ((const int64_t *)field)[i] >= 0; i++)
            fprintf(out, "%s%" PRId64, i ? ", " : "", ((const int64_t *)field)[i]);
        fputc(']', out);
        break;
    }
}

bpt_status bpt_options_check_texts(const bpt_command *c, const void *values) {
    for (size_t i = 0; i < c->n_options; i++) {
        const bpt_option *o = &c->options[i];
        if (o->type != BPT_OPTION_TEXT) continue;
        const char *text = *(const char *const *)((const char *)values + o->offset);
        if (!text || bpt_text_is_utf8(text)) continue;
        const bpt_status status = bpt_fail(
            BPT_EUSAGE, "--%s %s is no UTF-8: no configuration file could have it", o->name, text);
        bpt_hint("reach it by another name, as by a link");
        return status;
    }
    return BPT_OK;
}

void bpt_options_print(const bpt_command *c, const void *values, FILE *out) {
    for (size_t i = 0; i < c->n_options; i++) {
        const bpt_option *o = &c->options[i];
        const void *field = (const char *)values + o->offset;
        if (!has_value(o, field)) continue;
        fprintf(out, "%s: ", o->name);
        print_value(o, field, out);
        fputc('\n', out);
    }
}

static size_t edit_distance(const char *a, const char *b) {
    const size_t n = strlen(b);
    size_t row[MAX_WORD + 1];
    if (strlen(a) > MAX_WORD || n > MAX_WORD) return SIZE_MAX;
    for (size_t j = 0; j <= n; j++) row[j] = j;
    for (size_t i = 0; a[i]; i++) {
        size_t diagonal = row[0];
        row[0] = i + 1;
        for (size_t j = 0; j < n; j++) {
            size_t best = diagonal + (a[i] != b[j]);
            if (row[j] + 1 < best) best = row[j] + 1;
            if (row[j + 1] + 1 < best) best = row[j + 1] + 1;
            diagonal = row[j + 1];
            row[j + 1] = best;
        }
    }
    return row[n];
}

const char *bpt_nearest(const char *word, const char *const *names, size_t n) {
    const char *best = NULL;
    size_t best_distance = strlen(word) / 3 + 1; /* one slip for each three letters */
    for (size_t i = 0; i < n; i++) {
        const bool is_prefix = strlen(word) >= 3 && strncmp(names[i], word, strlen(word)) == 0;
        const size_t distance = is_prefix ? 1 : edit_distance(word, names[i]);
        if (distance < best_distance || (distance == best_distance && !best)) {
            best = names[i];
            best_distance = distance;
        }
    }
    return best;
}
