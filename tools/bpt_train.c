/* bpt-train: from the command line to an exit status. */
#include "base/clock.h"
#include "base/log.h"
#include "outer/comm/launch.h"
#include "outer/comm/notice.h"
#include "outer/comm/watch.h"
#include "tools/program.h"
#include "tools/staging.h"
#include "tools/train/bench/train_bench.h"
#include "tools/train/check/check.h"
#include "tools/train/check/dry_run.h"
#include "tools/train/job/agreement.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/job/job.h"
#include "tools/train/job/signals.h"
#include "tools/train/job/stalls.h"
#include "tools/train/loop/train_loop.h"
#include "tools/train/options/force_or_resume.h"
#include "tools/train/options/learning_options.h"
#include "tools/train/options/option_uses.h"
#include "tools/train/options/servers.h"
#include "tools/train/replay/replay.h"
#include "tools/train/run/tuning.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A run that was stopped keeps its own reason. */
static bpt_status write_trace(bpt_job *job, bpt_status status) {
    bpt_error error;
    bpt_error_get(&error);
    const bpt_status written = bpt_step_trace_write(job->trace);
    if (status == BPT_OK) return written;
    if (written != BPT_OK) bpt_warn("no trace: %s", bpt_error_last()->text);
    return bpt_error_put(&error);
}

/* How the losses grew is what there is to look at. */
static bpt_status report_divergence(bpt_job *job, bpt_status status) {
    bpt_error error;
    if (status != BPT_ENUMERIC) return status;
    bpt_error_get(&error);
    if (bpt_job_report_rest(job) != BPT_OK)
        bpt_warn("the last losses are not told: %s", bpt_error_last()->text);
    bpt_job_draw(job, true);
    return bpt_error_put(&error);
}

static bpt_status train(bpt_train_options *options, const bpt_option_set *set, bpt_comm *comm) {
    static bpt_status (*const loops[])(bpt_job *) = {
        [BPT_UPDATE_LOCAL] = bpt_train_local,         [BPT_UPDATE_AGWU] = bpt_train_asynchronous,
        [BPT_UPDATE_SGWU] = bpt_train_synchronous,    [BPT_UPDATE_EASGD] = bpt_train_asynchronous,
        [BPT_UPDATE_ALLREDUCE] = bpt_train_gradients,
    };
    bpt_job job;
    signal(SIGPIPE, SIG_IGN); /* who reads messages may end before; log and metrics have all */
    /* A server computes nothing that could be tuned. */
    const bool serves = bpt_servers_have(options, bpt_comm_rank(comm), bpt_comm_size(comm));
    BPT_TRY(bpt_comm_agree(comm, serves ? BPT_OK : bpt_tuning_open(options, set)));
    bpt_comm_pass_stop(comm, bpt_signals_stop);
    BPT_TRY(bpt_job_open(&job, options, comm));
    bpt_status status = BPT_OK;
    if (!job.finished) {
        status = bpt_train_catch_up(&job);
        if (status == BPT_OK)
            status = bpt_job_is_server(&job) ? bpt_train_serve(&job) : loops[job.update](&job);
        if (status == BPT_OK) status = bpt_train_finish(&job);
        status = report_divergence(&job, bpt_staging_blame(job.stage, status));
    }
    bpt_log_progress_end();
    if (status == BPT_OK || status == BPT_ESTOPPED) status = write_trace(&job, status);
    /* A rank that failed ends the job at once; the others cannot take part in closing it. */
    if (status == BPT_OK || status == BPT_ESTOPPED || job.n_ranks == 1) bpt_job_close(&job);
    return status;
}

/* Gives lower ranks, and whoever the failure is of, the time to say why. Where mpirun ends the job
 * meanwhile another rank was first: where a script stands between, it ends that as well. Whoever
 * else sends a signal has not heard why yet. */
static void await_turn(uint32_t rank, bpt_status status) {
    enum { TURN_S = 2, MAX_TURNS = 2, PATIENCE_S = 6 };
    const pid_t parent = getppid();
    const uint64_t turn_s = TURN_S * (rank < MAX_TURNS ? rank : MAX_TURNS);
    const uint64_t all_s = turn_s + (status == BPT_EPEER ? PATIENCE_S : 0);
    const bool ended = bpt_signals_await_end(bpt_clock_ns() + all_s * 1000000000);
    if (ended || getppid() != parent) _exit(bpt_status_exit(status));
}

