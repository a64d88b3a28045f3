/* bpt-plan: how fast a cluster will train a model, and how best to. */
#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/launch.h"
#include "outer/comm/watch.h"
#include "tools/plan/cluster_file.h"
#include "tools/plan/plan.h"
#include "tools/plan/plan_agreement.h"
#include "tools/plan/plan_report.h"
#include "tools/plan/probe.h"
#include "tools/program.h"
#include "tools/shaped_model.h"

#include <sys/stat.h>

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { IDENTITY_SIZE = 17, PLAN_BYTES = 1 << 20 };

/** What a plan is made from, and for. */
typedef struct planner {
    bpt_plan_options options;
    bpt_recipe recipe;
    bpt_model *model;
    bpt_dataset *dataset; /* NULL without --data */
    const bpt_split *split;
    char identity[IDENTITY_SIZE]; /* of the model */
    char precision[BPT_RECIPE_CHOICE_SIZE];
    bpt_cluster_file file; /* that was read */
    bpt_cluster measured;  /* with --measure */
} planner;

/* ---- files ---- */

/* Only a plan gives way to one, or a file without content. */
static bpt_status recognise_plan(const char *path, bool *is) {
    struct stat info;
    char *text;
    size_t size;
    *is = false;
    if (stat(path, &info) != 0 || !S_ISREG(info.st_mode)) return BPT_OK;
    BPT_TRY(bpt_file_read(path, PLAN_BYTES, &text, &size));
    *is = size == 0 || strncmp(text, BPT_PLAN_MARK, sizeof BPT_PLAN_MARK - 1) == 0;
    bpt_free(text);
    return BPT_OK;
}

static bpt_status check_plan_place(const char *path, bool force) {
    bool there, ours = false;
    BPT_TRY(bpt_path_look(path, &there));
    if (there && force) BPT_TRY(recognise_plan(path, &ours));
    if (!there || ours) return bpt_file_try(path);
    const bpt_status status =
        bpt_fail(BPT_EEXIST, "%s is there already%s", path, force ? ", and no plan" : "");
    bpt_hint(force ? "name another file"
                   : "name another file, or give --force to replace the plan that is there");
    return status;
}

static bpt_status check_cluster_place(const char *path, bool force) {
    bool there;
    BPT_TRY(bpt_path_look(path, &there));
    if (there && !force) {
        const bpt_status status = bpt_fail(BPT_EEXIST, "%s is there already", path);
        bpt_hint("leave out --measure to use it, or give --force to measure anew");
        return status;
    }
    BPT_TRY(bpt_cluster_file_check_place(path));
    return bpt_file_try(path);
}

static bpt_status check_places(const bpt_plan_options *o) {
    if (o->measure) BPT_TRY(check_cluster_place(o->cluster, o->force));
    return o->out ? check_plan_place(o->out, o->force) : BPT_OK;
}

/* ---- what is to be trained ---- */

/* A step that no run could make is not measured. */
static bpt_status check_batch(const planner *p) {
    const int64_t batch = p->options.batch_size;
    if (!p->split || batch <= p->split->count) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE,
                 "--batch-size %" PRId64 ": a step takes %" PRId64 " samples, split \"%s\" has %u",
                 batch, batch, p->split->name, p->split->count);
    bpt_hint("give --batch-size %u or less", p->split->count);
    return status;
}

static bpt_status open_subject(planner *p) {
    const bpt_plan_options *o = &p->options;
    const bpt_shaped_model shaped = {o->model, o->data, o->input_size, o->classes};
    uint64_t identity;
    BPT_TRY(bpt_shaped_model_load(&shaped, &p->model));
    if (o->data)
        BPT_TRY(bpt_shaped_model_open_data(&shaped, o->train_split, &p->dataset, &p->split));
    BPT_TRY(check_batch(p));
    BPT_TRY(bpt_model_identify(p->model, &identity));
    bpt_recipe_choice(BPT_PRECISIONS, o->precision, p->precision);
    snprintf(p->identity, sizeof p->identity, "%016" PRIx64, identity);
    p->recipe = (bpt_recipe){
        .options = o,
        .model = p->model,
        .epoch_samples = p->split ? p->split->count : (uint64_t)o->images,
    };
    return bpt_gradient_schedule_make(p->model, &p->recipe.gradient);
}

