#include "base/checksum.h"
#include "inner/models/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static size_t count_parameters(const bpt_model *model, size_t first, size_t n) {
    size_t count = 0;
    for (const bpt_segment *s = &model->segments.items[first]; n-- > 0; s++)
        if (s->role.running == 0.0f) count += s->count;
    return count;
}

size_t bpt_model_parameters(const bpt_model *model) {
    return count_parameters(model, 0, model->segments.n);
}

size_t bpt_model_running_statistics(const bpt_model *model) {
    return model->segments.n_elements - bpt_model_parameters(model);
}

uint32_t bpt_model_least_batch(const bpt_model *model, const bpt_layer **layer) {
    *layer = NULL;
    for (size_t i = model->n_frozen; i < model->n_layers; i++) {
        const bpt_layer *l = &model->layers[i];
        if (l->kind != &bpt_layer_batchnorm || l->out.h * l->out.w > 1) continue;
        *layer = l;
        return 2;
    }
    return 1;
}

static uint64_t forward_flops(const bpt_layer *l) {
    return l->kind->forward_flops(l);
}

static uint64_t all_forward_flops(const bpt_model *model) {
    uint64_t flops = 0;
    for (size_t i = 0; i < model->n_layers; i++) flops += forward_flops(&model->layers[i]);
    return flops;
}

uint64_t bpt_model_training_flops(const bpt_model *model) {
    uint64_t flops = 0;
    for (size_t i = 0; i < model->n_layers; i++)
        flops += (i < model->n_frozen ? 1 : 3) * forward_flops(&model->layers[i]);
    return flops;
}

/* ---- the table ---- */

/* Of one row, as text. */
typedef struct {
    const char *name, *kind;
    char output[72], parameters[24], flops[32];
} row;

/* Of the columns, in characters. */
typedef struct {
    int name, kind, output, parameters, flops;
} widths;

static row make_row(const char *name, const char *kind, bpt_shape shape, size_t n_parameters,
                    uint64_t flops) {
    row r = {.name = name, .kind = kind};
    snprintf(r.output, sizeof r.output, "%" PRId64 "x%" PRId64 "x%" PRId64, shape.c, shape.h,
             shape.w);
    snprintf(r.parameters, sizeof r.parameters, "%zu", n_parameters);
    snprintf(r.flops, sizeof r.flops, "%.3f", (double)flops / 1e6);
    return r;
}

static const row heading = {"layer", "kind", "output", "parameters", "fwd MFLOP"};

/* Row 0 is the heading, 1 the input; then come the layers, and the total is the last. */
static row row_at(const bpt_model *model, size_t i) {
    if (i == 0) return heading;
    if (i == 1) return make_row("input", "", model->input, 0, 0);
    if (i == model->n_layers + 2)
        return make_row("total", "", model->layers[model->n_layers - 1].out,
                        bpt_model_parameters(model), all_forward_flops(model));
    const bpt_layer *l = &model->layers[i - 2];
    return make_row(l->name, l->kind->name, l->out,
                    count_parameters(model, l->first_segment, l->n_segments), forward_flops(l));
}

static void widen(int *width, const char *text) {
    const int length = (int)strlen(text);
    if (length > *width) *width = length;
}

void bpt_model_print(const bpt_model *model, FILE *out) {
    const size_t n_rows = model->n_layers + 3;
    widths w = {0};
    for (size_t i = 0; i < n_rows; i++) {
        const row r = row_at(model, i);
        widen(&w.name, r.name);
        widen(&w.kind, r.kind);
        widen(&w.output, r.output);
        widen(&w.parameters, r.parameters);
        widen(&w.flops, r.flops);
    }
    for (size_t i = 0; i < n_rows; i++) {
        const row r = row_at(model, i);
        fprintf(out, "%-*s  %-*s  %*s  %*s  %*s\n", w.name, r.name, w.kind, r.kind, w.output,
                r.output, w.parameters, r.parameters, w.flops, r.flops);
    }
    const size_t running = bpt_model_running_statistics(model);
    if (running)
        fprintf(out, "and %zu running statistics, which are not learned: no parameters\n", running);
}

/* The table does not show from where to where values go, and not all that fields say. */
static void write_settings(const bpt_layer *l, FILE *out) {
    fprintf(out, "%s of", l->name);
    for (size_t i = 0; i < l->n_inputs; i++) fprintf(out, " %zu", l->inputs[i]);
    fprintf(out, ": ");
    fwrite(l->config, 1, l->kind->said_bytes, out);
}

bpt_status bpt_model_identify(const bpt_model *model, uint64_t *identity) {
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);
    if (!memory) return bpt_fail(BPT_ENOMEM, "no memory for the table of layers");
    bpt_model_print(model, memory);
    for (size_t i = 0; i < model->n_layers; i++) write_settings(&model->layers[i], memory);
    const bool written = fclose(memory) == 0;
    if (written) *identity = bpt_checksum(text, size);
    free(text); /* the C library's own memory */
    return written ? BPT_OK : bpt_fail(BPT_ENOMEM, "no memory for the table of layers");
}