/* Puts the rank before this thread's last error, unless that says it already. */
static void name_rank(uint32_t rank, const char *host) {
    const bpt_error error = *bpt_error_last();
    char known[32];
    snprintf(known, sizeof known, "rank %u on ", rank);
    if (strstr(error.text, known)) return;
    (void)bpt_fail(error.status, "rank %u on %s: %s", rank, host, error.text);
    if (error.hint[0]) bpt_hint("%s", error.hint);
}

/* Ends all ranks with the status of the one that failed. The others, told by agreement, leave it
 * the time to say why, and say it for one that has not ended the job until then. Where several fail
 * at a time, they do so for the same reason: the lowest says it, and its abort ends the others
 * before their turn. */
static void end_job(bpt_comm *comm, bpt_status status) {
    const uint32_t rank = bpt_comm_rank(comm);
    await_turn(rank, status);
    if (rank != 0 && status != BPT_EPEER) name_rank(rank, bpt_comm_host(comm, rank));
    bpt_comm_abort(comm, bpt_program_end("bpt-train", status));
}

/* Of the job that this one goes on from, as rank 0 sees it. */
static bpt_status batch_before(const bpt_train_options *options, bpt_comm *comm, int64_t *batch) {
    *batch = 0;
    bpt_comm_operation_begin(comm, "the checkpoint");
    if (bpt_comm_rank(comm) == 0) *batch = bpt_checkpoint_batch(options, bpt_comm_size(comm));
    bpt_comm_operation_end(comm);
    return bpt_comm_broadcast(comm, 0, batch, sizeof *batch);
}

/* What all ranks train with. */
static bpt_status settle_recipe(bpt_train_options *options, const bpt_option_set *set,
                                bpt_comm *comm) {
    bool tuned;
    int64_t before;
    /* One rank alone may be, while what follows from it, the batch, is the same for all. */
    BPT_TRY(bpt_comm_any(comm, options->tuned != NULL, &tuned));
    BPT_TRY(batch_before(options, comm, &before));
    if (bpt_learning_options_share(options, set, bpt_comm_size(comm), tuned, before) &&
        bpt_comm_rank(comm) == 0)
        bpt_info("many ranks: half of the batch at half of the rate, %s",
                 before ? "as before, where they are not given" : "since neither is given");
    return bpt_agree_on_options(options, comm);
}

static bpt_status run(bpt_train_options *options, const bpt_option_set *set, bpt_comm *comm) {
    const bpt_launch launch = bpt_launch_here();
    bpt_status verdict = BPT_OK, status;
    BPT_TRY(bpt_launch_check(&launch, bpt_comm_size(comm), bpt_comm_library(comm)));
    bpt_log_setup((int)bpt_comm_rank(comm), (bpt_log_level)options->log_level);
    if (bpt_comm_rank(comm) == 0) bpt_option_uses_warn_ranks(options, set, bpt_comm_size(comm));
    status = bpt_agree_on_version(comm);
    if (status == BPT_OK) status = settle_recipe(options, set, comm);
    if (status == BPT_OK)
        status = bpt_train_task_of(options) == BPT_TASK_CHECK
                     ? bpt_train_check(options, comm, &verdict)
                     : train(options, set, comm);
    if (status != BPT_OK && status != BPT_ESTOPPED && bpt_comm_size(comm) > 1)
        end_job(comm, status);
    return status != BPT_OK ? status : verdict;
}

/* Before MPI is started only its launcher knows rank and number of ranks. */
static bool is_first_of_launch(void) {
    return bpt_launch_here().rank == 0;
}

/* All ranks would print the same. */
static bpt_status dry_run(bpt_train_options *options, const bpt_option_set *set) {
    if (!is_first_of_launch()) return BPT_OK;
    const bpt_launch launch = bpt_launch_here();
    bpt_option_uses_warn_ranks(options, set, launch.size);
    (void)bpt_learning_options_share(options, set, launch.size, options->tuned != NULL,
                                     bpt_checkpoint_batch(options, launch.size));
    return bpt_train_dry_run(options, launch.size, launch.on_host);
}

