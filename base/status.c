#include "base/status.h"

#include "base/text.h"

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

/* Formats beside the last error, since the arguments may be taken from it. */
void bpt_error_record(bpt_status status, const char *format, ...) {
    char text[BPT_ERROR_TEXT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    bpt_text_keep_printable(text);
    last_error.status = status;
    last_error.hint[0] = '\0';
    memcpy(last_error.text, text, strlen(text) + 1);
}

void bpt_hint(const char *format, ...) {
    char hint[BPT_ERROR_HINT_SIZE];
    va_list args;
    va_start(args, format);
    vsnprintf(hint, sizeof hint, format, args);
    va_end(args);
    bpt_text_keep_printable(hint);
    memcpy(last_error.hint, hint, strlen(hint) + 1);
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
