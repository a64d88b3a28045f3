/** @file tests/fuzz/fuzz_import.h
 * Runs an importer on bytes as its only file.
 *
 * Threads: one. */
#ifndef BPT_TESTS_FUZZ_IMPORT_H
#define BPT_TESTS_FUZZ_IMPORT_H

#include <stddef.h>
#include <stdint.h>

/** Opens the importer on a file in memory, takes all items and loads them; ends the program where
 * a label has no class, or memory was not given back.
 * @param root folder of the paths that a list names; else NULL */
void fuzz_import(const char *importer, const char *root, const uint8_t *data, size_t size);

/** Likewise on what is at a path. */
void fuzz_import_path(const char *importer, const char *root, char *path);

#endif
