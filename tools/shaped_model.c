#include "tools/shaped_model.h"

#include "storage/dataset.h"

static bpt_status shape_of_dataset(const char *path, bpt_model_override *shape) {
    bpt_dataset *dataset;
    BPT_TRY(bpt_dataset_open(path, &dataset));
    const bpt_dataset_info *info = bpt_dataset_describe(dataset);
    *shape = (bpt_model_override){.input = {.c = info->C, .h = info->H, .w = info->W},
                                  .classes = info->n_classes};
    bpt_dataset_close(dataset);
    return BPT_OK;
}

bpt_status bpt_shaped_model_load(const bpt_shaped_model *w, bpt_model **model) {
    bpt_model_override shape = {.classes = w->classes};
    if (w->data) {
        BPT_TRY(shape_of_dataset(w->data, &shape));
        return bpt_model_load(w->model, &shape, model);
    }
    BPT_TRY(bpt_model_load(w->model, &shape, model));
    if (!w->input_size[0] && !w->input_size[1]) return BPT_OK;
    shape.input = (bpt_shape){(*model)->input.c, w->input_size[0], w->input_size[1]};
    bpt_model_free(*model);
    *model = NULL;
    return bpt_model_load(w->model, &shape, model);
}
