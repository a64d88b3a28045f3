/* Lists of augmentations as text: from the command line, and for messages. */
#include "base/options.h"
#include "base/text.h"
#include "storage/augmentations/augmentation.h"

#include <stdio.h>
#include <string.h>

enum { MAX_KINDS = 64, USAGE = 64 };

/* ---- for messages ---- */

void bpt_augmentation_usage(const bpt_augmentation *kind, char *out, size_t size) {
    int length = snprintf(out, size, "%s", kind->name);
    for (uint32_t i = 0; i < kind->n_parameters && (size_t)length < size; i++)
        length += snprintf(out + length, size - (size_t)length, "%c%s", i == 0 ? '=' : ':',
                           kind->parameters[i].name);
}

/* @param[out] out shape [16]: "4", "0.08" */
static void print_value(const bpt_augmentation_parameter *p, uint32_t value, char *out) {
    if (p->counts) {
        snprintf(out, 16, "%u", value);
        return;
    }
    int length = snprintf(out, 16, "%u.%04u", value / BPT_AUGMENT_UNIT, value % BPT_AUGMENT_UNIT);
    while (out[length - 1] == '0') length--;
    if (out[length - 1] == '.') length--;
    out[length] = 0;
}

void bpt_augmentation_values(const bpt_augmentation *kind, const uint32_t *values, uint32_t n,
                             char *out, size_t size) {
    int length = 0;
    out[0] = 0;
    for (uint32_t i = 0; i < n && (size_t)length < size; i++) {
        char value[16];
        print_value(&kind->parameters[i], values[i], value);
        length += snprintf(out + length, size - (size_t)length, "%s%s", i == 0 ? "" : ":", value);
    }
}

/* Adds the hint to a list that is refused because of its item @p name. @return status */
static bpt_status hint_names(bpt_status status, const char *name) {
    const char *names[MAX_KINDS];
    char usages[MAX_KINDS * USAGE] = "";
    size_t n = 0;
    for (const bpt_augmentation *kind; n < MAX_KINDS && (kind = bpt_augmentation_at(n)); n++) {
        char usage[USAGE];
        bpt_augmentation_usage(kind, usage, sizeof usage);
        bpt_list_add(usages, sizeof usages, usage);
        names[n] = kind->name;
    }
    const char *nearest = bpt_nearest(name, names, n);
    if (nearest)
        bpt_hint("did you mean \"%s\"?", nearest);
    else
        bpt_hint("there are %s; give e.g. crop=4,flip", usages);
    return status;
}

/* Adds the hint to an item that is refused for its values. @return status */
static bpt_status hint_usage(bpt_status status, const bpt_augmentation *kind) {
    char usage[USAGE];
    bpt_augmentation_usage(kind, usage, sizeof usage);
    bpt_hint("it is written %s, e.g. %s", usage, kind->example);
    return status;
}

/* ---- values ---- */

/* @param text shape [length]: digits, and after a point as many as there are decimals
 * @param[out] value in the parameter's units; UINT32_MAX: that, or more
 * @return whether it is a number */
static bool parse_number(const char *text, size_t length, bool counts, uint32_t *value) {
    uint64_t v = 0;
    size_t point = length; /* where it is */
    for (size_t i = 0; i < length; i++) {
        if (text[i] == '.' && point == length && !counts)
            point = i;
        else if (text[i] >= '0' && text[i] <= '9')
            v = 10 * v + (uint64_t)(text[i] - '0');
        else
            return false;
        if (v > UINT32_MAX) v = UINT32_MAX;
    }
    const size_t n_decimals = point < length ? length - point - 1 : 0;
    if (point == 0 || (point < length && n_decimals == 0) || n_decimals > BPT_AUGMENT_DECIMALS)
        return false;
    for (size_t i = n_decimals; i < BPT_AUGMENT_DECIMALS && !counts; i++) v *= 10;
    *value = v < UINT32_MAX ? (uint32_t)v : UINT32_MAX;
    return true;
}

/* @param text shape [length] */
static bpt_status parse_value(const bpt_augmentation *kind, uint32_t i, const char *text,
                              size_t length, uint32_t *value) {
    const bpt_augmentation_parameter *p = &kind->parameters[i];
    if (parse_number(text, length, p->counts, value) && *value >= p->min && *value <= p->max)
        return BPT_OK;
    char min[16], max[16];
    print_value(p, p->min, min);
    print_value(p, p->max, max);
    const char *what = p->counts ? "a whole number" : "a number";
    return hint_usage(bpt_fail(BPT_EUSAGE, "augmentation %s: %s \"%.*s\" is not %s from %s to %s%s",
                               kind->name, p->name, (int)(length < USAGE ? length : USAGE), text,
                               what, min, max, p->counts ? "" : " with at most 4 decimals"),
                      kind);
}

