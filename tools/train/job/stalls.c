#include "tools/train/job/stalls.h"

#include "base/log.h"

#include <stdio.h>
#include <unistd.h>

/* Not by bpt_program_end(): a thread that hangs in a file may hold the lock of the log. */
static void tell_and_hint(const bpt_stall *stall, const char *more_hint) {
    if (!stall->ends) {
        bpt_log_urgent(BPT_LOG_WARN, "%s: %s", stall->text, stall->hint);
        return;
    }
    fprintf(stderr, "%sbpt-train: %s, longer than --stall-timeout\nhint: %s%s\n",
            isatty(STDERR_FILENO) ? "\n" : "", stall->text, stall->hint, more_hint);
    fflush(stderr);
}

static void tell_of_run(const bpt_stall *stall) {
    tell_and_hint(stall, "; a run with checkpoints goes on with --resume auto");
}

static void tell_of_check(const bpt_stall *stall) {
    tell_and_hint(stall, "");
}

/* A check takes no more than moments where all is well, and is there to tell what is not: also to
 * scripts, which wait for its end. */
static const double check_warning_s = 5, check_timeout_s = 60;

/* @return value of the option, or under --check where it is not given, another */
static double unless_checked(const bpt_train_options *o, const char *option, double value,
                             double checked) {
    return o->check && bpt_option_is_default(&bpt_train_command, option, o) ? checked : value;
}

bpt_watch_options bpt_stall_options(const bpt_train_options *o) {
    return (bpt_watch_options){
        .warning_s = unless_checked(o, "stall-warning", o->stall_warning, check_warning_s),
        .timeout_s = unless_checked(o, "stall-timeout", o->stall_timeout, check_timeout_s),
        .exit_status = bpt_status_exit(BPT_ECOMM),
        .tell = o->check ? tell_of_check : tell_of_run,
    };
}
