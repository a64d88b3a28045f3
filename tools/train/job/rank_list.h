/** @file tools/train/job/rank_list.h
 * A number of each rank on a line for people: all of them, or the least and the greatest where
 * ranks are many.
 *
 * Threads: any. */
#ifndef BPT_TOOLS_RANK_LIST_H
#define BPT_TOOLS_RANK_LIST_H

#include <stdint.h>

enum { BPT_RANK_LIST_SIZE = 512, BPT_RANK_LIST_MOST = 16 };

/** Writes "24.9%, 25.1%", and of more than BPT_RANK_LIST_MOST ranks "from 0.2% on rank 7 to 3.1% on
 * rank 0", the first of equals.
 * @param value  shape [n_ranks], n_ranks at least 1
 * @param digits after the point, 0 to 3
 * @param unit   behind each number, "%"; at most 8 bytes
 * @param list   shape [BPT_RANK_LIST_SIZE] */
void bpt_rank_list(const double *value, uint32_t n_ranks, int digits, const char *unit, char *list);

#endif
