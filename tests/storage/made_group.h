/** @file tests/storage/made_group.h
 * Groups of tests that are to leave no memory taken, also of what they share.
 *
 * Threads: the test's thread. */
#ifndef BPT_TESTS_STORAGE_MADE_GROUP_H
#define BPT_TESTS_STORAGE_MADE_GROUP_H

/** Runs a group of tests, as cmocka_run_group_tests() does, which passes over what @p tear_down
 * returns. @return exit status; not 0 also where all pass and memory is taken behind tear_down */
#define made_run_group(tests, set_up, tear_down)                                                   \
    made_end_group(cmocka_run_group_tests(tests, set_up, tear_down))
int made_end_group(int failed);

#endif
