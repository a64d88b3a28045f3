#include "tools/train/job/stalls.h"

#include "base/log.h"

#include <stdio.h>
#include <unistd.h>

/* Not by bpt_program_end(): a thread that hangs in a file may hold the lock of the log. */
static void tell(const bpt_stall *stall) {
    if (!stall->ends) {
        bpt_log_urgent(BPT_LOG_WARN, "%s: %s", stall->text, stall->hint);
        return;
    }
    fprintf(stderr,
            "%sbpt-train: %s, longer than --stall-timeout\n"
            "hint: %s; a run with checkpoints goes on with --resume auto\n",
            isatty(STDERR_FILENO) ? "\n" : "", stall->text, stall->hint);
    fflush(stderr);
}

/* A check takes no more than moments where all is well, and is there to tell what is not. */
static const double check_warning_s = 5;

static double warning_of(const bpt_train_options *o) {
    const bool given = !bpt_option_is_default(&bpt_train_command, "stall-warning", o);
    return o->check && !given ? check_warning_s : o->stall_warning;
}

bpt_watch_options bpt_stall_options(const bpt_train_options *o) {
    return (bpt_watch_options){
        .warning_s = warning_of(o),
        .timeout_s = o->stall_timeout,
        .exit_status = bpt_status_exit(BPT_ECOMM),
        .tell = tell,
    };
}
