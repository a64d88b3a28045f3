#include "inner/model.h"

#include <inttypes.h>

static size_t count_parameters(const bpt_model *model, size_t first, size_t n) {
    size_t count = 0;
    for (const bpt_segment *s = &model->segments.items[first]; n-- > 0; s++)
        if (s->role.running == 0.0f) count += s->count;
    return count;
}

size_t bpt_model_parameters(const bpt_model *model) {
    return count_parameters(model, 0, model->segments.n);
}

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
        print_row(out, l->name, l->kind->name, l->out,
                  count_parameters(model, l->first_segment, l->n_segments),
                  l->kind->forward_flops(l));
    }
    print_row(out, "total", "", (bpt_shape){model->classes, 1, 1}, bpt_model_parameters(model),
              bpt_model_training_flops(model) / 3);
}
