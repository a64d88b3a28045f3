/** @file tools/train/check/check_findings.h
 * What is wrong with the facts of the ranks: rules without any rank.
 *
 * Threads: any; nothing is shared. */
#ifndef BPT_TOOLS_CHECK_FINDINGS_H
#define BPT_TOOLS_CHECK_FINDINGS_H

#include "tools/train/check/check_facts.h"

typedef struct bpt_check_finding {
    bool error; /* else a warning: the job would run, but not well */
    uint32_t rank;
    char what[384];
    char hint[BPT_ERROR_HINT_SIZE]; /* may be "" */
} bpt_check_finding;

/** Takes a finding, borrowed for the call. */
typedef void (*bpt_check_found)(void *arg, const bpt_check_finding *finding);

/** Looks for all that is wrong, and gives it out in the order of the ranks for each kind.
 * @param ranks shape [n], n >= 1 */
void bpt_check_find(const bpt_check_facts *ranks, uint32_t n, bpt_check_found found, void *arg);

/** @return processors of the host of @p rank that no rank of the job may use */
uint32_t bpt_check_unused(const bpt_check_facts *ranks, uint32_t n, uint32_t rank);

#endif