static void close_planner(planner *p) {
    bpt_gradient_schedule_free(&p->recipe.gradient);
    bpt_cluster_file_free(&p->file);
    bpt_probe_free(&p->measured);
    bpt_dataset_close(p->dataset);
    bpt_model_free(p->model);
}

static bpt_cluster_model model_of(const planner *p) {
    const bpt_plan_options *o = &p->options;
    return (bpt_cluster_model){
        .name = p->model->name,
        .identity = p->identity,
        .precision = p->precision,
        .optimizer = bpt_optimizer_at((size_t)o->optimizer)->name,
    };
}

/* ---- a file that is read ---- */

static bpt_status check_same(const char *path, const char *what, const char *there,
                             const char *here, const char *hint) {
    if (!there || strcmp(there, here) == 0) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "%s was measured with %s %s, this is %s", path, what, there, here);
    bpt_hint("%s", hint);
    return status;
}

/* Steps of another model say nothing. */
static bpt_status check_model(const planner *p, const bpt_cluster *cluster) {
    const char *path = p->options.cluster;
    const bpt_cluster_model *there = &cluster->model, here = model_of(p);
    BPT_TRY(check_same(path, "model", there->name, here.name, "measure this one: --measure"));
    BPT_TRY(check_same(path, "layers", there->identity, here.identity,
                       "the same model in another shape: give the --data, or the --input-size and "
                       "--classes, that were measured, or measure anew"));
    BPT_TRY(check_same(path, "--precision", there->precision, here.precision,
                       "give that, or measure anew"));
    return check_same(path, "--optimizer", there->optimizer, here.optimizer,
                      "give that, or measure anew");
}

static bpt_status read_cluster(planner *p) {
    BPT_TRY(bpt_cluster_file_read(p->options.cluster, &p->file));
    return check_model(p, &p->file.cluster);
}

/* ---- a file that is written ---- */

static bpt_status write_cluster(const planner *p) {
    char now[32], *comment;
    BPT_TRY(check_cluster_place(p->options.cluster, p->options.force)); /* it took a while */
    bpt_clock_utc(now, sizeof now);
    BPT_TRY(
        bpt_strf(&comment,
                 "# Made by bpt-plan on %s: a rank a machine. Of more like one of them say how\n"
                 "# many by its `count`; what has no figure is taken to cost nothing.\n",
                 now));
    const bpt_status status = bpt_cluster_file_write(p->options.cluster, &p->measured, comment);
    bpt_free(comment);
    return status;
}

static void tell_stall(const bpt_stall *stall) {
    bpt_log_urgent(BPT_LOG_WARN, "%s: %s", stall->text, stall->hint);
}

static bpt_status probe(planner *p, bpt_comm *comm) {
    const bpt_plan_options *o = &p->options;
    bpt_learning learning;
    BPT_TRY(bpt_comm_agree(comm, bpt_recipe_learning(&p->recipe, &learning)));
    const bpt_probe_subject subject = {
        .model = p->model,
        .dataset = p->dataset,
        .split = p->split,
        .batch = o->batch_size,
        .precision = (bpt_precision)o->precision,
        .learning = learning,
        .device = o->device,
        .threads = (unsigned)o->threads,
        .seconds = o->seconds,
    };
    BPT_TRY(bpt_plan_agree(comm, &subject));
    return bpt_probe_run(comm, &subject, &p->measured);
}

