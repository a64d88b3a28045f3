#include "tests/inner/gradient_cases.h"

#include "tests/ref/ref_network.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { SEED = 20260, MAX_TESTS = 384, NAME_SIZE = 96 };

static const net_options options = {.n_workers = 2, .seed = SEED};

net_fixture gradient_open_typed(const gradient_case *c, int64_t batch, bpt_value_type type) {
    const bpt_model_override override = {.input = {c->channels, c->size, c->size}};
    net_options o = options;
    o.activations = type;
    if (c->text) return net_open(c->text, batch, o);
    return net_open_built_in(c->name, &override, batch, o, NULL);
}

net_fixture gradient_open(const gradient_case *c, int64_t batch) {
    return gradient_open_typed(c, batch, BPT_F32);
}

net_fixture gradient_open_small(const gradient_case *c, int64_t batch) {
    return net_open(c->small ? c->small : c->text, batch, options);
}

static bool has_weights(const bpt_model *m, size_t begin, size_t end) {
    for (size_t i = begin; i < end; i++)
        if (m->layers[i].n_segments > 0) return true;
    return false;
}

void gradient_each_first(const gradient_case *c, int64_t batch, bpt_value_type type,
                         void (*check)(net_fixture *f, size_t layer, bpt_value_type type)) {
    net_fixture f = gradient_open_typed(c, batch, type);
    size_t n = 0;
    for (size_t i = 0; i < f.model->n_layers; i++) {
        const bool may_be_first = has_weights(f.model, i, i + 1) && has_weights(f.model, 0, i);
        if (may_be_first && n++ % (c->large ? 4 : 1) == 0) check(&f, i, type);
    }
    net_close(&f);
}

/* ---- against double precision ---- */

static const double LENGTH_RTOL = 1e-5, VALUE_RTOL = 1e-4, LARGE = 0.1;

static double length(const double *x, size_t n) {
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += x[i] * x[i];
    return sqrt(sum);
}

static void check_segment(const bpt_segment *s, const float *gradient, const double *ref,
                          const double *terms) {
    const double large = LARGE * length(terms, s->count); /* of a whole segment */
    const double large_value = large / sqrt((double)s->count);
    double error2 = 0.0;
    for (size_t i = 0; i < s->count; i++) {
        const double value = (double)gradient[i], error = value - ref[i];
        error2 += error * error;
        if (!(fabs(error) <= VALUE_RTOL * fmax(fabs(ref[i]), large_value)))
            fail_msg("%s value %zu: the gradient is %.9g, not %.9g", s->name, i, value, ref[i]);
    }
    if (!(sqrt(error2) <= LENGTH_RTOL * fmax(length(ref, s->count), large)))
        fail_msg("%s: the gradient is off by %.2g of its length", s->name,
                 sqrt(error2) / length(ref, s->count));
}

void gradient_check(const net_fixture *f, const float *gradient, const double *ref,
                    const double *terms) {
    const bpt_segments *s = &f->model->segments;
    for (size_t i = 0; i < s->n; i++) {
        const size_t first = s->items[i].offset;
        check_segment(&s->items[i], gradient + first, ref + first, terms + first);
    }
}

/* ---- one test of each sort for each model ---- */

int gradient_run(const char *group, const gradient_sort *sorts, size_t n_sorts) {
    static char names[MAX_TESTS][NAME_SIZE];
    struct CMUnitTest tests[MAX_TESTS];
    size_t n = 0;
    print_message("seed %d\n", (int)SEED);
    assert_true(n_sorts * gradient_n_cases <= MAX_TESTS);
    for (size_t s = 0; s < n_sorts; s++)
        for (size_t i = 0; i < gradient_n_cases; i++, n++) {
            snprintf(names[n], NAME_SIZE, "%s: %s", sorts[s].name, gradient_cases[i].name);
            tests[n] = (struct CMUnitTest){.name = names[n],
                                           .test_func = sorts[s].run,
                                           .initial_state = (void *)&gradient_cases[i]};
        }
    /* cmocka_run_group_tests() wants an array of known size */
    return _cmocka_run_group_tests(group, tests, n, NULL, NULL);
}
