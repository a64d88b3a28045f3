/* Computes the ONNX file of bpt-eval by plain loops (tests/inner/onnx_run.h), with the pixels of a
 * dataset as they are:
 *
 *   run_onnx FILE DATASET SPLIT [H W]    a line of JSON for each image: the probability of each
 * class run_onnx FILE                        one: what the file says of itself
 *
 * Ends with 1 where something fails. */
#include "base/file.h"
#include "base/json.h"
#include "base/memory.h"
#include "storage/loader/loader.h"
#include "tests/inner/onnx_run.h"

#include <stdio.h>
#include <stdlib.h>

/* Ends the program unless all went well. */
static void want(bpt_status status) {
    if (status == BPT_OK) return;
    fprintf(stderr, "run_onnx: %s\n", bpt_error_last()->text);
    exit(1);
}

static void print(bpt_json_writer *w) {
    const char *text;
    size_t length;
    want(bpt_json_end_text(w, &text, &length));
    puts(text);
    bpt_json_reset(w);
}

static void tell(const onnx_model *m, bpt_json_writer *w) {
    bpt_json_open_object(w, NULL);
    bpt_json_put_text(w, "producer", m->producer);
    bpt_json_put_text(w, "version", m->version);
    bpt_json_put_text(w, "input_text", m->input.text);
    bpt_json_open_array(w, "input");
    for (int i = 0; i < m->input.n_dims; i++) bpt_json_put_i64(w, NULL, m->input.dims[i]);
    bpt_json_close_array(w);
    bpt_json_open_object(w, "metadata");
    for (int i = 0; i < m->n_entries; i++)
        bpt_json_put_text(w, m->entries[i].key, m->entries[i].value);
    bpt_json_close_object(w);
    bpt_json_close_object(w);
    print(w);
}

static void print_batch(const onnx_model *m, const bpt_images *images, bpt_json_writer *w) {
    const int64_t *dims = m->input.dims, classes = m->output.dims[1];
    const size_t n_pixels = (size_t)(images->n * dims[1] * dims[2] * dims[3]);
    float *pixels = malloc(n_pixels * sizeof *pixels);
    if (!pixels) exit(1);
    for (size_t i = 0; i < n_pixels; i++) pixels[i] = (float)images->pixels[i];
    double *p = onnx_run(m, images->n, pixels);
    for (uint32_t i = 0; i < images->n; i++) {
        bpt_json_open_array(w, NULL);
        for (int64_t k = 0; k < classes; k++) bpt_json_put_real(w, NULL, p[i * classes + k]);
        bpt_json_close_array(w);
        print(w);
    }
    free(p);
    free(pixels);
}

static void run(const onnx_model *m, bpt_dataset *dataset, const char *split, bpt_json_writer *w) {
    enum { BATCH = 50 };
    const bpt_split *s = NULL;
    bpt_loader_options options = BPT_LOADER_OPTIONS_INIT;
    bpt_loader *loader;
    options.batch = BATCH;
    options.as_images = true;
    want(bpt_dataset_find(dataset, split, &s));
    want(bpt_loader_create(dataset, s, &options, &loader));
    for (uint32_t first = 0; first < s->count; first += BATCH) {
        uint32_t indices[BATCH], n = 0;
        bpt_batch batch;
        for (; n < BATCH && first + n < s->count; n++) indices[n] = first + n;
        want(bpt_loader_request(loader, indices, NULL, n));
        want(bpt_loader_next(loader, &batch));
        bpt_images images = *(const bpt_images *)batch.input;
        images.n = n;
        print_batch(m, &images, w);
        bpt_loader_release(loader, &batch);
    }
    bpt_loader_destroy(loader);
}

int main(int argc, char **argv) {
    bpt_json_writer w = {0};
    bpt_dataset *dataset;
    char *file;
    size_t size;
    if (argc != 2 && argc != 4 && argc != 6) return 2;
    want(bpt_file_read(argv[1], SIZE_MAX / 2, &file, &size));
    onnx_model *m = onnx_read((const uint8_t *)file, size);
    if (argc == 2) {
        tell(m, &w);
    } else {
        want(bpt_dataset_open(argv[2], &dataset));
        if (argc == 6)
            want(bpt_dataset_bring_to(dataset, (uint32_t)atoi(argv[4]), (uint32_t)atoi(argv[5])));
        run(m, dataset, argv[3], &w);
        bpt_dataset_close(dataset);
    }
    onnx_free(m);
    bpt_free(file);
    bpt_json_free(&w);
    return 0;
}
