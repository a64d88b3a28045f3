/** @file tests/base/sample_command.h
 * A command with an option of every type, for the tests of options.
 *
 * Threads: one. */
#ifndef BPT_TESTS_BASE_SAMPLE_COMMAND_H
#define BPT_TESTS_BASE_SAMPLE_COMMAND_H

#include "base/options.h"

typedef struct sample_settings {
    bool force;
    int64_t epochs;
    uint64_t cache;
    double lr;
    const char *model, *data;
    int device;
    int64_t resize[2];
    int64_t sync[BPT_OPTION_LIST_MAX];
    int64_t rank;
} sample_settings;

extern const bpt_command sample_command; /* up to two operands */

/** Splits @p line at "|" and parses the parts: bpt_options_parse(). "" stands for no argument. */
bpt_status sample_parse_line(const char *line, sample_settings *values, bpt_option_request *request,
                             bpt_option_set **set);

/** The same for a line that must be right, into a struct that holds garbage before. */
bpt_option_set *sample_parse(const char *line, sample_settings *values);

/** Asserts that a line is wrong usage with exactly this message (and hint, unless NULL). */
void sample_refused(const char *line, const char *text, const char *hint);

/** Asserts that an option's list holds @p n numbers, shape [n], and then only -1. */
void sample_list_equal(const int64_t *list, size_t n, const int64_t *expected);

#endif
