/* The models that come with bpt have as many parameters as those who published them count.
 *
 * ctest: cpu */
#include "inner/models/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

typedef struct {
    const char *name;
    int64_t channels, size, classes; /* of the published model: its own input */
    size_t parameters;
} published;

/* Where the counts are from:
 *   lenet: Caffe's MNIST example.  alexnet, vgg16, resnet18, resnet50: torchvision.
 *   resnet20, resnet56: He et al. 2015 table 6, 0.27 M and 0.85 M; to the unit the sum over layers.
 *   googlenet: Caffe's bvlc_googlenet less its side classifiers.
 *   mobilenet: Keras, trainable.  vgg-small: bpt's own, the sum over its layers. */
static const published models[] = {
    {"lenet", 1, 28, 10, 431080},         {"vgg-small", 3, 32, 10, 3838282},
    {"alexnet", 3, 224, 1000, 61100840},  {"vgg16", 3, 224, 1000, 138357544},
    {"resnet20", 3, 32, 10, 269722},      {"resnet56", 3, 32, 10, 853018},
    {"resnet18", 3, 224, 1000, 11689512}, {"resnet50", 3, 224, 1000, 25557032},
    {"googlenet", 3, 224, 1000, 6998552}, {"mobilenet", 3, 224, 1000, 4231976},
};

static void test_parameters(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const published *p = &models[i];
        bpt_model *m;
        assert_int_equal(bpt_model_load(p->name, NULL, &m), BPT_OK);
        if (bpt_model_parameters(m) != p->parameters)
            fail_msg("%s has %zu parameters, not %zu", p->name, bpt_model_parameters(m),
                     p->parameters);
        assert_int_equal(m->input.c, p->channels);
        assert_int_equal(m->input.h, p->size);
        assert_int_equal(m->input.w, p->size);
        assert_int_equal(m->classes, p->classes);
        bpt_model_free(m);
    }
}

/* Every model takes other images and classes than its own. */
static void test_override(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        const bpt_model_override override = {.input = {1, 96, 80}, .classes = 7};
        bpt_model *m;
        assert_int_equal(bpt_model_load(models[i].name, &override, &m), BPT_OK);
        assert_int_equal(m->layers[m->n_layers - 1].out.c, 7);
        bpt_model_free(m);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parameters),
        cmocka_unit_test(test_override),
    };
    return cmocka_run_group_tests_name("built_in_models", tests, NULL, NULL);
}