static bpt_status measure(planner *p, bpt_comm *comm) {
    const bpt_launch launch = bpt_launch_here();
    const bool writes = bpt_comm_rank(comm) == 0;
    BPT_TRY(bpt_launch_check(&launch, bpt_comm_size(comm), bpt_comm_library(comm)));
    bpt_log_setup((int)bpt_comm_rank(comm), BPT_LOG_INFO);
    BPT_TRY(bpt_comm_agree(comm, writes ? check_places(&p->options) : BPT_OK));
    BPT_TRY(bpt_comm_agree(comm, open_subject(p)));
    BPT_TRY(probe(p, comm));
    p->measured.model = model_of(p);
    return bpt_comm_agree(comm, writes ? write_cluster(p) : BPT_OK);
}

/* ---- the plan ---- */

static bpt_status check_ranks(const planner *p, const bpt_cluster *cluster) {
    const uint32_t has = bpt_cluster_ranks(cluster);
    if (p->options.ranks <= has) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "--ranks %" PRId64 ": %s has %u",
                                       p->options.ranks, p->options.cluster, has);
    bpt_hint("say there of how many machines a node stands for (count)");
    return status;
}

/* What fits nowhere is told, too. */
static bpt_status refuse_memory(const bpt_plan *plan) {
    if (plan->chosen) return BPT_OK;
    const bpt_status status =
        bpt_fail(BPT_EUSAGE, "no way of learning together fits the memory of %u rank%s",
                 plan->n_ranks, plan->n_ranks == 1 ? "" : "s");
    bpt_hint("lower --batch-size, or leave out the machines that have too little");
    return status;
}

/* @param[out] found NULL: there is none to compare with, else pace */
static bpt_status read_run(const planner *p, const bpt_plan *plan, bpt_run_pace *pace,
                           const bpt_run_pace **found) {
    const bpt_plan_options *o = &p->options;
    *found = NULL;
    if (!o->compare) return BPT_OK;
    BPT_TRY(bpt_run_pace_read(o->compare, p->model->name, pace));
    *found = pace;
    if (bpt_run_pace_find(plan, pace)) return BPT_OK;
    const bpt_status status = bpt_fail(BPT_EUSAGE, "%s had %u ranks, of which nothing is foretold",
                                       o->compare, pace->n_ranks);
    bpt_hint("give --ranks %u, a --cluster that has as many, and the batch and images of that run",
             pace->n_ranks);
    return status;
}

static bpt_status answer(const planner *p, const bpt_plan *plan) {
    const bpt_plan_options *o = &p->options;
    const bpt_run_pace *run;
    bpt_run_pace pace;
    BPT_TRY(read_run(p, plan, &pace, &run));
    if (o->json)
        BPT_TRY(bpt_plan_print_json(&p->recipe, plan, run, stdout));
    else
        bpt_plan_print(&p->recipe, plan, run, stdout);
    BPT_TRY(refuse_memory(plan));
    if (!o->out) return BPT_OK;
    BPT_TRY(check_plan_place(o->out, o->force)); /* it may be where the cluster is by now */
    return bpt_plan_write(o->out, &p->recipe, plan);
}

static bpt_status plan_for(planner *p, const bpt_cluster *cluster) {
    bpt_plan plan;
    BPT_TRY(check_ranks(p, cluster));
    bpt_status status = bpt_plan_make(&p->recipe, cluster, (uint32_t)p->options.ranks, &plan);
    if (status == BPT_OK) status = answer(p, &plan);
    bpt_plan_free(&plan);
    return status;
}

/* ---- the program ---- */

static bpt_status plan_from_file(planner *p) {
    BPT_TRY(check_places(&p->options));
    BPT_TRY(open_subject(p));
    BPT_TRY(read_cluster(p));
    return plan_for(p, &p->file.cluster);
}

/* How a process ends, of those that were started together. */
typedef struct ending {
    bpt_status status;
    bool speaks; /* for all */
    int exit_status;
} ending;

/* Puts the rank before this thread's last error, where it is not rank 0. */
static void name_rank(uint32_t rank, const char *host) {
    const bpt_error error = *bpt_error_last();
    if (rank == 0) return;
    (void)bpt_fail(error.status, "rank %u on %s: %s", rank, host, error.text);
    if (error.hint[0]) bpt_hint("%s", error.hint);
}

