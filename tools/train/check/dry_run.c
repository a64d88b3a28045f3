#include "tools/train/check/dry_run.h"

#include "tools/shaped_model.h"
#include "tools/train/check/check_facts.h"
#include "tools/train/job/job_parts.h"
#include "tools/train/job/layer_choice.h"
#include "tools/train/job/memory_plan.h"
#include "tools/train/job/rank_threads.h"
#include "tools/train/run/initial_weights.h"
#include "tools/train/run/tuning.h"

static void print_job(const bpt_job *job) {
    bpt_options_print(&bpt_train_command, job->options, stdout);
    printf("\n");
    bpt_model_print(job->model, stdout);
    if (job->model->n_frozen > 0)
        printf("frozen, before %s: %zu of %zu values, the others learn\n",
               job->options->freeze_before, bpt_model_frozen_elements(job->model),
               job->model->segments.n_elements);
    printf("\n");
}

/* Says so where a plan, of a worker or a server, is more than the machine has, and what helps. */
static bpt_status print_limit(const bpt_job *job, const bpt_memory_plan *plan) {
    const size_t limit = bpt_memory_plan_limit(job);
    char remedy[BPT_MEMORY_REMEDY_SIZE];
    if (plan->total <= limit) return BPT_OK;
    BPT_TRY(bpt_memory_plan_remedy(job, plan, limit, remedy));
    printf("more than the %.1f MB of this machine%s; %s\n", (double)limit * 1e-6,
           job->ranks_on_host > 1 ? " for each rank on it" : "", remedy);
    return BPT_OK;
}

/* With a layer named from which on one rank computes for all: of a rank, of that one, and of what
 * both need before, to measure speeds with the whole network.
 * @param[out] most what takes the most of them; the job is before its parting then */
static bpt_status print_parts(bpt_job *job, bpt_memory_plan *most) {
    const size_t border = job->parting.border;
    bpt_memory_plan p;
    *most = (bpt_memory_plan){0};
    for (int host = 0; host < 2; host++) {
        job->parting = (bpt_parting){BPT_PARTING_DONE, host, border};
        BPT_TRY(bpt_memory_plan_make(job, &p));
        bpt_memory_plan_print(&p, stdout);
        printf("\n");
        if (p.total > most->total) *most = p;
    }
    job->parting = (bpt_parting){.stage = BPT_PARTING_BEFORE, .border = border};
    BPT_TRY(bpt_memory_plan_make(job, &p));
    printf("before, while speeds are measured with the whole network: %zu bytes, %.1f MB\n",
           p.total, (double)p.total * 1e-6);
    if (p.total > most->total) *most = p;
    return BPT_OK;
}

/* What a checkpoint is gone on from has others. */
static bpt_status try_weights(const bpt_job *job) {
    const bpt_train_options *o = job->options;
    if (!o->init_weights || bpt_check_goes_on(o)) return BPT_OK;
    return bpt_initial_weights_try(o, &job->model->segments);
}

/* Whatever the run would refuse for its dataset's or its input's sake is refused here. Without a
 * dataset the model may be of another shape than the weights. */
static bpt_status open_model(bpt_job *job) {
    const bpt_augment augment = bpt_train_augment(job->options);
    if (job->options->data) {
        BPT_TRY(bpt_job_open_data(job));
        BPT_TRY(bpt_job_choose_lengths(job));
        BPT_TRY(bpt_job_load_model(job));
        return try_weights(job);
    }
    const bpt_train_options *o = job->options;
    const bpt_shaped_model shaped = {o->model, NULL, o->input_size, o->classes};
    BPT_TRY(bpt_shaped_model_load(&shaped, &job->model));
    BPT_TRY(bpt_train_freeze(o, job->model));
    return bpt_augment_check(&augment, (uint32_t)job->model->input.h,
                             (uint32_t)job->model->input.w);
}

/* As the last worker does: of shares that are not quite equal its is the largest. */
static bpt_status choose(bpt_job *job) {
    BPT_TRY(bpt_job_choose(job)); /* tells how many workers there are */
    job->rank = job->n_workers - 1;
    return bpt_job_choose(job);
}

/* By the first worker's step: no other has fewer samples. */
static bpt_status check_batch_norms(const bpt_job *job) {
    bpt_job first = *job;
    first.rank = 0;
    BPT_TRY(bpt_job_choose(&first));
    return bpt_job_check_batch_norms(&first);
}

/* A network on a device, which says what it takes when it is there. */
typedef struct on_device {
    bpt_pool *pool;
    bpt_network *net; /* NULL: this rank computes on cores alone */
} on_device;

