/** @file tools/interrupt.h
 * SIGINT, SIGTERM and SIGHUP during long work that leaves nothing behind when it is stopped.
 *
 * Threads: handlers may run on any thread; the functions are for the main thread. */
#ifndef BPT_TOOLS_INTERRUPT_H
#define BPT_TOOLS_INTERRUPT_H

#include "base/file.h"
#include "base/status.h"

#include <stddef.h>

/** From now on these do not end the program but are seen by bpt_interrupt_check(). The same one
 * again ends it at once. One that was ignored when the program began stays so. */
void bpt_interrupt_catch(void);

/** Writes a file as bpt_file_write() does, caught as above: one that comes meanwhile waits for the
 * end of it, so that no part is left. For what is written last, where nobody checks. */
bpt_status bpt_interrupt_write(const char *path, const void *data, size_t size);

/** Likewise as bpt_file_write_parts(). */
bpt_status bpt_interrupt_write_parts(const char *path, const bpt_bytes *parts, size_t n_parts);

/** @param outcome what the program leaves: "nothing is stored"
 * @param hint    what the user can do
 * @return BPT_OK, BPT_ECANCELED (a signal has come; names it) */
bpt_status bpt_interrupt_check(const char *outcome, const char *hint);

/** Gives handlers of this thread (with SA_ONSTACK) a stack of their own. oneDNN's kernels of matrix
 * products, before 3.11.2, use the stack pointer for an address in the heap: a handler on the stack
 * of a thread that computes would overwrite what lies there. */
void bpt_interrupt_own_stack(void);

#endif
