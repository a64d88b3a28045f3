/** @file storage/dataset/names.h
 * Names that a dataset may hold: who writes one and who reads one ask the same.
 *
 * Threads: any. */
#ifndef BPT_STORAGE_NAMES_H
#define BPT_STORAGE_NAMES_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>

enum { BPT__MAX_SPLIT_NAME = 64 };

/** @return whether it is 1 to 64 letters, digits, '.', '_', '-', the first a letter or digit */
bool bpt__is_split_name(const char *name);

/** Makes sure that it is. @return BPT_OK, BPT_EUSAGE (it is not; with hint) */
bpt_status bpt_split_name_check(const char *name);

/** Makes sure that names of classes, shape [n], are UTF-8, not empty, and each another one.
 * @param where they stand, for messages: "names.txt"
 * @param wrong status to fail with where they are not
 * @return BPT_OK, @p wrong, BPT_ENOMEM */
bpt_status bpt_class_names_check(const char *where, const char *const *names, size_t n,
                                 bpt_status wrong);

#endif
