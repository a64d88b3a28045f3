/** @file tools/train/check/check_print.h
 * How --check shows what it knows: one table, then a line a finding, then how many there are.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_CHECK_PRINT_H
#define BPT_TOOLS_CHECK_PRINT_H

#include "tools/train/check/check_facts.h"

#include <stdio.h>

/** @param ranks shape [n]
 * @return errors among the findings */
uint32_t bpt_check_print(const bpt_check_facts *ranks, uint32_t n, FILE *out);

#endif
