/** @file tests/storage/made_files.h
 * Files for tests of importers, in a directory that goes away, and what importers say of them.
 *
 * Threads: the test's thread. */
#ifndef BPT_TESTS_STORAGE_MADE_FILES_H
#define BPT_TESTS_STORAGE_MADE_FILES_H

#include "storage/importers/importer.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** For cmocka: a directory for each test; its end also checks that all memory was given back. */
int made_files_set_up(void **state);
int made_files_tear_down(void **state);

/** @return path of @p name in the directory: one of a few static texts, valid for some calls */
char *made_path(const char *name);

/** Writes a file, and the folders that its name goes through. */
void made_bytes(const char *name, const void *data, size_t size);
void made_text(const char *name, const char *text);

/** What is left of an item: its name without the directory, and its label; "!" and the error of a
 * bad one. */
typedef struct made_item {
    char name[520];
    uint32_t label;
    bool encoded;
    uint8_t head[16]; /* first bytes of the image */
    size_t size;
    bpt_status status;
} made_item;

/** Opens an import, takes all its items and closes it.
 * @param items shape [max_items]
 * @return the status of what failed first; items that are bad are no failure */
bpt_status made_import(const char *importer, const bpt_import_source *source, made_item *items,
                       size_t max_items, size_t *n, bpt_import_plan *plan);

/** Checks what made_import() ends with: status, and a part of the error's text. */
void made_refused(const char *importer, const bpt_import_source *source, bpt_status status,
                  const char *text);

#endif
