/* Made-up batches: as images they are what they are as floats, to a byte's step. */
#include "base/memory.h"
#include "tools/synthetic.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { N = 40 };

static const float step = 1.0f / 32;

static bpt_model *load(void) {
    bpt_model *model;
    assert_int_equal(bpt_model_load("resnet20", NULL, &model), BPT_OK);
    return model;
}

static void test_both_kinds(void **state) {
    (void)state;
    bpt_model *model = load();
    const size_t C = (size_t)model->input.c, plane = (size_t)(model->input.h * model->input.w);
    bpt_synthetic floats, images;
    size_t n_clipped = 0;
    assert_int_equal(bpt_synthetic_make(model, N, 3, false, &floats), BPT_OK);
    assert_int_equal(bpt_synthetic_make(model, N, 3, true, &images), BPT_OK);
    assert_ptr_equal(floats.input, floats.pixels);
    assert_ptr_equal(images.input, &images.images);
    assert_null(images.pixels);
    assert_null(images.images.moves);
    assert_int_equal(images.images.n, N);
    assert_memory_equal(images.labels, floats.labels, N * sizeof *floats.labels);
    for (size_t i = 0; i < N * C * plane; i++) {
        const size_t c = i / plane % C;
        const uint8_t pixel = images.images.pixels[i];
        const float x = (float)pixel * images.images.scale[c] + images.images.shift[c];
        n_clipped += pixel == 0 || pixel == UINT8_MAX;
        if (pixel > 0 && pixel < UINT8_MAX)
            assert_true(fabsf(x - floats.pixels[i]) <= 0.501f * step);
    }
    assert_in_range(n_clipped, 1, N * C * plane / 1000); /* beyond four deviations: 6e-5 */
    bpt_synthetic_release(&images);
    bpt_synthetic_release(&floats);
    bpt_model_free(model);
    assert_int_equal(bpt_memory_live(), 0);
}

static void test_without_memory(void **state) {
    (void)state;
    bpt_model *model = load();
    const size_t live = bpt_memory_live();
    for (int images = 0; images < 2; images++) {
        bpt_synthetic batch;
        bpt_status status = BPT_ENOMEM;
        for (int64_t n = 0; status != BPT_OK; n++) {
            bpt_memory_fail_at(n);
            status = bpt_synthetic_make(model, 2, 1, images, &batch);
            bpt_memory_fail_at(-1);
            assert_true(status == BPT_OK || status == BPT_ENOMEM);
            bpt_synthetic_release(&batch);
            assert_int_equal(bpt_memory_live(), live);
        }
    }
    bpt_model_free(model);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_both_kinds),
        cmocka_unit_test(test_without_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
