#include "storage/augment.h"

#include "base/options.h"
#include "storage/augmentation.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const bpt_augmentation *const kinds[] = {&bpt_augmentation_crop, &bpt_augmentation_flip};
enum { N_KINDS = sizeof kinds / sizeof *kinds, LONGEST = 64 };

/* Adds the hint to a list that is refused because of @p name. @return status */
static bpt_status hinted(bpt_status status, const char *name) {
    const char *names[N_KINDS];
    for (int i = 0; i < N_KINDS; i++) names[i] = kinds[i]->name;
    const char *nearest = bpt_nearest(name, names, N_KINDS);
    if (nearest && strcmp(nearest, name) != 0)
        bpt_hint("did you mean \"%s\"?", nearest);
    else
        bpt_hint("there are crop=PIXELS and flip, e.g. crop=4,flip");
    return status;
}

static bpt_status parse_value(const bpt_augmentation *kind, const char *text, uint32_t *value) {
    char *end;
    const unsigned long n = strtoul(text, &end, 10);
    if (*text >= '0' && *text <= '9' && !*end && n >= kind->min && n <= kind->max) {
        *value = (uint32_t)n;
        return BPT_OK;
    }
    return hinted(bpt_fail(BPT_EUSAGE, "augmentation %s: \"%s\" is not a number from %u to %u",
                           kind->name, text, kind->min, kind->max),
                  kind->name);
}

/* @param item "name" or "name=value"; its '=' is overwritten */
static bpt_status parse_item(char *item, const bpt_augmentation **kind, uint32_t *value) {
    char *sign = strchr(item, '=');
    if (sign) *sign = 0;
    *kind = NULL;
    for (int i = 0; i < N_KINDS; i++)
        if (strcmp(kinds[i]->name, item) == 0) *kind = kinds[i];
    *value = 0;
    if (!*kind) return hinted(bpt_fail(BPT_EUSAGE, "there is no augmentation \"%s\"", item), item);
    if ((*kind)->takes_value && !sign)
        return hinted(bpt_fail(BPT_EUSAGE, "augmentation %s lacks its value", item), item);
    if (!(*kind)->takes_value && sign)
        return hinted(bpt_fail(BPT_EUSAGE, "augmentation %s takes no value", item), item);
    return sign ? parse_value(*kind, sign + 1, value) : BPT_OK;
}

/* Moves the first item of the text to the end of the list.
 * @param[out] more whether another one follows */
static bpt_status parse_first(const char **text, bpt_augment *a, bool *more) {
    char item[LONGEST];
    const size_t length = strcspn(*text, ",");
    if (a->n == BPT_AUGMENT_MAX)
        return hinted(bpt_fail(BPT_EUSAGE, "more than %d augmentations", BPT_AUGMENT_MAX), "");
    snprintf(item, sizeof item, "%.*s", length < sizeof item ? (int)length : LONGEST - 1, *text);
    BPT_TRY(parse_item(item, &a->steps[a->n].kind, &a->steps[a->n].value));
    a->n++;
    *more = (*text)[length] == ',';
    *text += length + *more;
    return BPT_OK;
}

bpt_status bpt_augment_parse(const char *text, bpt_augment *augment) {
    bpt_augment a = {.n = 0};
    bool more = strcmp(text, "none") != 0;
    while (more) BPT_TRY(parse_first(&text, &a, &more));
    *augment = a;
    return BPT_OK;
}

bpt_status bpt_augment_check(const bpt_augment *a, uint32_t H, uint32_t W) {
    for (uint32_t i = 0; i < a->n; i++) {
        const bpt_augmentation *kind = a->steps[i].kind;
        const uint32_t smallest = kind->smallest ? kind->smallest(a->steps[i].value) : 1;
        if (H >= smallest && W >= smallest) continue;
        const bpt_status status =
            bpt_fail(BPT_EUSAGE, "augmentation %s=%u wants images of at least %ux%u, not %ux%u",
                     kind->name, a->steps[i].value, smallest, smallest, H, W);
        bpt_hint("give --augment a smaller value");
        return status;
    }
    return BPT_OK;
}

const uint8_t *bpt_augment_apply(const bpt_augment *a, bpt_random *random, uint32_t C, uint32_t H,
                                 uint32_t W, const uint8_t *pixels, uint8_t *scratch) {
    const size_t size = (size_t)C * H * W;
    uint32_t half = 0; /* of the scratch, the one to write next */
    for (uint32_t i = 0; i < a->n; i++) {
        uint8_t *out = scratch + half * size;
        if (!a->steps[i].kind->apply(a->steps[i].value, random, C, H, W, pixels, out)) continue;
        pixels = out;
        half = 1 - half;
    }
    return pixels;
}
