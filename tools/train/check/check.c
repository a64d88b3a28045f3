/* How --check is put together: each rank looks at itself, rank 0 judges. */
#include "tools/train/check/check.h"

#include "base/file.h"
#include "base/memory.h"
#include "outer/comm/clock_offset.h"
#include "outer/comm/launch.h"
#include "outer/comm/watch.h"
#include "scheduler/pool.h"
#include "storage/stage/stage.h"
#include "tools/train/check/check_print.h"
#include "tools/train/check/check_scratch.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/rank_threads.h"
#include "tools/train/options/servers.h"
#include "tools/train/run/run_folder.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATH_SIZE = 4096 };

/* Whether this rank is a server, which looks at no dataset and keeps no samples. */
static bool serves(const bpt_train_options *o, const bpt_comm *comm) {
    return bpt_servers_have(o, bpt_comm_rank(comm), bpt_comm_size(comm));
}

/* Where rank 0 gives out samples, the others need not see the dataset. */
static bool is_scattered(const bpt_train_options *o, const bpt_comm *comm) {
    return bpt_servers_scatter(o, bpt_comm_size(comm));
}

/* ---- this rank ---- */

static void look_at_machine(const bpt_train_options *o, const bpt_comm *comm, bpt_check_facts *f) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    snprintf(f->host, sizeof f->host, "%s", bpt_comm_host(comm, bpt_comm_rank(comm)));
    snprintf(f->library, sizeof f->library, "%s", bpt_comm_library(comm));
    snprintf(f->thread_level, sizeof f->thread_level, "%s", bpt_comm_thread_level(comm));
    while (!bpt_comm_together(comm, f->machine, bpt_comm_rank(comm))) f->machine++;
    f->processors = online > 0 ? (uint32_t)online : 1;
    f->cores = bpt_pool_bound_cores();
    f->quota = bpt_pool_quota_cores();
    f->serves = serves(o, comm);
    f->threads = f->serves ? 1 : (uint32_t)o->threads;
    if (sched_getaffinity(0, sizeof f->allowed, &f->allowed) != 0) CPU_ZERO(&f->allowed);
    f->launched = bpt_launch_here().is_mpirun;
}

static void look_at_data(const bpt_train_options *o, const bpt_comm *comm, bpt_check_facts *f) {
    f->has_data = o->data && *o->data;
    if (!f->has_data) return;
    if (bpt_check_data(o, is_scattered(o, comm), &f->data) != BPT_OK) {
        f->data = 0;
        bpt_check_refuse(&f->data_refusal, "");
    }
    f->data_place = bpt_file_system_at(o->data);
}

static bpt_status look_at_stage(const bpt_train_options *o, bpt_check_facts *f) {
    f->stage_place = bpt_file_system_at(o->stage);
    if (f->data) BPT_TRY(bpt_stage_need(o->data, o->stage, &f->stage_need));
    /* A whole copy is used as it is, also by who may not write there. */
    return f->data && f->stage_need == 0 ? BPT_OK : bpt_path_check_writable(o->stage);
}

/* Where the dataset is looked at. */
static void look_at_copy(const bpt_train_options *o, bpt_check_facts *f) {
    f->has_stage = o->stage && f->has_data;
    if (f->has_stage && look_at_stage(o, f) != BPT_OK)
        snprintf(f->stage_error, sizeof f->stage_error, "%.255s", bpt_error_last()->text);
}

/* ---- the place of the run's folder ---- */

static bpt_status look_at_folder(const bpt_train_options *o, bpt_check_facts *f) {
    bpt_run_folder_mode mode;
    BPT_TRY(bpt_job_run_mode(o, &mode));
    if (o->resume && strcmp(o->resume, "auto") == 0)
        BPT_TRY(bpt_run_folder_finished(o->output, &f->run_finished));
    BPT_TRY(bpt_run_folder_look(o->output, mode));
    if (mode == BPT_RUN_REPLACE) f->run_frees = bpt_run_folder_bytes(o->output);
    return BPT_OK;
}

/* Rank 0: puts an empty file into the nearest folder that is there, if there may be a run.
 * @param[out] mark its path, shape [PATH_SIZE]; "" if it could not be made */
static void put_mark(const bpt_train_options *o, bpt_check_facts *f, char *mark) {
    char folder[PATH_SIZE - 64];
    if (look_at_folder(o, f) != BPT_OK) {
        bpt_check_refuse(&f->run_refusal, "name another --output");
        return;
    }
    if (f->run_finished) return;
    bpt_path_nearest(o->output, folder, sizeof folder);
    snprintf(mark, PATH_SIZE, "%s/.bpt-check-XXXXXX", folder);
    const int fd = mkstemp(mark);
    if (fd < 0) {
        (void)bpt_fail_write(errno, "write to", folder);
        bpt_check_refuse(&f->run_refusal, "name an --output where you may write");
        mark[0] = '\0';
        return;
    }
    close(fd);
}

