/** @file base/log.h
 * Messages for people, on stderr and in a rank's log file; never results.
 *
 * Levels by volume: error and warn as they happen, info a few per run, debug per object, trace per
 * task or message. On stderr, info comes from rank 0 only, since every rank would say the same; the
 * file of a rank holds everything up to the level.
 *
 * Threads: any thread may log. bpt_log_setup() and bpt_log_file() are called while one thread runs.
 */
#ifndef BPT_BASE_LOG_H
#define BPT_BASE_LOG_H

#include "base/status.h"

typedef enum bpt_log_level {
    BPT_LOG_ERROR,
    BPT_LOG_WARN,
    BPT_LOG_INFO,
    BPT_LOG_DEBUG,
    BPT_LOG_TRACE,
} bpt_log_level;

/** Says who is logging. Before this call: rank 0, level info. */
void bpt_log_setup(int rank, bpt_log_level level);

/** Also writes to a file (appended; UTC time, rank and host on every line). NULL closes it.
 * @return BPT_OK, BPT_EIO, BPT_ENOSPC, BPT_ENOMEM */
bpt_status bpt_log_file(const char *path);

/** Logs one line at @p level: lower case, no full stop, no newline. */
void bpt_log(bpt_log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

#define bpt_warn(...)  bpt_log(BPT_LOG_WARN, __VA_ARGS__)
#define bpt_info(...)  bpt_log(BPT_LOG_INFO, __VA_ARGS__)
#define bpt_debug(...) bpt_log(BPT_LOG_DEBUG, __VA_ARGS__)
#define bpt_trace(...) bpt_log(BPT_LOG_TRACE, __VA_ARGS__)

/** Says a line on stderr at once, as bpt_log() does, also where a thread hangs in writing to the
 * log file; it does not come into that. For what watches over the others. */
void bpt_log_urgent(bpt_log_level level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Says an error on stderr at once, as a program that ends with it does ("<program>: what, where";
 * "hint: ..."): for a thread that has to end the process where it stands. Waits for no file. */
void bpt_log_last_words(const char *error, const char *hint);

/** Redraws the progress line where stderr is a terminal, else prints it as a line of its own. The
 * next message starts below it. Rank 0 only; not written to the file. */
void bpt_log_progress(const char *line);

/** Ends a redrawn progress line, so that what follows starts on a line of its own. */
void bpt_log_progress_end(void);

#endif
