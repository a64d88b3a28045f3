/* Whether the files can be used that options name beside the dataset: a job would find out only
 * after all its ranks have started. */
#include "base/file.h"
#include "base/file_system.h"
#include "base/memory.h"
#include "inner/models/model.h"
#include "tools/shaped_model.h"
#include "tools/train/check/check_facts.h"
#include "tools/train/job/checkpoint.h"
#include "tools/train/options/learning_options.h"
#include "tools/train/run/initial_weights.h"
#include "tools/train/run/step_trace.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

void bpt_check_refuse(bpt_check_refusal *refusal, const char *hint) {
    const bpt_error *error = bpt_error_last();
    snprintf(refusal->what, sizeof refusal->what, "%.255s", error->text);
    snprintf(refusal->hint, sizeof refusal->hint, "%s", error->hint[0] ? error->hint : hint);
}

/* Of the model as its file has it: ranks that see no dataset can say no more of it. */
static bpt_status identify(const bpt_train_options *o, uint64_t *identity) {
    bpt_model *model;
    BPT_TRY(bpt_model_load(o->model, NULL, &model));
    bpt_status status = bpt_train_freeze(o, model);
    if (status == BPT_OK) status = bpt_model_identify(model, identity);
    bpt_model_free(model);
    return status;
}

/* In the shape of the dataset. */
static bpt_status load(const bpt_train_options *o, bpt_model **model) {
    const bpt_shaped_model wanted = {
        .model = o->model, .data = o->data, .input_size = o->input_size};
    return bpt_shaped_model_load(&wanted, model);
}

static bpt_status fit(const bpt_train_options *o, bpt_run_need *need) {
    bpt_model *model;
    BPT_TRY(load(o, &model));
    const bpt_run_writes end = {.weights = model->segments.n_elements * sizeof(float), .keep = 1};
    *need = bpt_run_need_of(&end);
    bpt_model_free(model);
    return BPT_OK;
}

/* As training does at its start.
 * @param path NULL: of --init-weights */
static bpt_status read_weights(const bpt_train_options *o, const char *path) {
    bpt_train_options from = *o;
    if (path) from.init_weights = path, from.init_except = NULL;
    bpt_model *model;
    BPT_TRY(load(o, &model));
    const bpt_status status = bpt_initial_weights_try(&from, &model->segments);
    bpt_model_free(model);
    return status;
}

static bpt_status look_for(const char *path) {
    return access(path, R_OK) == 0 ? BPT_OK : bpt_fail_errno(errno, "open", path);
}

bool bpt_check_goes_on(const bpt_train_options *o) {
    if (!o->resume) return false;
    return strcmp(o->resume, "auto") != 0 ||
           (o->output && bpt_checkpoint_expect(o->output) == BPT_OK);
}

void bpt_check_model(const bpt_train_options *o, bool sees_data, bpt_check_facts *f) {
    if (!o->model || !*o->model) return;
    bpt_status status = identify(o, &f->model);
    if (status == BPT_OK && sees_data) status = fit(o, &f->run_need);
    if (status == BPT_OK) return;
    f->model = 0;
    bpt_check_refuse(&f->model_refusal, "name a --model that every host can read");
}

void bpt_check_weights(const bpt_train_options *o, bpt_check_facts *f) {
    if (!o->init_weights || bpt_check_goes_on(o)) return;
    if ((f->data && f->model ? read_weights(o, NULL) : look_for(o->init_weights)) != BPT_OK)
        bpt_check_refuse(&f->weights_refusal,
                         "name an --init-weights with the weights of this model");
}

/* The run's folder, or one above it, is there before the trace is; whether it can be made is looked
 * at for its own sake. */
static bool comes_with_run(const bpt_train_options *o, const char *path) {
    const char *slash = strrchr(path, '/');
    char *folder;
    if (!o->output || !slash) return false;
    if (bpt_strf(&folder, "%.*s", (int)(slash + 1 - path), path) != BPT_OK) return false;
    const bool comes = !bpt_path_exists(folder) && bpt_path_lies_in(o->output, folder);
    bpt_free(folder);
    return comes;
}

void bpt_check_trace(const bpt_train_options *o, bpt_check_facts *f) {
    if (o->trace && !comes_with_run(o, o->trace) && bpt_step_trace_try(o->trace) != BPT_OK)
        bpt_check_refuse(&f->trace_refusal, "name a --trace where you may write");
}

/* Whether all that the ranks read of it is sound, and of this model, where that is known. */
static bpt_status try_to_go_on(const bpt_train_options *o, uint32_t n_ranks, bool sees_model) {
    const char *resume = strcmp(o->resume, "auto") == 0 ? o->output : o->resume;
    char *checkpoint, *weights = NULL;
    BPT_TRY(bpt_checkpoint_try(resume, n_ranks, &checkpoint));
    bpt_status status = BPT_OK;
    if (sees_model && checkpoint) /* it may have gone meanwhile */
        status = bpt_strf(&weights, "%s/model.safetensors", checkpoint);
    if (weights) status = read_weights(o, weights);
    bpt_free(weights);
    bpt_free(checkpoint);
    return status;
}

void bpt_check_resume(const bpt_train_options *o, const bpt_comm *comm, bpt_check_facts *f) {
    if (bpt_check_goes_on(o) && try_to_go_on(o, bpt_comm_size(comm), f->data && f->model) != BPT_OK)
        bpt_check_refuse(&f->resume_refusal,
                         "name the folder of a run that has made a checkpoint of this model");
}
