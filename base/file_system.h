/** @file base/file_system.h
 * The file system that a path is, or would be, on.
 *
 * Threads: any. */
#ifndef BPT_BASE_FILE_SYSTEM_H
#define BPT_BASE_FILE_SYSTEM_H

#include "base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct bpt_file_system {
    char kind[16]; /* "ext4", "nfs"; "0x1234" where it has no name here; "" if it cannot be looked
                      at */
    bool network;  /* it is, or may be, another machine's: slower, and shared with others */
    uint64_t free_bytes; /* for whoever asks; UINT64_MAX where it does not tell */
} bpt_file_system;

/** @return the file system of @p path, or of the nearest thing above it that is there */
bpt_file_system bpt_file_system_at(const char *path);

/** Finds the nearest thing at or above @p path that is there, a folder or not.
 * @param[out] found shape [size] */
void bpt_path_nearest(const char *path, char *found, size_t size);

/** @return whether @p path is @p folder or lies in it. Neither has to be there yet; links are
 * followed as far as they are, and ".." only within what is there */
bool bpt_path_lies_in(const char *path, const char *folder);

/** Looks whether @p path could be made or written: whether the nearest thing at or above it that is
 * there is a folder where the caller may make files. @return BPT_OK, BPT_EIO */
bpt_status bpt_path_check_writable(const char *path);

#endif
