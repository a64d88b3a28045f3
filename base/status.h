/** @file base/status.h
 * One kind of error for the whole of bpt, with the text of the last one.
 *
 * Who first detects an error calls bpt_fail() once, with the values involved, and returns what it
 * returns; callers pass the status on untouched; a program in tools/ prints text and hint once.
 * A foreign library's code (errno, MPI, oneDNN, LMDB) never crosses a folder's border.
 *
 * Threads: text and hint belong to the calling thread. Who hands a failure to another thread takes
 * it along with bpt_error_get() and bpt_error_put(). */
#ifndef BPT_BASE_STATUS_H
#define BPT_BASE_STATUS_H

/* name, value, exit status of a program that ends with it, meaning */
#define BPT_STATUS_LIST(X)                                                                         \
    X(OK, 0, 0, "success")                                                                         \
    X(EUSAGE, -1, 2, "wrong usage or configuration")                                               \
    X(EEXIST, -2, 2, "exists already")                                                             \
    X(ENOMEM, -3, 1, "out of memory")                                                              \
    X(EIO, -4, 1, "input or output failed")                                                        \
    X(ENOSPC, -5, 1, "no space left on the device")                                                \
    X(EFULL, -6, 1, "a fixed capacity is used up")                                                 \
    X(EBACKEND, -7, 1, "a compute library failed")                                                 \
    X(ECOMM, -8, 1, "communication failed")                                                        \
    X(EPEER, -9, 1, "another rank failed")                                                         \
    X(ECANCELED, -10, 1, "cancelled because something else failed")                                \
    X(ENOENT, -11, 3, "not found")                                                                 \
    X(EDATA, -12, 3, "malformed data")                                                             \
    X(ECORRUPT, -13, 3, "checksum mismatch")                                                       \
    X(ENUMERIC, -14, 4, "not a finite number")                                                     \
    X(ESTOPPED, -15, 75, "stopped early, state saved")

typedef enum bpt_status {
#define X(name, value, exit_status, text) BPT_##name = (value),
    BPT_STATUS_LIST(X)
#undef X
} bpt_status;

enum { BPT_ERROR_TEXT_SIZE = 512, BPT_ERROR_HINT_SIZE = 384 };

/** A failure as a value, to carry from one thread to another. */
typedef struct bpt_error {
    bpt_status status;
    char text[BPT_ERROR_TEXT_SIZE];
    char hint[BPT_ERROR_HINT_SIZE]; /* "" if there is none */
} bpt_error;

/** @return "BPT_EDATA" for BPT_EDATA, and so on; never NULL */
const char *bpt_status_name(bpt_status status);

/** @return the meaning in a few words, never NULL */
const char *bpt_status_text(bpt_status status);

/** @return the exit status (0 to 255) of a program that ends with @p status */
int bpt_status_exit(bpt_status status);

/** Records what failed ("what, where") as this thread's last error and clears its hint.
 * Longer texts are cut; control characters, also ends of lines, become question marks. Arguments
 * may be texts of the last error itself, here and in bpt_hint(). */
void bpt_error_record(bpt_status status, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Records a failure and yields its status: `return bpt_fail(BPT_EDATA, "...", ...);`. A macro, so
 * that the compiler sees that what it yields is not BPT_OK. */
#define bpt_fail(status, ...) (bpt_error_record((status), __VA_ARGS__), (status))

/** Adds to this thread's last error what the user can do about it: the next command. */
void bpt_hint(const char *format, ...) __attribute__((format(printf, 1, 2)));

/** @return this thread's last error: borrowed, valid until the next failure on this thread */
const bpt_error *bpt_error_last(void);

/** Copies this thread's last error to @p out. */
void bpt_error_get(bpt_error *out);

/** Makes @p error this thread's last error. @return its status */
bpt_status bpt_error_put(const bpt_error *error);

/** Returns from the calling function with the status of @p expr unless it is BPT_OK. */
#define BPT_TRY(expr)                                                                              \
    do {                                                                                           \
        const bpt_status bpt_try_status = (expr);                                                  \
        if (bpt_try_status != BPT_OK) return bpt_try_status;                                       \
    } while (0)

/** Stores the status of @p expr in @p status and jumps to @p label unless it is BPT_OK. */
#define BPT_TRY_GOTO(status, expr, label)                                                          \
    do {                                                                                           \
        (status) = (expr);                                                                         \
        if ((status) != BPT_OK) goto label;                                                        \
    } while (0)

#endif