_Static_assert(BPT_AUGMENT_DECIMALS == 4, "parse_value() says it in its message");

static bpt_status check_values(const bpt_augmentation *kind, const uint32_t *values) {
    for (uint32_t i = 1; i < kind->n_parameters; i++) {
        const bpt_augmentation_parameter *p = &kind->parameters[i];
        if (!p->rises || values[i] >= values[i - 1]) continue;
        char low[16], high[16];
        print_value(p - 1, values[i - 1], low);
        print_value(p, values[i], high);
        return hint_usage(bpt_fail(BPT_EUSAGE, "augmentation %s: %s %s is below %s %s", kind->name,
                                   p->name, high, p[-1].name, low),
                          kind);
    }
    return BPT_OK;
}

/* @param text shape [length], what follows the '='; NULL: nothing */
static bpt_status parse_values(const bpt_augmentation *kind, const char *text, size_t length,
                               uint32_t *values) {
    const char *end = text ? text + length : NULL;
    uint32_t n = 0;
    for (const char *next; text; text = next, n++) {
        const char *colon = memchr(text, ':', (size_t)(end - text));
        next = colon ? colon + 1 : NULL;
        if (n == kind->n_parameters)
            return hint_usage(bpt_fail(BPT_EUSAGE, "augmentation %s: too many values, it takes %u",
                                       kind->name, n),
                              kind);
        BPT_TRY(parse_value(kind, n, text, (size_t)((colon ? colon : end) - text), &values[n]));
    }
    for (; n < kind->n_parameters; n++) {
        if (kind->parameters[n].required)
            return hint_usage(bpt_fail(BPT_EUSAGE, "augmentation %s lacks its %s", kind->name,
                                       kind->parameters[n].name),
                              kind);
        values[n] = kind->parameters[n].otherwise;
    }
    return check_values(kind, values);
}

/* ---- lists ---- */

/* @param name shape [length] */
static const bpt_augmentation *find(const char *name, size_t length) {
    const bpt_augmentation *kind;
    for (size_t i = 0; (kind = bpt_augmentation_at(i)); i++)
        if (strlen(kind->name) == length && memcmp(kind->name, name, length) == 0) return kind;
    return NULL;
}

/* @param item shape [length] */
static bpt_status parse_item(const char *item, size_t length, bpt_augment *a) {
    const char *sign = memchr(item, '=', length);
    const size_t n_name = sign ? (size_t)(sign - item) : length;
    const bpt_augmentation *kind = find(item, n_name);
    if (!kind) {
        char name[USAGE];
        snprintf(name, sizeof name, "%.*s", n_name < sizeof name ? (int)n_name : USAGE - 1, item);
        return hint_names(bpt_fail(BPT_EUSAGE, "there is no augmentation \"%s\"", name), name);
    }
    if (a->n == BPT_AUGMENT_MAX) {
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "more than %d augmentations", BPT_AUGMENT_MAX);
        bpt_hint("leave out those from \"%.*s\" on", (int)n_name, item);
        return status;
    }
    a->steps[a->n].kind = kind;
    BPT_TRY(parse_values(kind, sign ? sign + 1 : NULL, length - n_name - (sign != NULL),
                         a->steps[a->n].values));
    a->n++;
    return BPT_OK;
}

/* What came behind would cut from a mixed image, or black out, another share than its labels say.
 */
static bpt_status check_order(const bpt_augment *a) {
    const bpt_augmentation *last = a->steps[a->n - 1].kind;
    const bpt_augmentation *before = a->n > 1 ? a->steps[a->n - 2].kind : NULL;
    bpt_status status;
    if (!before || !before->mix) return BPT_OK;
    if (!last->mix) {
        status =
            bpt_fail(BPT_EUSAGE, "augmentation %s cannot come behind %s", last->name, before->name);
        bpt_hint("put %s at the end: images are mixed as the rest of the list has left them",
                 before->name);
        return status;
    }
    for (uint32_t i = 0; i + 1 < a->n; i++) {
        if (a->steps[i].kind != last) continue;
        status = bpt_fail(BPT_EUSAGE, "augmentation %s is given twice", last->name);
        bpt_hint("an image is mixed once: leave one of them out");
        return status;
    }
    return BPT_OK;
}

bpt_status bpt_augment_parse(const char *text, bpt_augment *augment) {
    bpt_augment a = {.n = 0};
    bool more = strcmp(text, "none") != 0;
    while (more) {
        const size_t length = strcspn(text, ",");
        BPT_TRY(parse_item(text, length, &a));
        BPT_TRY(check_order(&a));
        more = text[length] == ',';
        text += length + more;
    }
    *augment = a;
    return BPT_OK;
}
