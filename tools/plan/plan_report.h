/** @file tools/plan/plan_report.h
 * What a plan says: to people, to programs, and to bpt-train.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_PLAN_REPORT_H
#define BPT_TOOLS_PLAN_REPORT_H

#include "tools/plan/plan.h"
#include "tools/plan/run_pace.h"

#include <stdio.h>

/** What a configuration of bpt_plan_write() begins with, and no other file that bpt-plan makes. */
#define BPT_PLAN_MARK "# Made by bpt-plan for bpt-train --config on "

/** Prints tables of nodes, ways and sizes, what to do, and what a run came to.
 * @param run that bpt_run_pace_find() finds in the plan; NULL: there is none */
void bpt_plan_print(const bpt_recipe *recipe, const bpt_plan *plan, const bpt_run_pace *run,
                    FILE *out);

/** Prints one JSON object and a newline (docs/planning.md).
 * @return BPT_OK, BPT_ENOMEM */
bpt_status bpt_plan_print_json(const bpt_recipe *recipe, const bpt_plan *plan,
                               const bpt_run_pace *run, FILE *out);

/** Writes a configuration for bpt-train --config that goes the chosen way, whole or not at all.
 * @param plan has chosen one
 * @return as bpt_file_write() */
bpt_status bpt_plan_write(const char *path, const bpt_recipe *recipe, const bpt_plan *plan);

#endif