static bpt_status check_options(int argc, char **argv, bpt_train_options *options,
                                bpt_option_request *request, bpt_option_set **set) {
    BPT_TRY(bpt_options_parse(&bpt_train_command, argc, argv, options, request, set));
    if (*request != BPT_REQUEST_RUN) return BPT_OK;
    const char *unused = bpt_force_or_resume(options, *set);
    BPT_TRY(bpt_train_options_check(options, *set));
    bpt_learning_options_default(options, *set);
    if (!is_first_of_launch()) return BPT_OK;
    bpt_log_setup(0, (bpt_log_level)options->log_level);
    if (unused)
        bpt_warn("%s in the configuration is not used beside --%s", unused,
                 options->force ? "force" : "resume");
    bpt_option_uses_warn(options, *set);
    const bpt_train_task task = bpt_train_task_of(options);
    if (task != BPT_TASK_BENCH && task != BPT_TASK_REPLAY) bpt_learning_options_warn(options, *set);
    return BPT_OK;
}

/* What needs no other rank. @return whether that was all */
static bool run_alone(bpt_train_options *options, const bpt_option_set *set, bpt_status *status) {
    bpt_log_setup(0, (bpt_log_level)options->log_level);
    const bpt_train_task task = bpt_train_task_of(options);
    if (task != BPT_TASK_TRAIN) bpt_signals_release(); /* there is nothing to save */
    if (task == BPT_TASK_TRAIN || task == BPT_TASK_CHECK) return false;
    if (task == BPT_TASK_REPLAY) {
        *status = bpt_replay(options, set);
        return true;
    }
    *status = bpt_tuning_open(options, set);
    if (*status == BPT_OK)
        *status = task == BPT_TASK_BENCH ? bpt_train_bench(options) : dry_run(options, set);
    return true;
}

/* @return whether this process says what all say alike; those of a split world are all rank 0 */
static bool speaks(const bpt_comm *comm) {
    const bpt_launch launch = bpt_launch_here();
    if (!comm || bpt_launch_is_split(&launch, bpt_comm_size(comm))) return launch.rank == 0;
    return bpt_comm_rank(comm) == 0;
}

/* Before MPI is started no rank knows what becomes of another. Where all fail alike, rank 0 says
 * it, and its end ends the others before their turn; one that fails otherwise says so. */
static void speak_for_itself(bpt_status status) {
    const bpt_launch launch = bpt_launch_here();
    char host[65] = "";
    if (launch.rank == 0) return;
    await_turn(launch.rank, status);
    if (gethostname(host, sizeof host - 1) != 0) strcpy(host, "?");
    name_rank(launch.rank, host);
}

/* Rank 0 says it, and its end ends the others before their turn. */
static int refuse_no_arguments(void) {
    const uint32_t rank = bpt_launch_here().rank;
    if (rank != 0) {
        await_turn(rank, BPT_EUSAGE);
        return bpt_status_exit(BPT_EUSAGE);
    }
    bpt_options_help(&bpt_train_command, stdout);
    return bpt_program_no_arguments("bpt-train");
}

int main(int argc, char **argv) {
    bpt_train_options options = {0};
    bpt_option_request request = BPT_REQUEST_RUN;
    bpt_option_set *set = NULL;
    bpt_comm *comm = NULL;
    bpt_program_begin();
    bpt_signals_catch(); /* first: a stop while the job starts is a stop like any other */
    if (argc == 1) return refuse_no_arguments();
    const bpt_status parsed = check_options(argc, argv, &options, &request, &set);
    bpt_status status = parsed;
    if (parsed == BPT_OK && request == BPT_REQUEST_RUN && !run_alone(&options, set, &status)) {
        const bpt_watch_options watch = bpt_stall_options(&options);
        status = bpt_comm_start_watched(&watch, &comm);
        if (status == BPT_OK) status = run(&options, set, comm);
    }
    const bool fails_alone = !comm && status != BPT_OK && status != BPT_ESTOPPED;
    if (fails_alone) speak_for_itself(status);
    /* Where all ranks say the same, one says it. */
    const bool says = fails_alone || speaks(comm);
    const int exit_status = says ? bpt_program_end("bpt-train", status) : bpt_status_exit(status);
    bpt_comm_stop(comm);
    bpt_tuning_close(&options);
    bpt_option_set_free(set);
    return exit_status;
}