/* What rank 0 has made may take a moment to show on a network file system. */
static bool sees(const char *mark) {
    enum { PATIENCE_MS = 5000, POLL_MS = 50 };
    bool seen = bpt_path_exists(mark);
    for (int waited = 0; !seen && waited < PATIENCE_MS; waited += POLL_MS) {
        usleep(POLL_MS * 1000);
        seen = bpt_path_exists(mark);
    }
    return seen;
}

/* Collective. */
static bpt_status look_at_run(const bpt_train_options *o, bpt_comm *comm, bpt_check_facts *f) {
    char mark[PATH_SIZE] = "";
    const bool first = bpt_comm_rank(comm) == 0;
    f->has_run = o->output && *o->output;
    if (f->has_run) f->run_place = bpt_file_system_at(o->output);
    if (f->has_run && first) put_mark(o, f, mark);
    bpt_status status = bpt_comm_broadcast(comm, 0, mark, sizeof mark);
    if (status == BPT_OK && mark[0]) f->run_seen = sees(mark);
    if (status == BPT_OK) status = bpt_comm_barrier(comm); /* all have looked */
    if (first && mark[0]) (void)unlink(mark);
    return status;
}

/* ---- all ranks ---- */

/* What is the same for all ranks. */
static void look_as_first(const bpt_train_options *o, bpt_comm *comm, bpt_check_facts *f) {
    bpt_check_resume(o, comm, f);
    bpt_check_weights(o, f);
    bpt_check_job(o, comm, f);
    bpt_check_trace(o, f);
}

/* @param n_workers ranks that are no servers */
static bpt_status gather(const bpt_train_options *o, bpt_comm *comm, uint32_t n_workers,
                         bpt_check_facts *all, bpt_clock_offset *clocks) {
    bpt_check_facts mine = {0};
    look_at_machine(o, comm, &mine);
    bpt_status status = BPT_OK;
    unsigned cores;
    bpt_comm_operation_begin(comm, "the dataset and the model");
    if (bpt_comm_rank(comm) == 0 || (!is_scattered(o, comm) && !serves(o, comm))) {
        look_at_data(o, comm, &mine);
        look_at_copy(o, &mine);
    }
    bpt_check_model(o, mine.data != 0, &mine);
    if (!mine.serves) bpt_check_device(o, comm, &mine);
    status = bpt_rank_threads_cores(comm, n_workers, mine.on_device, &cores);
    if (status == BPT_OK && !mine.serves) bpt_check_tuned(o, comm, cores, &mine);
    if (bpt_comm_rank(comm) == 0) look_as_first(o, comm, &mine);
    if (status == BPT_OK && is_scattered(o, comm)) status = bpt_check_scratch(o, comm, &mine);
    bpt_comm_operation_end(comm);
    BPT_TRY(status);
    bpt_comm_operation_begin(comm, "the run folder");
    status = look_at_run(o, comm, &mine);
    bpt_comm_operation_end(comm);
    BPT_TRY(status);
    BPT_TRY(bpt_comm_clock_offsets(comm, clocks)); /* connects each rank with rank 0 */
    bpt_check_interfaces(mine.network, sizeof mine.network);
    BPT_TRY(bpt_comm_allgather(comm, &mine, sizeof mine, all));
    for (uint32_t r = 0; r < bpt_comm_size(comm); r++) {
        all[r].clock_ahead_s = clocks[r].ahead_s;
        all[r].clock_error_s = clocks[r].error_s;
    }
    return BPT_OK;
}

static void set_verdict(uint32_t n_errors, bpt_status *verdict) {
    *verdict = BPT_OK;
    if (n_errors == 0) return;
    *verdict =
        bpt_fail(BPT_EUSAGE, "--check has found %u error%s", n_errors, n_errors == 1 ? "" : "s");
    bpt_hint("each line that begins with \"error\" says what to do");
}

bpt_status bpt_train_check(const bpt_train_options *options, bpt_comm *comm, bpt_status *verdict) {
    const uint32_t n = bpt_comm_size(comm);
    bpt_check_facts *all = NULL;
    bpt_clock_offset *clocks = NULL;
    uint32_t n_errors = 0, n_servers;
    bpt_comm_doing(comm, "the check");
    BPT_TRY(bpt_servers_count(options, n, &n_servers));
    bpt_status status = BPT_NEW("facts of ranks", n, &all);
    if (status == BPT_OK) status = BPT_NEW("clocks of ranks", n, &clocks);
    status = bpt_comm_agree(comm, status);
    if (status == BPT_OK) status = gather(options, comm, n - n_servers, all, clocks);
    if (status == BPT_OK && bpt_comm_rank(comm) == 0) n_errors = bpt_check_print(all, n, stdout);
    if (status == BPT_OK) status = bpt_comm_broadcast(comm, 0, &n_errors, sizeof n_errors);
    if (status == BPT_OK) set_verdict(n_errors, verdict);
    bpt_free(clocks);
    bpt_free(all);
    return status;
}
