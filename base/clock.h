/** @file base/clock.h
 * Time, in nanoseconds. Never a seed, never a decision that changes what is learned.
 *
 * Threads: all functions may be called from any thread. */
#ifndef BPT_BASE_CLOCK_H
#define BPT_BASE_CLOCK_H

#include <stddef.h>
#include <stdint.h>
#include <time.h>

/** @return nanoseconds of a clock that only goes forward; differences have a meaning */
uint64_t bpt_clock_ns(void);

/** @return the same as what waits with a limit take: a moment of CLOCK_MONOTONIC */
struct timespec bpt_clock_timespec(uint64_t ns);

/** @return seconds from @p since_ns (a bpt_clock_ns() reading) until now */
double bpt_clock_seconds_since(uint64_t since_ns);

/** Writes the time of day as "2031-05-06T07:08:09Z".
 * @param size of @p text in bytes, at least 21 */
void bpt_clock_utc(char *text, size_t size);

#endif
