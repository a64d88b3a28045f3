#include "base/status.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static _Thread_local bpt_error last_error;

const char *bpt_status_name(bpt_status status) {
    switch (status) {
#define X(name, value, exit_status, text)                                                          \
    case BPT_##name:                                                                               \
        return "BPT_" #name;
        BPT_STATUS_LIST(X)
#undef X
    }
    return "BPT_UNKNOWN";
}

const char *bpt_status_text(bpt_status status) {
    switch (status) {
#define X(name, value, exit_status, text)                                                          \
    case BPT_##name:                                                                               \
        return text;
        BPT_STATUS_LIST(X)
#undef X
    }
    return "unknown status";
}

int bpt_status_exit(bpt_status status) {
    switch (status) {
#define X(name, value, exit_status, text)                                                          \
    case BPT_##name:                                                                               \
        return exit_status;
        BPT_STATUS_LIST(X)
#undef X
    }
    return 1;
}

void bpt_error_record(bpt_status status, const char *format, ...) {
    va_list args;
    va_start(args, format);
    last_error.status = status;
    last_error.hint[0] = '\0';
    vsnprintf(last_error.text, sizeof last_error.text, format, args);
    va_end(args);
}

void bpt_hint(const char *format, ...) {
    va_list args;
    va_start(args, format);
    vsnprintf(last_error.hint, sizeof last_error.hint, format, args);
    va_end(args);
}

const bpt_error *bpt_error_last(void) {
    return &last_error;
}

void bpt_error_get(bpt_error *out) {
    *out = last_error;
}

bpt_status bpt_error_put(const bpt_error *error) {
    if (error != &last_error) last_error = *error;
    return error->status;
}
