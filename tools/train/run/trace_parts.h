/** @file tools/train/run/trace_parts.h
 * The files of a trace until it is whole: one of each rank beside it, hidden, with the number of
 * rank 0's process in the name, so that they are no file of the user's nor of another job.
 *
 * Threads: one. */
#ifndef BPT_TOOLS_TRACE_PARTS_H
#define BPT_TOOLS_TRACE_PARTS_H

#include "base/status.h"

#include <stdint.h>

/** @param process of rank 0
 * @param[out] part caller owns, bpt_free() */
bpt_status bpt_trace_part_name(const char *trace, uint64_t process, uint32_t rank, char **part);

/** Removes what killed jobs left beside a trace of this name. What may be a living job's stays:
 * that of @p process, and of a process number that is alive as this process sees it. A job whose
 * rank 0 has other numbers of processes, on another host or in another container, and that writes a
 * trace of the same name at this very moment is not known here: its parts would go. Errors are
 * none: what cannot be removed stays. */
void bpt_trace_parts_sweep(const char *trace, uint64_t process);

#endif
