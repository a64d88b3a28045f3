/* Values of options as text. */
#include "base/option_values.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bpt_status bad_value(const bpt_option *o, const char *text, const char *expected) {
    return bpt_fail(BPT_EUSAGE, "--%s: \"%s\" is not %s", o->name, text, expected);
}

/* Ten digits, as whole numbers of 32 bits have. */
static bpt_status check_range(const bpt_option *o, const char *text, double value) {
    if (o->min == 0 && o->max == 0) return BPT_OK;
    if (value >= o->min && value <= o->max) return BPT_OK;
    if (o->max >= 1e15)
        return bpt_fail(BPT_EUSAGE, "--%s: %s is out of range, it must be at %s %.10g", o->name,
                        text, value < o->min ? "least" : "most", value < o->min ? o->min : o->max);
    return bpt_fail(BPT_EUSAGE, "--%s: %s is out of range, it must be between %.10g and %.10g",
                    o->name, text, o->min, o->max);
}

static bpt_status parse_int(const bpt_option *o, const char *text, int64_t *out) {
    char *end;
    errno = 0;
    const long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno) return bad_value(o, text, "a whole number");
    BPT_TRY(check_range(o, text, (double)value));
    *out = value;
    return BPT_OK;
}

static bpt_status parse_size(const bpt_option *o, const char *text, uint64_t *out) {
    char *end;
    errno = 0;
    uint64_t value = strtoull(text, &end, 10);
    bool bad = errno || text[0] < '0' || text[0] > '9'; /* strtoull would take " -1" */
    const char *units = "KMG";
    const char *unit = *end ? strchr(units, *end) : NULL;
    if (unit) {
        bad |= __builtin_mul_overflow(value, (uint64_t)1 << (10 * (unit - units + 1)), &value);
        end++;
    }
    if (bad || *end) return bad_value(o, text, "a size like 512, 64K, 8M or 1G");
    BPT_TRY(check_range(o, text, (double)value));
    *out = value;
    return BPT_OK;
}

static bpt_status parse_real(const bpt_option *o, const char *text, double *out) {
    char *end;
    const double value = strtod(text, &end);
    if (end == text || *end || !isfinite(value)) return bad_value(o, text, "a number");
    BPT_TRY(check_range(o, text, value));
    *out = value;
    return BPT_OK;
}

static bpt_status parse_flag(const bpt_option *o, const char *text, bool *out) {
    const bool yes = strcmp(text, "true") == 0;
    if (!yes && strcmp(text, "false") != 0) return bad_value(o, text, "true or false");
    *out = yes;
    return BPT_OK;
}

/* @return length of the choice that starts at p */
static size_t choice_length(const char *p) {
    return strcspn(p, "|");
}

static bpt_status parse_choice(const bpt_option *o, const char *text, int *out) {
    int index = 0;
    for (const char *p = o->choices;; index++) {
        const size_t length = choice_length(p);
        if (strlen(text) == length && strncmp(p, text, length) == 0) {
            *out = index;
            return BPT_OK;
        }
        if (!p[length]) break;
        p += length + 1;
    }
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--%s: \"%s\" is not known", o->name, text);
    bpt_hint("choose one of %s", o->choices);
    return status;
}

static bpt_status parse_pair(const bpt_option *o, const char *text, int64_t out[2]) {
    char first[32];
    const size_t length = strcspn(text, " x");
    if (length >= sizeof first || !text[length] || !text[length + 1])
        return bad_value(o, text, "two whole numbers like 32 48 or 32x48");
    memcpy(first, text, length);
    first[length] = '\0';
    int64_t pair[2];
    BPT_TRY(parse_int(o, first, &pair[0]));
    BPT_TRY(parse_int(o, text + length + 1, &pair[1]));
    memcpy(out, pair, sizeof pair);
    return BPT_OK;
}

