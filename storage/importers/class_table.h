/** @file storage/importers/class_table.h
 * Names of classes and their numbers, found in either direction. For this folder only.
 *
 * Threads: a table belongs to one thread while it grows; then any thread may look at it. */
#ifndef BPT_STORAGE_CLASS_TABLE_H
#define BPT_STORAGE_CLASS_TABLE_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** Zero-initialise; release with bpt__class_table_free(). */
typedef struct bpt__class_table {
    char **names; /* owned copies, shape [n] */
    uint32_t n;
    size_t capacity;
    uint32_t *slots; /* number + 1 by hash of the name, 0: free; shape [n_slots], a power of 2 */
    size_t n_slots;
} bpt__class_table;

void bpt__class_table_free(bpt__class_table *t);

/** Gives a name its number: that which it has, or else the next.
 * @param where it comes from, for messages: "list.txt: line 7"
 * @return BPT_OK, BPT_EDATA (no name of a class, or more than a dataset can have), BPT_ENOMEM */
bpt_status bpt__class_table_add(bpt__class_table *t, const char *where, const char *name,
                                uint32_t *number);

/** Adds names 0 to n-1 to an empty table.
 * @return BPT_OK, BPT_EUSAGE (a name is there twice), BPT_EDATA, BPT_ENOMEM */
bpt_status bpt__class_table_fill(bpt__class_table *t, const char *const *names, uint32_t n);

/** @return whether the table has the name; then @p number is its number */
bool bpt__class_table_find(const bpt__class_table *t, const char *name, uint32_t *number);

/** Numbers the names anew in byte order.
 * @param[out] numbers new number of each old one, shape [n]; caller owns, bpt_free()
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__class_table_sort(bpt__class_table *t, uint32_t **numbers);

/** Reads a number that is all of a text: decimal digits only.
 * @return whether it is one, below BPT_IMPORT_MAX_CLASSES */
bool bpt__class_number(const char *text, uint32_t *number);

/** Fails: no class has the name.
 * @param where "list.txt: line 7" */
bpt_status bpt__class_unknown(const bpt__class_table *t, const char *where, const char *name);

#endif
