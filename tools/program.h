/** @file tools/program.h
 * How every program begins and ends.
 *
 * Threads: the main thread. */
#ifndef BPT_TOOLS_PROGRAM_H
#define BPT_TOOLS_PROGRAM_H

#include "base/status.h"

#include <stdbool.h>

/** Begins a program: seconds of its messages count from here; a write beyond a limit on the size of
 * files (`ulimit -f`) is from here on an error like any other, and does not end the process; a
 * standard file that is closed stays unusable, and no other file takes its number; and denormal
 * numbers are 0. Before there is a second thread, or a file. */
void bpt_program_begin(void);

/** @return whether an option that a program cannot do without has a value. An empty one is none: it
 * comes of a variable that a script has not set. NULL is allowed. */
bool bpt_program_has(const char *value);

/** Ends a program: flushes standard output (results that cannot be written are a failure), and
 * after a failure prints the last error as "<program>: what, where" and its hint as "hint: ...".
 * @param status what the program came to
 * @return the exit status for main(): `return bpt_program_end("bpt-ingest", status)` */
int bpt_program_end(const char *program, bpt_status status);

/** Ends a program that was given no arguments and has printed its help: nothing was done, and a
 * script that forgot them must see that.
 * @return the exit status for main(), that of wrong usage */
int bpt_program_no_arguments(const char *program);

#endif
