/* ONNX files: read by the numbers of their format and computed by plain loops as ONNX defines its
 * operators, they say what the network itself says in an evaluation, for every kind of layer and
 * every built-in model; and what cannot be such a file is refused.
 *
 * ctest: cpu TIMEOUT=240 */
#include "base/memory.h"
#include "inner/onnx/onnx.h"
#include "tests/inner/gradient_cases.h"
#include "tests/inner/onnx_run.h"

#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20270, MAX_CHANNELS = 64 };

static const double RTOL = 1e-5; /* of a probability */

static float scale[MAX_CHANNELS], shift[MAX_CHANNELS];

static const bpt_metadata metadata[] = {{"classes", "[\"a\", \"b\"]"},
                                        {"b\xC3\xA4r", "B\xC3\xA4r \xFF"}};

static bpt_onnx_source source_of(const bpt_model *model, const float *weights) {
    for (int64_t c = 0; c < MAX_CHANNELS; c++) {
        scale[c] = 0.9f + 0.01f * (float)(c % 20);
        shift[c] = 0.1f - 0.02f * (float)(c % 9);
    }
    return (bpt_onnx_source){.model = model,
                             .weights = weights,
                             .scale = scale,
                             .shift = shift,
                             .input_text = "an image",
                             .metadata = metadata,
                             .n_metadata = 2};
}

/* @return the file, shape [*size]; free() */
static uint8_t *make_file(const bpt_onnx_source *source, size_t *size) {
    bpt_onnx *onnx;
    size_t n, at = 0;
    net_assert_ok(bpt_onnx_create(source, &onnx));
    const bpt_bytes *parts = bpt_onnx_parts(onnx, &n);
    *size = 0;
    for (size_t i = 0; i < n; i++) *size += parts[i].size;
    uint8_t *file = malloc(*size);
    assert_non_null(file);
    for (size_t i = 0; i < n; at += parts[i++].size)
        memcpy(file + at, parts[i].data, parts[i].size);
    bpt_onnx_free(onnx);
    return file;
}

/* What the network says of every class, shape [batch, classes]; free(). */
static double *ask_network(const net_fixture *f, bpt_network *net, const float *seen) {
    const int64_t classes = f->model->classes;
    double *p = calloc((size_t)(f->batch * classes), sizeof *p);
    bpt_answer *answers = calloc((size_t)f->batch, sizeof *answers);
    bpt_batch_result result;
    assert_true(p && answers);
    bpt_network_tell_answers(net, answers);
    for (int32_t k = 0; k < classes; k++) {
        for (int64_t i = 0; i < f->batch; i++) f->labels[i] = k;
        net_assert_ok(bpt_network_evaluate(net, seen, f->labels, &result));
        for (int64_t i = 0; i < f->batch; i++) p[i * classes + k] = answers[i].label_probability;
    }
    bpt_network_tell_answers(net, NULL);
    free(answers);
    return p;
}

/* @return the pixels as the network sees them, shape [n_pixels]; free() */
static float *look_at(const net_fixture *f) {
    const int64_t pixels = f->model->input.h * f->model->input.w;
    float *seen = net_floats(f->n_pixels);
    for (size_t i = 0; i < f->n_pixels; i++) {
        const int64_t c = (int64_t)i / pixels % f->model->input.c;
        seen[i] = f->pixels[i] * scale[c] + shift[c];
    }
    return seen;
}

static void check_names(const onnx_model *m) {
    for (size_t i = 0; i < m->n_nodes; i++)
        for (size_t j = 0; j < i; j++) assert_string_not_equal(m->nodes[i].name, m->nodes[j].name);
}

/* @return the largest error of a probability, relative to it */
static double compare(const net_fixture *f, bpt_network *net) {
    const bpt_onnx_source source = source_of(f->model, f->weights);
    size_t size;
    uint8_t *file = make_file(&source, &size);
    onnx_model *onnx = onnx_read(file, size);
    check_names(onnx);
    double *theirs = onnx_run(onnx, f->batch, f->pixels), worst = 0.0;
    float *seen = look_at(f);
    double *ours = ask_network(f, net, seen);
    for (int64_t i = 0; i < f->batch * f->model->classes; i++) {
        assert_true(theirs[i] > 0.0 && theirs[i] < 1.0);
        worst = fmax(worst, fabs(ours[i] - theirs[i]) / theirs[i]);
    }
    free(ours);
    free(seen);
    free(theirs);
    onnx_free(onnx);
    free(file);
    return worst;
}

/* ---- kinds of layers ---- */

static void test_case(void **state) {
    const gradient_case *c = *state;
    net_fixture f = gradient_open(c, 3);
    const double error = compare(&f, f.net);
    if (!(error <= RTOL)) fail_msg("%s: off by %.2g", c->name, error);
    net_close(&f);
}