static bpt_status parse_list(const bpt_option *o, const char *text, int64_t *out) {
    int64_t list[BPT_OPTION_LIST_MAX];
    size_t n = 0;
    for (const char *p = text; *p;) {
        char item[32];
        const size_t length = strcspn(p, ",");
        if (length >= sizeof item || n == BPT_OPTION_LIST_MAX)
            return bad_value(o, text, "a short list of whole numbers like 8,14,18");
        memcpy(item, p, length);
        item[length] = '\0';
        BPT_TRY(parse_int(o, item, &list[n]));
        if (list[n++] < 0) return bad_value(o, text, "a list of numbers from 0"); /* -1: unused */
        p += length + (p[length] == ',');
    }
    for (size_t i = 0; i < BPT_OPTION_LIST_MAX; i++) out[i] = i < n ? list[i] : -1;
    return BPT_OK;
}

bpt_status bpt__option_parse(const bpt_option *o, const char *text, void *field) {
    switch (o->type) {
    case BPT_OPTION_FLAG:
        return parse_flag(o, text, field);
    case BPT_OPTION_INT:
        return parse_int(o, text, field);
    case BPT_OPTION_SIZE:
        return parse_size(o, text, field);
    case BPT_OPTION_REAL:
        return parse_real(o, text, field);
    case BPT_OPTION_TEXT:
        if (o->check) BPT_TRY(o->check(text));
        *(const char **)field = text;
        return BPT_OK;
    case BPT_OPTION_CHOICE:
        return parse_choice(o, text, field);
    case BPT_OPTION_PAIR:
        return parse_pair(o, text, field);
    case BPT_OPTION_LIST:
        return parse_list(o, text, field);
    }
    return BPT_OK;
}

size_t bpt__option_size(const bpt_option *o) {
    static const size_t sizes[] = {
        [BPT_OPTION_FLAG] = sizeof(bool),
        [BPT_OPTION_INT] = sizeof(int64_t),
        [BPT_OPTION_SIZE] = sizeof(uint64_t),
        [BPT_OPTION_REAL] = sizeof(double),
        [BPT_OPTION_TEXT] = sizeof(const char *),
        [BPT_OPTION_CHOICE] = sizeof(int),
        [BPT_OPTION_PAIR] = 2 * sizeof(int64_t),
        [BPT_OPTION_LIST] = BPT_OPTION_LIST_MAX * sizeof(int64_t),
    };
    return sizes[o->type];
}

void bpt__option_clear(const bpt_option *o, void *field) {
    switch (o->type) {
    case BPT_OPTION_FLAG:
        *(bool *)field = false;
        break;
    case BPT_OPTION_INT:
        *(int64_t *)field = 0;
        break;
    case BPT_OPTION_SIZE:
        *(uint64_t *)field = 0;
        break;
    case BPT_OPTION_REAL:
        *(double *)field = 0;
        break;
    case BPT_OPTION_TEXT:
        *(const char **)field = NULL;
        break;
    case BPT_OPTION_CHOICE:
        *(int *)field = 0;
        break;
    case BPT_OPTION_PAIR:
        memset(field, 0, 2 * sizeof(int64_t));
        break;
    case BPT_OPTION_LIST:
        for (size_t i = 0; i < BPT_OPTION_LIST_MAX; i++) ((int64_t *)field)[i] = -1;
        break;
    }
}

bool bpt__option_is_default(const bpt_option *o, const void *field) {
    if (o->type == BPT_OPTION_TEXT) {
        const char *text = *(const char *const *)field;
        return text && o->value ? strcmp(text, o->value) == 0 : text == o->value;
    }
    union { /* a field of any type but text */
        bool flag;
        int64_t numbers[BPT_OPTION_LIST_MAX];
        uint64_t size;
        double real;
        int choice;
    } fallback;
    bpt__option_clear(o, &fallback);
    if (o->value && bpt__option_parse(o, o->value, &fallback) != BPT_OK) return false;
    return memcmp(field, &fallback, bpt__option_size(o)) == 0;
}
