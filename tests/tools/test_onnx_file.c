/* What bpt-eval --onnx says of the images that a network takes. */
#include "base/memory.h"
#include "tests/inner/onnx_message.h"
#include "tests/storage/made_dataset.h"
#include "tools/eval/onnx_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { H = 6, W = 5, COUNT = 20 };

#define ok(expression) assert_int_equal(expression, BPT_OK)

/* @return the file, free() */
static uint8_t *join(const bpt_onnx *onnx, size_t *size) {
    size_t n;
    const bpt_bytes *parts = bpt_onnx_parts(onnx, &n);
    *size = 0;
    for (size_t i = 0; i < n; i++) *size += parts[i].size;
    uint8_t *file = malloc(*size), *at = file;
    assert_non_null(file);
    for (size_t i = 0; i < n; at += parts[i++].size) memcpy(at, parts[i].data, parts[i].size);
    return file;
}

static void check_text(const bpt_onnx *onnx, const char *expected) {
    size_t size;
    uint8_t *file = join(onnx, &size);
    onnx_model *m = onnx_read(file, size);
    assert_string_equal(m->input.text, expected);
    onnx_free(m);
    free(file);
}

/* @param expected of a network that has learnt from images of so many channels */
static void check_channels(uint32_t C, const char *expected) {
    const bpt_writer_options o = made_options("train", C, H, W);
    const made_place place = made_place_create();
    bpt_onnx_origin origin = {.weights_path = "w", .data = "d"};
    char text[128];
    bpt_dataset *dataset;
    bpt_model *model;
    bpt_onnx *onnx;
    float *weights;
    const int length = snprintf(
        text, sizeof text,
        "{name: t, input: [%u, %d, %d], classes: 3, layers: [fc: {outputs: classes}]}", C, H, W);
    ok(made_split(place.dataset, &o, 1, COUNT));
    ok(bpt_dataset_open(place.dataset, &dataset));
    ok(bpt_dataset_find(dataset, "train", &origin.split));
    ok(bpt_model_parse("t", text, (size_t)length, NULL, &model));
    ok(BPT_NEW("weights", model->segments.n_elements, &weights));
    origin.model = model, origin.weights = weights, origin.dataset = dataset;
    ok(bpt_onnx_file_create(&origin, &onnx));
    check_text(onnx, expected);
    bpt_onnx_free(onnx);
    bpt_free(weights);
    bpt_model_free(model);
    bpt_dataset_close(dataset);
    made_place_remove(&place);
}

/* Caffe's databases have planes of any number, and three alone are colours. */
static void test_channels(void **state) {
    (void)state;
    check_channels(1, "pixels from 0 to 255, grey, of images of 6 x 5 (height x width)");
    check_channels(3,
                   "pixels from 0 to 255, channels red, green, blue, of images of 6 x 5 "
                   "(height x width)");
    check_channels(4, "pixels from 0 to 255, 4 channels, of images of 6 x 5 (height x width)");
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_channels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
