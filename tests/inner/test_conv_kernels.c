/* Which kernels convolutions get: no layer may end in oneDNN's plain loops, whatever its channels
 * and the instruction set, and what it computes there is right. CMakeLists.txt runs this once for
 * each of several instruction sets, which oneDNN takes from ONEDNN_MAX_CPU_ISA.
 *
 * ctest: cpu TIMEOUT=60 */
#include "inner/network_private.h"
#include "tests/inner/net_fixture.h"
#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20271 };

static const int counts[] = {1, 3, 4, 6, 8, 12, 16, 20};
enum { N_COUNTS = sizeof counts / sizeof *counts };

/* Two convolutions: the first needs no gradient of its input, the second does. */
static net_fixture open_channels(int in, int between, int kernel, int64_t batch) {
    char text[256];
    snprintf(text, sizeof text,
             "{name: t, input: [%d, 9, 10], classes: 3, layers: ["
             "conv: {name: a, filters: %d, kernel: %d}, relu, "
             "conv: {name: b, filters: %d, kernel: 3, pad: 1}, fc: {outputs: classes}]}",
             in, between, kernel, between + 4);
    return net_open(text, batch, (net_options){.n_workers = 1, .seed = SEED});
}

static bool is_convolution(bpt_task_info info) {
    static const char *const kinds[] = {"forward", "backward data", "backward weights"};
    if (strcmp(info.label, "a") != 0 && strcmp(info.label, "b") != 0) return false;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(info.kind, kinds[i]) == 0) return true;
    return false;
}

static void check_kernels(const net_fixture *f) {
    const bpt_builder *b = &f->net->builder;
    size_t n = 0;
    for (size_t i = 0; i < b->n_tasks; i++) {
        const bpt_step_task *task = &b->tasks[i];
        if (!is_convolution(task->info)) continue;
        const char *name = bpt_kernel_implementation(task->arg);
        n++;
        if (strncmp(name, "ref", 3) == 0)
            fail_msg("%d channels: %s of %s is %s", (int)f->model->input.c, task->info.kind,
                     task->info.label, name);
    }
    assert_int_equal(n, 5 * b->n_tiles);
}

static void check_gradient(const net_fixture *f) {
    const float denominator = (float)f->batch;
    double *logits = ref_zeros((size_t)(f->batch * f->model->classes));
    double *ref = ref_zeros(f->n_weights);
    bpt_batch_result result;
    ref_network_f32(f->model, f->batch, f->pixels, f->labels, denominator, f->weights, logits, ref,
                    NULL);
    net_assert_ok(bpt_network_gradient(f->net, f->pixels, f->labels, denominator, &result));
    float *gradient = net_vector(f, BPT_VECTOR_GRADIENTS);
    for (size_t i = 0; i < f->n_weights; i++)
        if (!(fabs((double)gradient[i] - ref[i]) <= 4e-6 + 1e-3 * fabs(ref[i])))
            fail_msg("%d channels: gradient %zu is %.9g, not %.9g", (int)f->model->input.c, i,
                     (double)gradient[i], ref[i]);
    free(gradient);
    free(ref);
    free(logits);
}

static void check_channels(int in, int between, int kernel) {
    net_fixture f = open_channels(in, between, kernel, 5);
    check_kernels(&f);
    check_gradient(&f);
    net_close(&f);
}

static void test_channels_of_the_input(void **state) {
    (void)state;
    for (int i = 0; i < N_COUNTS; i++) {
        check_channels(counts[i], 20, 5);
        check_channels(counts[i], 16, 3);
    }
}

static void test_channels_between(void **state) {
    (void)state;
    for (int i = 0; i < N_COUNTS; i++) {
        check_channels(1, counts[i], 3);
        check_channels(3, counts[i], 1);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channels_of_the_input),
        cmocka_unit_test(test_channels_between),
    };
    print_message("seed %d\n", (int)SEED);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
