#include "tools/program.h"

#include "base/file.h"
#include "base/log.h"

#include <errno.h>
#include <stdio.h>

int bpt_program_end(const char *program, bpt_status status) {
    if (fflush(stdout) != 0 && status == BPT_OK)
        status = bpt_fail_errno(errno, "write to", "standard output");
    bpt_log_progress_end();
    if (status != BPT_OK) {
        const bpt_error *error = bpt_error_last();
        fprintf(stderr, "%s: %s\n", program, error->text);
        if (error->hint[0]) fprintf(stderr, "hint: %s\n", error->hint);
    }
    return bpt_status_exit(status);
}