/* Where ranks fail, the first whose own failure it is speaks, and all end as it does. */
static bpt_status agree_on_end(bpt_comm *comm, ending *end) {
    int *all;
    const int mine = end->status;
    BPT_TRY(bpt_comm_table(comm, "ends of ranks", &mine, sizeof mine, (void **)&all));
    uint32_t first = 0;
    while (first + 1 < bpt_comm_size(comm) && (all[first] == BPT_OK || all[first] == BPT_EPEER))
        first++;
    end->speaks = first == bpt_comm_rank(comm);
    end->exit_status = bpt_status_exit((bpt_status)all[first]);
    bpt_free(all);
    return BPT_OK;
}

static void end_together(bpt_comm *comm, ending *end) {
    if (end->status == BPT_OK || bpt_comm_size(comm) == 1) return; /* and so have all others */
    bpt_error error;
    bpt_error_get(&error);
    if (end->status != BPT_ECOMM) {
        const bpt_status agreed = agree_on_end(comm, end);
        if (agreed == BPT_OK && end->speaks) {
            bpt_error_put(&error);
            name_rank(bpt_comm_rank(comm), bpt_comm_host(comm, bpt_comm_rank(comm)));
        }
        if (agreed == BPT_OK) return;
    }
    bpt_comm_abort(comm, bpt_program_end("bpt-plan", end->status)); /* nobody can be told */
}

/* @param[out] comm NULL where it could not be had */
static void measure_first(planner *p, bpt_comm **comm, ending *end) {
    enum { WARNING_S = 60 };
    const bpt_watch_options watch = {
        .warning_s = WARNING_S,
        .exit_status = bpt_status_exit(BPT_ECOMM),
        .tell = tell_stall,
    };
    end->status = bpt_comm_start_watched(&watch, comm);
    if (end->status != BPT_OK) return;
    end->status = measure(p, *comm);
    end_together(*comm, end);
    if (end->status == BPT_OK && bpt_comm_rank(*comm) == 0) end->status = plan_for(p, &p->measured);
}

/* Of processes that have not met the first one speaks, and its end ends the others. One that is
 * there yet has failed by itself. */
static void await_turn(ending *end) {
    enum { TURN_S = 3 };
    char host[65] = "";
    sleep(TURN_S);
    if (gethostname(host, sizeof host - 1) != 0) strcpy(host, "?");
    name_rank(bpt_launch_here().rank, host);
    end->speaks = true;
}

static int leave(const bpt_comm *comm, ending *end) {
    const bool met = comm && bpt_comm_size(comm) > 1;
    if (end->status != BPT_OK && !end->speaks && !met) await_turn(end);
    if (end->speaks) return bpt_program_end("bpt-plan", end->status);
    return end->exit_status ? end->exit_status : bpt_status_exit(end->status);
}

static int refuse_no_arguments(ending *end) {
    end->status = bpt_fail(BPT_EUSAGE, "no arguments are given");
    if (!end->speaks) return leave(NULL, end);
    bpt_options_help(&bpt_plan_command, stdout);
    return bpt_program_no_arguments("bpt-plan");
}

int main(int argc, char **argv) {
    planner p = {0};
    bpt_option_request request = BPT_REQUEST_RUN;
    bpt_option_set *set = NULL;
    bpt_comm *comm = NULL;
    bpt_program_begin();
    ending end = {.speaks = bpt_launch_here().rank == 0};
    if (argc == 1) return refuse_no_arguments(&end);
    end.status = bpt_options_parse(&bpt_plan_command, argc, argv, &p.options, &request, &set);
    if (end.status == BPT_OK && request == BPT_REQUEST_RUN) {
        end.status = bpt_plan_options_check(&p.options, set);
        if (end.status == BPT_OK && p.options.measure)
            measure_first(&p, &comm, &end);
        else if (end.status == BPT_OK && end.speaks)
            end.status = plan_from_file(&p);
    }
    const int exit_status = leave(comm, &end);
    bpt_comm_stop(comm);
    close_planner(&p);
    bpt_option_set_free(set);
    return exit_status;
}
