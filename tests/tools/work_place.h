/** @file tests/tools/work_place.h
 * A folder that a test works in, and files in it.
 *
 * Threads: the test's thread. */
#ifndef BPT_TESTS_TOOLS_WORK_PLACE_H
#define BPT_TESTS_TOOLS_WORK_PLACE_H

/** Of a group of cmocka's tests: makes it and goes there, and removes it. */
int work_place_open(void **state);
int work_place_close(void **state);

/** Of a test: empties it. */
int work_place_clear(void **state);

/** @return its path, which paths in it are relative to */
const char *work_place(void);

enum { LARGE_FILE = 5 << 18 };

/** Writes a file, or one of LARGE_FILE bytes; makes a folder and its parents. The test fails where
 * that does. */
void put_file(const char *path, const char *content);
void put_large_file(const char *path);
void make_folder(const char *path);

#endif
