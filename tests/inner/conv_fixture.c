#include "tests/inner/conv_fixture.h"

#include "inner/network/network_private.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

bpt_conv_problem conv_square(int64_t n, int64_t c, int64_t k, int64_t side) {
    return (bpt_conv_problem){.n = n,
                              .c = c,
                              .h = side,
                              .w = side,
                              .k = k,
                              .p = side,
                              .q = side,
                              .r = 3,
                              .s = 3,
                              .stride = {1, 1},
                              .pad = {1, 1},
                              .dilation = {1, 1},
                              .groups = 1,
                              .type = BPT_F32};
}

bool conv_has_avx512(void) {
    return bpt_cpu_bf16() != BPT_BF16_NONE;
}

bool conv_is_step(bpt_task_info info) {
    static const char *const kinds[] = {"forward", "backward data", "backward weights"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(info.kind, kinds[i]) == 0) return true;
    return false;
}

size_t conv_tasks(const net_fixture *f, const char *label, const char *kind) {
    const bpt_builder *b = &f->net->builder;
    size_t n = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_task_info info = b->tasks[i].info;
        n += strcmp(info.label, label) == 0 && strcmp(info.kind, kind) == 0;
    }
    return n;
}

bool conv_is_of_products(const net_fixture *f, const char *label) {
    const bpt_builder *b = &f->net->builder;
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_step_task *task = &b->tasks[i];
        if (!conv_is_step(task->info) || strcmp(task->info.label, label) != 0) continue;
        if (strncmp(bpt_kernel_implementation(task->arg), "brg", 3) == 0) return true;
    }
    return false;
}

void conv_check_algorithm(const net_fixture *f, const char *label, bool winograd) {
    const bpt_builder *b = &f->net->builder;
    size_t n = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_step_task *task = &b->tasks[i];
        if (!conv_is_step(task->info) || strcmp(task->info.label, label) != 0) continue;
        const char *name = bpt_kernel_implementation(task->arg);
        if ((strstr(name, "wino") != NULL) != winograd)
            fail_msg("%s: %s of %s is %s", f->model->name, task->info.kind, label, name);
        n++;
    }
    assert_true(n >= 3 * b->n_tiles);
    for (size_t i = 0; i < b->n_cuts; i++)
        if (strcmp(b->cuts[i].layer->name, label) == 0)
            assert_int_equal(b->cuts[i].problem.winograd, winograd);
}

void conv_check_gradient(const net_fixture *f, double absolute, double relative) {
    const float denominator = (float)f->batch;
    double *ref = ref_zeros(f->n_weights);
    bpt_batch_result result;
    ref_network_f32(f->model, f->batch, f->pixels, f->labels, denominator, f->weights, NULL, ref,
                    NULL);
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, denominator, &result));
    float *gradient = net_vector(f, BPT_VECTOR_GRADIENTS);
    for (size_t i = 0; i < f->n_weights; i++)
        if (!(fabs((double)gradient[i] - ref[i]) <= absolute + relative * fabs(ref[i])))
            fail_msg("%s, %d channels, %d samples: gradient %zu is %.9g, not %.9g", f->model->name,
                     (int)f->model->input.c, (int)f->batch, i, (double)gradient[i], ref[i]);
    free(gradient);
    free(ref);
}
