/** @file base/float_mode.h
 * How this program's threads calculate with floats.
 *
 * Threads: a thread inherits the mode of the one that creates it. */
#ifndef BPT_BASE_FLOAT_MODE_H
#define BPT_BASE_FLOAT_MODE_H

#include <stdbool.h>

/** Takes denormal numbers (below 1.2e-38 in magnitude) as 0, as operands and as results, in the
 * calling thread and in those that it creates from now on. To be called at the start of a program,
 * so that all its threads calculate alike.
 * @return whether this processor's mode is known here; if not, nothing has changed */
bool bpt_float_flush_denormals(void);

#endif
