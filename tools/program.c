#include "tools/program.h"

#include "base/file.h"
#include "base/float_mode.h"
#include "base/log.h"
#include "base/options.h"
#include "tools/build_name.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* By the options that a program has. */
static const char *memory_hint(const char *program) {
    if (strcmp(program, "bpt-train") == 0)
        return "lower --batch-size or --prefetch, or end other programs";
    if (strcmp(program, "bpt-ingest") == 0)
        return "end other programs, or raise this one's limit of memory (`ulimit -v`)";
    return "lower --batch-size, or end other programs";
}

/* What can be done about it where the error itself proposes nothing. */
static void print_general_hint(const char *program, bpt_status status) {
    static const struct {
        bpt_status status;
        const char *text;
    } hints[] = {
        {BPT_EEXIST, "name another path"},
        {BPT_ENOENT, "check the path; it counts from the folder that the command is given in"},
        {BPT_EDATA, "name another file, or make this one again"},
        {BPT_ECORRUPT, "take it from a copy, or make it again"},
        {BPT_EIO, "check that the path exists and that you may read and write there"},
        {BPT_ENOSPC, "make room there, or name a path on another disk"},
        {BPT_ENUMERIC, "check the weights and the learning rate that they were trained with"},
        {BPT_EPEER, "that rank says more, here or in its log file"},
        {BPT_ECOMM, "look what mpirun says about hosts and network"},
    };
    if (status == BPT_ENOMEM) {
        fprintf(stderr, "hint: %s\n", memory_hint(program));
        return;
    }
    for (size_t i = 0; i < sizeof hints / sizeof *hints; i++)
        if (hints[i].status == status) {
            fprintf(stderr, "hint: %s\n", hints[i].text);
            return;
        }
    fprintf(stderr, "hint: `%s --help` explains all options\n", program);
}

/* A file that the program opens would become standard output else, and be written over. What is
 * opened in its place cannot be used either: results that nobody gets are still a failure. */
static void have_standard_files(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && errno == EBADF)
            (void)open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* the lowest: fd */
}

void bpt_program_begin(void) {
    have_standard_files();
    bpt_log_setup(0, BPT_LOG_INFO); /* its seconds are those since the start */
    bpt_options_name_version(bpt_build_name);
    signal(SIGXFSZ, SIG_IGN);
    (void)bpt_float_flush_denormals();
}

bool bpt_program_has(const char *value) {
    return value && *value;
}

/* Of an earlier write the C library remembers only that it failed. What it held then is lost, so
 * that there may be nothing left to flush. */
static bpt_status flush_results(void) {
    if (fflush(stdout) != 0) return bpt_fail_write(errno, "write to", "standard output");
    return ferror(stdout) ? bpt_fail(BPT_EIO, "cannot write all results to standard output")
                          : BPT_OK;
}

int bpt_program_end(const char *program, bpt_status status) {
    if (status == BPT_OK)
        status = flush_results();
    else
        (void)fflush(stdout);
    bpt_log_progress_end();
    if (status != BPT_OK) {
        const bpt_error *error = bpt_error_last();
        fprintf(stderr, "%s: %s\n", program, error->text);
        if (error->hint[0])
            fprintf(stderr, "hint: %s\n", error->hint);
        else
            print_general_hint(program, status);
    }
    return bpt_status_exit(status);
}

int bpt_program_no_arguments(const char *program) {
    const bpt_status status = bpt_fail(BPT_EUSAGE, "nothing to do: no arguments are given");
    bpt_hint("`%s --help` lists them", program);
    return bpt_program_end(program, status);
}
