/* What a job learns from: its dataset, and the model in that shape. */
#include "base/checksum.h"
#include "base/memory.h"
#include "tools/shaped_model.h"
#include "tools/split_option.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/options/servers.h"

bool bpt_job_scatters(const bpt_job *job) {
    return bpt_servers_scatter(job->options, job->n_ranks);
}

/* @param dataset the job's from now on */
static bpt_status use(bpt_job *job, const bpt_dataset *dataset) {
    const bpt_train_options *o = job->options;
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    const bpt_augment augment = bpt_train_augment(o);
    job->dataset = dataset;
    job->shape = (bpt_model_override){
        .input = {.c = info->C, .h = info->H, .w = info->W},
        .classes = info->n_classes,
    };
    BPT_TRY(bpt_augment_check_images(&augment, info->encoded, info->H, info->W));
    BPT_TRY(bpt_split_option_find(dataset, "train-split", o->train_split, &job->train));
    BPT_TRY(bpt_split_option_find(dataset, "test-split", o->test_split, &job->test));
    if (job->train->count == 0 || job->test->count == 0)
        return bpt_fail(BPT_EDATA, "%s: split \"%s\" is empty", o->data,
                        job->train->count == 0 ? o->train_split : o->test_split);
    return BPT_OK;
}

/* Of who opens the dataset itself. */
static bpt_status settle(bpt_job *job) {
    const bpt_train_options *o = job->options;
    if (bpt_job_scatters(job)) BPT_TRY(bpt_delivery_check(job->opened, o->data));
    BPT_TRY(bpt_shaped_model_fit(job->opened, o->model, o->input_size));
    bpt_dataset_set_memory(job->opened, bpt_memory_of_machine());
    return BPT_OK;
}

bpt_status bpt_job_open_data(bpt_job *job) {
    BPT_TRY(bpt_dataset_open(bpt__job_data_path(job), &job->opened));
    BPT_TRY(settle(job));
    return use(job, job->opened);
}

void bpt_job_close_data(bpt_job *job) {
    bpt_scratch_close(job->scratch);
    bpt_dataset_close(job->opened);
    bpt_stage_close(job->stage);
    job->stage = NULL;
    job->scratch = NULL;
    job->opened = NULL;
}

/* ---- of rank 0 alone ---- */

/* What the dataset holds, as bytes. */
typedef struct {
    char *text;
    uint64_t size;
} description;

static bpt_status open_first(bpt_job *job, description *d) {
    size_t size;
    if (job->rank != 0) return BPT_OK;
    const bpt_status status = bpt_dataset_open(bpt__job_data_path(job), &job->opened);
    if (status == BPT_ENOENT)
        bpt_hint("with --data-mode scatter rank 0 has to have the dataset, which is on %s",
                 bpt_comm_host(job->comm, 0));
    BPT_TRY(status);
    BPT_TRY(settle(job));
    BPT_TRY(bpt_dataset_export(job->opened, &d->text, &size));
    d->size = size;
    return BPT_OK;
}

static bpt_status tell_all(bpt_job *job, description *d) {
    BPT_TRY(bpt_comm_agree(job->comm, open_first(job, d)));
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, &d->size, sizeof d->size));
    bpt_status status = BPT_OK;
    if (job->rank != 0) status = bpt_alloc("description", d->size, 1, (void **)&d->text);
    BPT_TRY(bpt_comm_agree(job->comm, status));
    return bpt_comm_broadcast(job->comm, 0, d->text, d->size);
}

static bpt_status open_scratch(bpt_job *job, const description *d) {
    char *path;
    if (job->rank == 0) return BPT_OK;
    BPT_TRY(bpt_strf(&path, "%s/rank-%u", job->options->scratch, job->rank));
    const bpt_status status = bpt_scratch_open(path, d->text, d->size, &job->scratch);
    const bool hinted = status == BPT_OK || bpt_error_last()->hint[0];
    if (!hinted && (status == BPT_EDATA || status == BPT_ECORRUPT))
        bpt_hint("remove %s: what it held is sent again", path);
    else if (!hinted)
        bpt_hint("name a --scratch where %s may write", bpt_comm_host(job->comm, job->rank));
    bpt_free(path);
    return status;
}

bpt_status bpt__job_share_data(bpt_job *job) {
    description d = {0};
    bpt_status status = tell_all(job, &d);
    const bool keeps = !bpt_job_is_server(job);
    if (status == BPT_OK && keeps) status = open_scratch(job, &d);
    if (status == BPT_OK) job->scratch_identity = bpt_checksum(d.text, d.size);
    bpt_free(d.text);
    BPT_TRY(status);
    if (!keeps) return BPT_OK;
    return use(job, job->rank == 0 ? job->opened : bpt_scratch_dataset(job->scratch));
}

/* ---- of servers ---- */

/* What a server has to know of a dataset. */
typedef struct {
    bpt_model_override shape;
    uint32_t n_train, n_test;
} facts;

bpt_status bpt__job_tell_servers(bpt_job *job) {
    facts f = {.shape = job->shape};
    if (job->n_servers == 0) return BPT_OK;
    if (job->rank == 0) {
        f.n_train = job->train->count;
        f.n_test = job->test->count;
    }
    BPT_TRY(bpt_comm_broadcast(job->comm, 0, &f, sizeof f));
    if (!bpt_job_is_server(job)) return BPT_OK;
    job->shape = f.shape;
    job->told[0] = (bpt_split){.name = job->options->train_split, .count = f.n_train};
    job->told[1] = (bpt_split){.name = job->options->test_split, .count = f.n_test};
    job->train = &job->told[0];
    job->test = &job->told[1];
    return BPT_OK;
}

/* ---- the model ---- */

bpt_status bpt_job_load_model(bpt_job *job) {
    BPT_TRY(bpt_model_load(job->options->model, &job->shape, &job->model));
    return bpt_train_freeze(job->options, job->model);
}
