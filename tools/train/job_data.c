/* What a job learns from: its dataset, and the model in that shape. */
#include "tools/train/job_parts.h"

bpt_status bpt__job_open_data(bpt_job *job) {
    const bpt_train_options *o = job->options;
    BPT_TRY(bpt_dataset_open(o->data, &job->dataset));
    const bpt_dataset_info *info = bpt_dataset_describe(job->dataset);
    const bpt_augment augment = bpt_train_augment(o);
    BPT_TRY(bpt_augment_check(&augment, info->H, info->W));
    BPT_TRY(bpt_dataset_find(job->dataset, o->train_split, &job->train));
    BPT_TRY(bpt_dataset_find(job->dataset, o->test_split, &job->test));
    if (job->train->count == 0 || job->test->count == 0)
        return bpt_fail(BPT_EDATA, "%s: split \"%s\" is empty", o->data,
                        job->train->count == 0 ? o->train_split : o->test_split);
    return bpt__job_choose_lengths(job);
}

bpt_status bpt__job_load_model(bpt_job *job) {
    const bpt_dataset_info *info = bpt_dataset_describe(job->dataset);
    const bpt_model_override shape = {
        .input = {.c = info->C, .h = info->H, .w = info->W},
        .classes = info->n_classes,
    };
    return bpt_model_load(job->options->model, &shape, &job->model);
}
