/** @file tools/tune/tune_report.h
 * What a search has found, for people.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TUNE_REPORT_H
#define BPT_TOOLS_TUNE_REPORT_H

#include "tools/tune/search.h"

#include <stdio.h>

/** Prints what was measured, one line each comparison, and default against best with the spread.
 * @param key of the subject on this machine
 * @param prefix of every line: "" or "# " */
void bpt_tune_report(const bpt_search *search, const bpt_tuned_key *key, const char *prefix,
                     FILE *out);

#endif
