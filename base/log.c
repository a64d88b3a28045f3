#include "base/log.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/text.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static struct {
    pthread_mutex_t mutex; /* guards file and progress_open, and keeps lines whole */
    int rank;
    bpt_log_level level;
    uint64_t start_ns;
    FILE *file;
    bool progress_open; /* a redrawn line stands on the terminal without a newline */
} state = {.mutex = PTHREAD_MUTEX_INITIALIZER, .level = BPT_LOG_INFO};

static const char *const level_names[] = {"error", "warn", "info", "debug", "trace"};

void bpt_log_setup(int rank, bpt_log_level level) {
    state.rank = rank;
    state.level = level;
    if (!state.start_ns) state.start_ns = bpt_clock_ns();
}

bpt_status bpt_log_file(const char *path) {
    pthread_mutex_lock(&state.mutex);
    if (state.file) fclose(state.file);
    state.file = NULL;
    const bpt_status status = path ? bpt_file_append(path, &state.file) : BPT_OK;
    pthread_mutex_unlock(&state.mutex);
    return status;
}

static void write_file_line(bpt_log_level level, const char *text) {
    char utc[32], host[65];
    bpt_clock_utc(utc, sizeof utc);
    if (gethostname(host, sizeof host)) strcpy(host, "?");
    host[sizeof host - 1] = '\0';
    fprintf(state.file, "%s r%d %s %s: %s\n", utc, state.rank, host, level_names[level], text);
    fflush(state.file);
}

static void end_progress_locked(void) {
    if (state.progress_open) fputc('\n', stderr);
    state.progress_open = false;
}

/* To stderr. */
static void print_line(bpt_log_level level, const char *text) {
    const double seconds = state.start_ns ? bpt_clock_seconds_since(state.start_ns) : 0.0;
    fprintf(stderr, "r%d %.1fs %s: %s\n", state.rank, seconds, level_names[level], text);
}

void bpt_log(bpt_log_level level, const char *format, ...) {
    if (level > state.level) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bpt_text_keep_printable(text);

    pthread_mutex_lock(&state.mutex);
    if (state.rank == 0 || level != BPT_LOG_INFO) {
        end_progress_locked();
        print_line(level, text);
    }
    if (state.file) write_file_line(level, text);
    pthread_mutex_unlock(&state.mutex);
}

/* @return whether the mutex is held now; whoever has it longer hangs in the file */
static bool lock_in_time(void) {
    enum { TRIES = 100, PAUSE_US = 1000 };
    for (int n = 0; n < TRIES; n++) {
        if (pthread_mutex_trylock(&state.mutex) == 0) return true;
        usleep(PAUSE_US);
    }
    return false;
}

void bpt_log_urgent(bpt_log_level level, const char *format, ...) {
    if (level > state.level) return;
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bpt_text_keep_printable(text);

    const bool locked = lock_in_time();
    if (locked) end_progress_locked();
    print_line(level, text);
    if (locked) pthread_mutex_unlock(&state.mutex);
}

void bpt_log_last_words(const char *error, const char *hint) {
    const bool locked = lock_in_time();
    if (locked) end_progress_locked();
    fprintf(stderr, "%s: %s\nhint: %s\n", program_invocation_short_name, error, hint);
    if (locked) pthread_mutex_unlock(&state.mutex);
}

void bpt_log_progress(const char *line) {
    if (state.rank != 0 || state.level < BPT_LOG_INFO) return;
    pthread_mutex_lock(&state.mutex);
    if (isatty(STDERR_FILENO)) {
        fprintf(stderr, "\r\033[K%s", line);
        state.progress_open = true;
    } else {
        fprintf(stderr, "%s\n", line);
    }
    fflush(stderr);
    pthread_mutex_unlock(&state.mutex);
}

void bpt_log_progress_end(void) {
    pthread_mutex_lock(&state.mutex);
    end_progress_locked();
    pthread_mutex_unlock(&state.mutex);
}