/* A new kind needs a form in ONNX, and a case above. */
static void test_every_kind_has_a_case(void **state) {
    size_t n;
    const bpt_layer_kind *const *kinds = bpt_layer_kinds(&n);
    bool *seen = calloc(n, sizeof *seen);
    (void)state;
    for (size_t i = 0; i < gradient_n_cases; i++) {
        bpt_model *m;
        if (!gradient_cases[i].text) continue;
        m = net_parse(gradient_cases[i].text);
        for (size_t l = 0; l < m->n_layers; l++)
            for (size_t k = 0; k < n; k++) seen[k] |= kinds[k] == m->layers[l].kind;
        bpt_model_free(m);
    }
    for (size_t k = 0; k < n; k++)
        if (!seen[k]) fail_msg("no model of the tests has a layer %s", kinds[k]->name);
    free(seen);
}

/* A layer of a kind that nobody has written a form for. */
static void test_a_kind_without_a_form(void **state) {
    (void)state;
    bpt_model *m = net_parse(net_tiny);
    const bpt_layer_kind swirl = {.name = "swirl"}, *const kind = m->layers[1].kind;
    const float weights[1] = {0.0f};
    bpt_onnx *onnx = NULL;
    m->layers[1].kind = &swirl;
    const bpt_onnx_source source = source_of(m, weights);
    assert_int_equal(bpt_onnx_create(&source, &onnx), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text,
                        "test.yaml:1: layer relu1: there is no ONNX form of swirl");
    assert_null(onnx);
    m->layers[1].kind = kind;
    bpt_model_free(m);
}

/* Rank 2 and rank 4 meet: what fc puts out is an image of one pixel for those who take images. And
 * what normalises nothing. */
static void test_forms(void **state) {
    static const char *const models[] = {
        "fc: {name: a, outputs: 6}, lrn: {size: 3, alpha: 1}, fc: {name: b, input: a, outputs: 6}, "
        "add: {input: [a, b, lrn1]}, conv: {filters: classes, kernel: 1}",
        "conv: {name: c, filters: 6, kernel: [5, 4]}, fc: {name: a, input: input, outputs: 6}, "
        "concat: {name: d, input: [a, c]}, add: {name: e, input: [a, c]}, "
        "pad_channels: {name: f, input: a, channels: 9}, concat: {input: [d, e, f, a]}, dropout, "
        "batchnorm, fc: {outputs: classes}, dropout: {name: last}",
        "fc: {name: a, outputs: 6}, concat: {name: b, input: [a, a]}, batchnorm, relu, "
        "pad_channels: {name: c, input: a, channels: 12}, maxpool: {name: d, input: a, kernel: 1}, "
        "avgpool: {kernel: 1}, global_avgpool, pad_channels: {name: e, channels: 12}, "
        "add: {input: [relu1, c, e]}, fc: {name: probabilities, outputs: classes}, relu",
        "lrn: {name: a, alpha: 0, k: 3}, lrn: {name: b, input: input, alpha: 1, beta: 0}, lrn: "
        "{name: c, input: input, alpha: 1e-300, beta: 1e-300}, concat: {input: [a, b, c]}, "
        "fc: {outputs: classes}"};
    (void)state;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char text[1024];
        snprintf(text, sizeof text, "{name: t, input: [2, 5, 4], classes: 5, layers: [%s]}",
                 models[i]);
        net_fixture f = net_open(text, 3, (net_options){.n_workers = 1, .seed = SEED + i});
        const double error = compare(&f, f.net);
        if (!(error <= RTOL)) fail_msg("model %zu: off by %.2g", i, error);
        net_close(&f);
    }
}

/* ---- built-in models ---- */

/* Of deep networks of random weights rounding errors grow. */
typedef struct {
    const char *name;
    int64_t size;
    double rtol;
    bool large; /* sanitizers look for other faults, and are five times as slow */
} built_in;

static const built_in networks[] = {
    {"alexnet.yaml", 67, 1e-5, true},    {"googlenet.yaml", 64, 1e-5, false},
    {"lenet.yaml", 28, 1e-5, false},     {"mobilenet.yaml", 32, 1e-5, false},
    {"resnet18.yaml", 32, 1e-5, false},  {"resnet20.yaml", 16, 1e-5, false},
    {"resnet50.yaml", 32, 1e-4, true},   {"resnet56.yaml", 16, 1e-4, false},
    {"vgg-small.yaml", 32, 1e-5, false}, {"vgg16.yaml", 32, 1e-5, true},
};

static void check_built_in(const built_in *b) {
    const bpt_model_override override = {.input = {3, b->size, b->size}, .classes = 10};
    char name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(b->name, "."), b->name);
    net_fixture f =
        net_open_built_in(name, &override, 2, (net_options){.n_workers = 2, .seed = SEED}, NULL);
    const double error = compare(&f, f.net);
    print_message("%s: off by %.2g\n", name, error);
    if (!(error <= b->rtol)) fail_msg("%s: off by %.2g", name, error);
    net_close(&f);
}

