#include "tools/shaped_model.h"

#include "base/memory.h"
#include "tools/split_option.h"

/* @return a side that is asked for, or else the one that is there */
static uint32_t side(int64_t asked, uint32_t own) {
    return asked ? (uint32_t)asked : own;
}

static bpt_status fit_raw(bpt_dataset *dataset, const int64_t *size) {
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    const bpt_status status =
        bpt_dataset_bring_to(dataset, side(size[0], info->H), side(size[1], info->W));
    if (status != BPT_OK)
        bpt_hint("leave out --input-size; ingested with --encoded, images may have any size");
    return status;
}

bpt_status bpt_shaped_model_fit(bpt_dataset *dataset, const char *name, const int64_t *size) {
    static const int64_t own[2] = {0, 0};
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    if (!size) size = own;
    if (!info->encoded) return fit_raw(dataset, size);
    const bpt_model_override shape = {.input = {info->C, size[0], size[1]},
                                      .classes = info->n_classes};
    bpt_model *model;
    BPT_TRY(bpt_model_load(name, &shape, &model));
    const bpt_status status =
        bpt_dataset_bring_to(dataset, (uint32_t)model->input.h, (uint32_t)model->input.w);
    bpt_model_free(model);
    return status;
}

bpt_status bpt_shaped_model_open_data(const bpt_shaped_model *w, const char *train_split,
                                      bpt_dataset **out, const bpt_split **split) {
    bpt_dataset *dataset;
    const bpt_split *found = NULL;
    BPT_TRY(bpt_dataset_open(w->data, &dataset));
    bpt_status status = bpt_shaped_model_fit(dataset, w->model, w->input_size);
    if (status == BPT_OK)
        status = bpt_split_option_find(dataset, "train-split", train_split, &found);
    if (status == BPT_OK && found->count == 0)
        status = bpt_fail(BPT_EDATA, "%s: split \"%s\" is empty", w->data, train_split);
    if (status != BPT_OK) {
        bpt_dataset_close(dataset);
        return status;
    }
    bpt_dataset_set_memory(dataset, bpt_memory_of_machine());
    *out = dataset;
    *split = found;
    return BPT_OK;
}

static bpt_status shape_of_dataset(const bpt_shaped_model *w, bpt_model_override *shape) {
    bpt_dataset *dataset;
    BPT_TRY(bpt_dataset_open(w->data, &dataset));
    const bpt_status status = bpt_shaped_model_fit(dataset, w->model, w->input_size);
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    *shape = (bpt_model_override){.input = {.c = info->C, .h = info->H, .w = info->W},
                                  .classes = info->n_classes};
    bpt_dataset_close(dataset);
    return status;
}

bpt_status bpt_shaped_model_load(const bpt_shaped_model *w, bpt_model **model) {
    bpt_model_override shape = {.classes = w->classes};
    if (w->data) {
        BPT_TRY(shape_of_dataset(w, &shape));
        return bpt_model_load(w->model, &shape, model);
    }
    BPT_TRY(bpt_model_load(w->model, &shape, model));
    if (!w->input_size[0] && !w->input_size[1]) return BPT_OK;
    shape.input = (bpt_shape){(*model)->input.c, w->input_size[0], w->input_size[1]};
    bpt_model_free(*model);
    *model = NULL;
    return bpt_model_load(w->model, &shape, model);
}
