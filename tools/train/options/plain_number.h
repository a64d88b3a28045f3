/** @file tools/train/options/plain_number.h
 * Numbers in texts of options that take a word, too.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_PLAIN_NUMBER_H
#define BPT_TOOLS_PLAIN_NUMBER_H

#include <stdbool.h>

/** @param[out] out what was read, also where more follows
 * @return whether the text is a decimal number and nothing else: no inf, nan, hexadecimal, blank */
bool bpt_plain_number(const char *text, double *out);

#endif
