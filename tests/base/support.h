/** @file tests/base/support.h
 * What the tests of base share: a scratch folder, captured output, and failing allocations.
 *
 * Threads: one. */
#ifndef BPT_TESTS_BASE_SUPPORT_H
#define BPT_TESTS_BASE_SUPPORT_H

#include "base/status.h"

#include <stddef.h>

enum { SUPPORT_PATH_SIZE = 512 };

/** cmocka group fixtures: a new scratch folder, removed with all that is in it. */
int support_make_scratch(void **state);
int support_remove_scratch(void **state);

/** @return the scratch folder, borrowed until it is removed */
const char *support_scratch(void);

/** Writes "<scratch>/<name>" to @p path. @return @p path */
const char *support_path(char path[SUPPORT_PATH_SIZE], const char *name);

/** Creates a file in the scratch folder, with plain stdio, and writes its path to @p path. */
void support_write(char path[SUPPORT_PATH_SIZE], const char *name, const void *data, size_t size);

/** Sends what is written to the file descriptor @p fd (1 or 2) to a file from now on. */
void support_capture_start(int fd);

/** Undoes support_capture_start(). @return what was written: the caller frees it with free() */
char *support_capture_end(void);

/** Calls @p attempt again and again, with allocation number 0, 1, 2, ... failing, until it
 * succeeds. Every failed attempt must say BPT_ENOMEM and leave no memory behind; so must the
 * successful one, which releases what it made. */
void support_fail_each_allocation(bpt_status (*attempt)(void *), void *arg);

#endif
