#include "storage/importers/class_table.h"

#include "base/checksum.h"
#include "base/memory.h"
#include "base/text.h"
#include "storage/importers/importer.h"

#include <stdlib.h>
#include <string.h>

void bpt__class_table_free(bpt__class_table *t) {
    for (uint32_t i = 0; i < t->n; i++) bpt_free(t->names[i]);
    bpt_free(t->names);
    bpt_free(t->slots);
    *t = (bpt__class_table){0};
}

/* @return the slot of a name, or the free one where it would be; there is a free one */
static size_t slot_of(const bpt__class_table *t, const char *name) {
    size_t i = (size_t)bpt_checksum(name, strlen(name)) & (t->n_slots - 1);
    while (t->slots[i] != 0 && strcmp(t->names[t->slots[i] - 1], name) != 0)
        i = (i + 1) & (t->n_slots - 1);
    return i;
}

static void enter_all(bpt__class_table *t) {
    memset(t->slots, 0, t->n_slots * sizeof *t->slots);
    for (uint32_t i = 0; i < t->n; i++) t->slots[slot_of(t, t->names[i])] = i + 1;
}

/* Keeps half of the slots free, so that a look-up is short and ends. */
static bpt_status reserve_slot(bpt__class_table *t) {
    if (2 * ((size_t)t->n + 1) <= t->n_slots) return BPT_OK;
    const size_t n_slots = t->n_slots ? 2 * t->n_slots : 64;
    uint32_t *slots;
    BPT_TRY(BPT_NEW("class slots", n_slots, &slots));
    bpt_free(t->slots);
    t->slots = slots;
    t->n_slots = n_slots;
    enter_all(t);
    return BPT_OK;
}

bpt_status bpt__class_table_add(bpt__class_table *t, const char *where, const char *name,
                                uint32_t *number) {
    if (bpt__class_table_find(t, name, number)) return BPT_OK;
    if (!*name || !bpt_text_is_utf8(name)) {
        const bpt_status status =
            bpt_fail(BPT_EDATA, "%s: \"%s\" is no class name: empty or not UTF-8", where, name);
        bpt_hint("rename it");
        return status;
    }
    if (t->n == BPT_IMPORT_MAX_CLASSES)
        return bpt_fail(BPT_EDATA,
                        "%s: there are more than %d classes, which a dataset cannot have", where,
                        BPT_IMPORT_MAX_CLASSES);
    BPT_TRY(reserve_slot(t));
    BPT_TRY(BPT_GROW("class names", (size_t)t->n + 1, &t->names, &t->capacity));
    BPT_TRY(bpt_strdup(name, &t->names[t->n]));
    t->slots[slot_of(t, name)] = t->n + 1;
    *number = t->n++;
    return BPT_OK;
}

bpt_status bpt__class_table_fill(bpt__class_table *t, const char *const *names, uint32_t n) {
    for (uint32_t i = 0; i < n; i++) {
        uint32_t number;
        BPT_TRY(bpt__class_table_add(t, "known classes", names[i], &number));
        if (number != i)
            return bpt_fail(BPT_EUSAGE, "the class name \"%s\" is given twice", names[i]);
    }
    return BPT_OK;
}

bool bpt__class_table_find(const bpt__class_table *t, const char *name, uint32_t *number) {
    if (t->n == 0) return false;
    const uint32_t found = t->slots[slot_of(t, name)];
    if (found != 0) *number = found - 1;
    return found != 0;
}

typedef struct numbered {
    char *name;
    uint32_t number;
} numbered;

static int compare_names(const void *a, const void *b) {
    return strcmp(((const numbered *)a)->name, ((const numbered *)b)->name);
}

bpt_status bpt__class_table_sort(bpt__class_table *t, uint32_t **numbers) {
    numbered *order = NULL;
    bpt_status status;
    BPT_TRY(BPT_NEW("class numbers", t->n, numbers));
    BPT_TRY_GOTO(status, BPT_NEW("class order", t->n, &order), fail);
    for (uint32_t i = 0; i < t->n; i++) order[i] = (numbered){t->names[i], i};
    qsort(order, t->n, sizeof *order, compare_names);
    for (uint32_t i = 0; i < t->n; i++) {
        t->names[i] = order[i].name;
        (*numbers)[order[i].number] = i;
    }
    bpt_free(order);
    if (t->n > 0) enter_all(t);
    return BPT_OK;
fail:
    bpt_free(*numbers);
    return status;
}

bool bpt__class_number(const char *text, uint32_t *number) {
    uint32_t value = 0;
    if (!*text) return false;
    for (const char *p = text; *p; p++) {
        if (*p < '0' || *p > '9') return false;
        value = 10 * value + (uint32_t)(*p - '0');
        if (value >= BPT_IMPORT_MAX_CLASSES) return false;
    }
    *number = value;
    return true;
}

bpt_status bpt__class_unknown(const bpt__class_table *t, const char *where, const char *name) {
    const bpt_status status = bpt_fail(BPT_EDATA, "%s: there is no class \"%s\"", where, name);
    if (t->n > 0)
        bpt_hint("the %u classes are \"%s\" ...; --class-names FILE names them all", t->n,
                 t->names[0]);
    return status;
}
