/** @file storage/importers/file_list.h
 * Many names of files with their labels, close together in memory. For this folder only.
 *
 * Threads: a list belongs to one thread while it grows; then any thread may look at it. */
#ifndef BPT_STORAGE_FILE_LIST_H
#define BPT_STORAGE_FILE_LIST_H

#include "base/status.h"

#include <stddef.h>
#include <stdint.h>

typedef struct bpt__file_entry {
    size_t name; /* where it begins in the text */
    uint32_t label;
} bpt__file_entry;

/** Zero-initialise; release with bpt__file_list_free(). */
typedef struct bpt__file_list {
    char *text; /* names, each ended by a 0 byte */
    size_t n_text, text_capacity;
    bpt__file_entry *entries; /* shape [n] */
    size_t n, capacity;
} bpt__file_list;

void bpt__file_list_free(bpt__file_list *list);

/** @param name copied @return BPT_OK, BPT_ENOMEM */
bpt_status bpt__file_list_add(bpt__file_list *list, const char *name, uint32_t label);

/** @return name of entry @p i: borrowed, until the list grows */
static inline const char *bpt__file_list_name(const bpt__file_list *list, size_t i) {
    return list->text + list->entries[i].name;
}

/** @return a number that tells names, labels and order from others */
uint64_t bpt__file_list_identify(const bpt__file_list *list);

/** Sorts the entries from number @p from on by the bytes of their names. */
void bpt__file_list_sort(bpt__file_list *list, size_t from);

#endif