static void test_built_in_models(void **state) {
    const size_t n = sizeof networks / sizeof *networks;
    size_t n_found = 0;
    DIR *folder = opendir(BPT_MODELS);
    assert_non_null(folder);
    (void)state;
    for (const struct dirent *entry; (entry = readdir(folder));) {
        size_t i = 0;
        if (!strstr(entry->d_name, ".yaml")) continue;
        while (i < n && strcmp(networks[i].name, entry->d_name) != 0) i++;
        if (i == n) fail_msg("%s is not tested", entry->d_name);
        n_found++;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
        if (networks[i].large) continue;
#endif
        check_built_in(&networks[i]);
    }
    closedir(folder);
    assert_int_equal(n_found, n);
}

/* ---- the file ---- */

static void test_what_the_file_says(void **state) {
    net_fixture f = net_open(net_mixed, 2, (net_options){.n_workers = 1, .seed = SEED});
    const bpt_onnx_source source = source_of(f.model, f.weights);
    size_t size;
    uint8_t *file = make_file(&source, &size);
    onnx_model *m = onnx_read(file, size);
    (void)state;
    assert_memory_equal(file, bpt_onnx_head, BPT_ONNX_HEAD_BYTES);
    assert_int_equal(m->format, 7);
    assert_int_equal(m->operators, 13);
    assert_string_equal(m->producer, "bpt");
    assert_string_equal(m->version, BPT_VERSION);
    assert_string_equal(m->graph, "t");
    assert_string_equal(m->input.name, "input");
    assert_string_equal(m->input.text, "an image");
    assert_string_equal(m->input.dim_name, "N");
    assert_true(m->input.type == 1 && m->input.n_dims == 4 && m->input.dims[0] == -1 &&
                m->input.dims[1] == 3 && m->input.dims[2] == 9 && m->input.dims[3] == 11);
    assert_string_equal(m->output.name, "probabilities");
    assert_string_equal(m->output.dim_name, "N");
    assert_true(m->output.type == 1 && m->output.n_dims == 2 && m->output.dims[0] == -1 &&
                m->output.dims[1] == 7);
    assert_int_equal(m->n_entries, 2);
    assert_string_equal(m->entries[0].key, "classes");
    assert_string_equal(m->entries[0].value, "[\"a\", \"b\"]");
    assert_string_equal(m->entries[1].key, "b\xC3\xA4r");
    assert_string_equal(m->entries[1].value, "B??r ?"); /* the whole is no UTF-8 */
    onnx_free(m);
    free(file);
    net_close(&f);
}

/* Of a model that is a little too large, and of one that is not; there are no such weights. */
static void test_two_gigabytes(void **state) {
    static const char format[] =
        "{name: t, input: [16384, 1, 1], classes: 2, layers: [fc: {outputs: %d, bias: false}, "
        "fc: {outputs: classes}]}";
    static const struct {
        int outputs; /* 65,536 bytes each, and 8 of the second layer */
        bpt_status status;
    } cases[] = {{32761, BPT_OK}, {32763, BPT_EUSAGE}, {40000, BPT_EUSAGE}};
    static const float weights[1] = {0.0f};
    static float zeros[16384];
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char text[256];
        bpt_onnx *onnx = NULL;
        snprintf(text, sizeof text, format, cases[i].outputs);
        bpt_model *m = net_parse(text);
        bpt_onnx_source source = source_of(m, weights);
        source.scale = source.shift = zeros;
        assert_int_equal(bpt_onnx_create(&source, &onnx), cases[i].status);
        if (cases[i].status != BPT_OK)
            assert_non_null(strstr(bpt_error_last()->text, "2147483647 are the most"));
        bpt_onnx_free(onnx);
        bpt_model_free(m);
    }
}

static void test_out_of_memory(void **state) {
    (void)state;
    bpt_model *m = net_parse(net_mixed);
    float *weights = net_floats(m->segments.n_elements);
    const bpt_onnx_source source = source_of(m, weights);
    const uint64_t live = bpt_memory_live();
    bpt_status status = BPT_ENOMEM;
    int n = 0;
    for (; status != BPT_OK; n++) {
        bpt_onnx *onnx = NULL;
        bpt_memory_fail_at(n);
        status = bpt_onnx_create(&source, &onnx);
        bpt_memory_fail_at(-1);
        assert_true(status == BPT_OK || status == BPT_ENOMEM);
        assert_true((onnx != NULL) == (status == BPT_OK));
        bpt_onnx_free(onnx);
        assert_int_equal(bpt_memory_live(), live);
    }
    assert_true(n > 5);
    free(weights);
    bpt_model_free(m);
}

int main(void) {
    static const gradient_sort sorts[] = {{"as ONNX", test_case}};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_kind_has_a_case),
        cmocka_unit_test(test_a_kind_without_a_form),
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_built_in_models),
        cmocka_unit_test(test_what_the_file_says),
        cmocka_unit_test(test_two_gigabytes),
        cmocka_unit_test(test_out_of_memory),
    };
    print_message("seed %d\n", (int)SEED);
    const int of_cases = gradient_run("onnx_cases", sorts, 1);
    return cmocka_run_group_tests_name("onnx", tests, NULL, NULL) + of_cases;
}
