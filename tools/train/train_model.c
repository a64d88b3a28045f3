#include "tools/train/train_model.h"

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

bpt_status bpt_train_load_model(const bpt_train_options *o, bpt_model **model) {
    bpt_model_override shape = {.classes = o->classes};
    if (o->data) {
        BPT_TRY(shape_of_dataset(o->data, &shape));
        return bpt_model_load(o->model, &shape, model);
    }
    BPT_TRY(bpt_model_load(o->model, &shape, model));
    if (!o->input_size[0] && !o->input_size[1]) return BPT_OK;
    shape.input = (bpt_shape){(*model)->input.c, o->input_size[0], o->input_size[1]};
    bpt_model_free(*model);
    *model = NULL;
    return bpt_model_load(o->model, &shape, model);
}