/* @param[in,out] plan grows by what it takes of the host, if it can be had
 * @param[out] there close_on_device(), also on failure */
static bpt_status open_on_device(const bpt_job *job, bpt_memory_plan *plan, on_device *there) {
    const bpt_train_options *o = job->options;
    if (!job->device) return BPT_OK;
    BPT_TRY(bpt_pool_open(o->policy, job->n_threads, &there->pool));
    BPT_TRY(bpt_network_create_on(job->device, job->model, job->batch,
                                  bpt_train_activations(o, job->device),
                                  bpt_train_learning(o, job->lr_factor), there->pool, &there->net));
    const bpt_network_memory on_host = bpt_network_host_memory_of(there->net);
    bpt_memory_plan_add(plan, &on_host);
    return BPT_OK;
}

static void close_on_device(on_device *there) {
    bpt_network_free(there->net);
    bpt_pool_free(there->pool);
}

static void print_on_device(const bpt_job *job, const bpt_network *net) {
    const bpt_network_memory memory = bpt_network_memory_of(net);
    printf("\n");
    bpt_memory_plan_print_device(&memory, stdout);
    printf("of %.1f MB of %s\n", (double)job->device->memory_bytes * 1e-6, job->device->name);
    if (bpt_network_sharing(net)) printf("%s\n", bpt_network_sharing(net));
}

/* It is not known before a run which host has the servers: at most all of them this one. */
static unsigned workers_on_host(const bpt_job *job) {
    return job->ranks_on_host > job->n_servers ? job->ranks_on_host - job->n_servers : 1;
}

/* As the first worker of the host does. */
static bpt_status open_device(bpt_job *job, unsigned on_host) {
    const bpt_host_place first = {.index = 0, .n = on_host};
    BPT_TRY(bpt_job_find_device(job->options, job->n_ranks, first, &job->device));
    job->any_device = job->device != NULL;
    job->n_threads = bpt_device_option_threads(job->device, (unsigned)job->options->threads,
                                               bpt_rank_threads_expected(0, on_host));
    return bpt_layer_choice_check_devices(job);
}

static bpt_status print_server(const bpt_job *job) {
    bpt_memory_plan plan;
    BPT_TRY(bpt_memory_plan_make(job, &plan));
    printf("\n");
    bpt_memory_plan_print_server(&plan, stdout);
    return print_limit(job, &plan);
}

static bpt_status print_plan(bpt_job *job, bpt_memory_plan *plan) {
    if (bpt_layer_choice_is_named(job, &job->parting.border)) return print_parts(job, plan);
    bpt_memory_plan_print(plan, stdout);
    return BPT_OK;
}

/* Of a rank, and of a server where there are any.
 * @param opened what came of the network on the device: said behind the plan
 * @param there  that network; NULL: there is none */
static bpt_status report(bpt_job *job, bpt_memory_plan *plan, bpt_status opened,
                         const bpt_network *there) {
    BPT_TRY(print_plan(job, plan));
    BPT_TRY(opened);
    if (there) print_on_device(job, there);
    BPT_TRY(print_limit(job, plan));
    if (job->n_servers == 0) return BPT_OK;
    job->rank = job->n_workers;
    return print_server(job);
}

bpt_status bpt_train_dry_run(const bpt_train_options *o, uint32_t n_ranks, uint32_t on_host) {
    bpt_job job = {
        .options = o,
        .n_ranks = n_ranks,
        .ranks_on_host = on_host,
    };
    bpt_memory_plan plan;
    on_device there = {0};
    BPT_TRY(choose(&job));
    const unsigned sharing = workers_on_host(&job);
    bpt_status status = open_model(&job);
    if (status == BPT_OK) status = bpt_layer_choice_check(o, job.model);
    if (status == BPT_OK) status = check_batch_norms(&job);
    if (status == BPT_OK) status = open_device(&job, sharing);
    if (status == BPT_OK)
        status = bpt_tuning_use(o, job.model, job.dataset, job.batch,
                                bpt_rank_threads_expected(0, sharing), NULL);
    if (status == BPT_OK) bpt_tuning_say(o);
    if (status == BPT_OK) status = bpt_memory_plan_make(&job, &plan);
    if (status == BPT_OK) {
        print_job(&job);
        const bpt_status opened = open_on_device(&job, &plan, &there);
        status = report(&job, &plan, opened, there.net);
    }
    close_on_device(&there);
    bpt_device_close(job.device);
    bpt_model_free(job.model);
    bpt_job_close_data(&job);
    return status;
}
