#include "inner/model.h"

#include <inttypes.h>

uint64_t bpt_model_training_flops(const bpt_model *model) {
    uint64_t forward = 0;
    for (size_t i = 0; i < model->n_layers; i++)
        forward += model->layers[i].kind->forward_flops(&model->layers[i]);
    return 3 * forward;
}

static void print_row(FILE *out, const char *name, const char *kind, bpt_shape shape,
                      size_t n_weights, uint64_t flops) {
    char text[72];
    snprintf(text, sizeof text, "%" PRId64 "x%" PRId64 "x%" PRId64, shape.c, shape.h, shape.w);
    fprintf(out, "%-16s %-8s %14s %12zu %12.3f\n", name, kind, text, n_weights,
            (double)flops / 1e6);
}

void bpt_model_print(const bpt_model *model, FILE *out) {
    fprintf(out, "%-16s %-8s %14s %12s %12s\n", "layer", "kind", "output", "weights", "fwd MFLOP");
    print_row(out, "input", "", model->input, 0, 0);
    for (size_t i = 0; i < model->n_layers; i++) {
        const bpt_layer *l = &model->layers[i];
        size_t n_weights = 0;
        for (size_t s = 0; s < l->n_segments; s++)
            n_weights += model->segments.items[l->first_segment + s].count;
        print_row(out, l->name, l->kind->name, l->out, n_weights, l->kind->forward_flops(l));
    }
    print_row(out, "total", "", (bpt_shape){model->classes, 1, 1}, model->segments.n_elements,
              bpt_model_training_flops(model) / 3);
}
