/** @file tests/storage/made_tar.h
 * Tar archives for tests, block by block.
 *
 * Threads: the test's thread. */
#ifndef BPT_TESTS_STORAGE_MADE_TAR_H
#define BPT_TESTS_STORAGE_MADE_TAR_H

#include <stddef.h>
#include <stdint.h>

typedef struct made_tar {
    uint8_t bytes[64 * 1024];
    size_t size;
} made_tar;

/** Adds a header and its content.
 * @param name at most 100 bytes, or 155 and 100 with a slash between them
 * @param type '0' a file, '5' a folder, 'L' GNU's long name, 'x' pax ... */
void made_tar_add(made_tar *tar, const char *name, char type, const void *content, size_t size);

/** Adds a file with a text in it. */
void made_tar_text(made_tar *tar, const char *name, const char *text);

/** Writes the checksum of the header that begins at @p at anew, after a change in it. */
void made_tar_sum(made_tar *tar, size_t at);

/** Adds the mark of the end: two empty blocks. */
void made_tar_end(made_tar *tar);

#endif
