/** @file tests/storage/made_entry.h
 * Descriptions of datasets that lie, though their checksums are right.
 *
 * Threads: any. */
#ifndef TESTS_STORAGE_MADE_ENTRY_H
#define TESTS_STORAGE_MADE_ENTRY_H

#include <stdbool.h>

/** In an entry of a dataset's description, the first @p from becomes @p to.
 * @param path of the dataset; @param key of the entry, as docs/formats.md has them
 * @return whether it was done; else nothing has changed */
bool made_entry_alter(const char *path, const char *key, const char *from, const char *to);

/** Puts an entry, in place of the one of that key. @return whether it was done */
bool made_entry_put(const char *path, const char *key, const char *text);

#endif
