#include "tools/eval/onnx_file.h"

#include "base/json.h"
#include "base/memory.h"
#include "storage/loader/loader.h"
#include "tools/eval/result_file.h"
#include "tools/interrupt.h"

#include <stdio.h>

static const bpt_result_file kind = {.option = "onnx",
                                     .what = "ONNX file of bpt's",
                                     .example = "network.onnx",
                                     .head = bpt_onnx_head,
                                     .head_bytes = BPT_ONNX_HEAD_BYTES};

bpt_status bpt_onnx_file_try(const char *path) {
    return bpt_result_file_try(&kind, path);
}

/* @param[out] text of a list of names; in @p w */
static bpt_status list_names(bpt_json_writer *w, const char *const *names, uint32_t n,
                             const char **text) {
    size_t length;
    bpt_json_open_array(w, NULL);
    for (uint32_t i = 0; i < n; i++) bpt_json_put_text(w, NULL, names[i]);
    bpt_json_close_array(w);
    return bpt_json_end_text(w, text, &length);
}

static bpt_status list_numbers(bpt_json_writer *w, const double *numbers, uint32_t n,
                               const char **text) {
    size_t length;
    bpt_json_open_array(w, NULL);
    for (uint32_t i = 0; i < n; i++) bpt_json_put_real(w, NULL, numbers[i]);
    bpt_json_close_array(w);
    return bpt_json_end_text(w, text, &length);
}

/* Of other numbers of planes nobody has said what they are. */
static void name_channels(uint32_t C, char *name, size_t size) {
    if (C == 1 || C == 3)
        snprintf(name, size, "%s", C == 1 ? "grey" : "channels red, green, blue");
    else
        snprintf(name, size, "%u channels", C);
}

static bpt_status create(const bpt_onnx_origin *o, float *numbers, bpt_json_writer lists[3],
                         bpt_onnx **onnx) {
    const bpt_dataset_info *info = bpt_dataset_describe(o->dataset);
    const char *classes, *mean, *std;
    char channels[32], input[128];
    name_channels(info->C, channels, sizeof channels);
    snprintf(input, sizeof input, "pixels from 0 to 255, %s, of images of %u x %u (height x width)",
             channels, info->H, info->W);
    bpt_loader_scales(o->split->mean, o->split->std, info->C, numbers, numbers + info->C);
    BPT_TRY(list_names(&lists[0], info->classes, info->n_classes, &classes));
    BPT_TRY(list_numbers(&lists[1], o->split->mean, info->C, &mean));
    BPT_TRY(list_numbers(&lists[2], o->split->std, info->C, &std));
    const bpt_metadata metadata[] = {
        {"model", o->model->name},
        {"weights", o->weights_path},
        {"train_data", o->data},
        {"classes", classes},
        {"train_split", o->split->name},
        {"input", input},
        {"mean", mean},
        {"std", std},
    };
    const bpt_onnx_source source = {.model = o->model,
                                    .weights = o->weights,
                                    .scale = numbers,
                                    .shift = numbers + info->C,
                                    .input_text = input,
                                    .metadata = metadata,
                                    .n_metadata = sizeof metadata / sizeof *metadata};
    return bpt_onnx_create(&source, onnx);
}

bpt_status bpt_onnx_file_create(const bpt_onnx_origin *origin, bpt_onnx **onnx) {
    bpt_json_writer lists[3] = {0};
    float *numbers;
    BPT_TRY(BPT_NEW("normalisation", 2 * (size_t)origin->model->input.c, &numbers));
    const bpt_status status = create(origin, numbers, lists, onnx);
    for (int i = 0; i < 3; i++) bpt_json_free(&lists[i]);
    bpt_free(numbers);
    return status;
}

bpt_status bpt_onnx_file_write(const bpt_onnx *onnx, const char *path) {
    size_t n;
    const bpt_bytes *parts = bpt_onnx_parts(onnx, &n);
    BPT_TRY(bpt_onnx_file_try(path)); /* --predictions may have a file there, by another name */
    return bpt_interrupt_write_parts(path, parts, n);
}
