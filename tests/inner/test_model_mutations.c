/* Model files with random damage: an error that names the file, or a model that is sound. */
#include "base/memory.h"
#include "base/random.h"
#include "inner/models/model.h"

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { MAX_SIZE = 4096, N_ROUNDS = 5000 };

static const char valid[] =
    "name: m\n"
    "input: [3, 32, 32]\n"
    "classes: 10\n"
    "layers:\n"
    "  - conv: {name: first, filters: 8, kernel: [3, 5], pad: 1}\n"
    "  - relu\n"
    "  - maxpool: {kernel: 2, stride: 2, pad: 0}\n"
    "  - conv: {filters: 16, kernel: 3, stride: [1, 2], bias: false}\n"
    "  - relu: {name: second}\n"
    "  - maxpool: {kernel: [3, 2]}\n"
    "  - fc: {outputs: 20}\n"
    "  - fc: {name: last, outputs: classes, bias: true}\n";

/* What is pasted in: words of the format and numbers at the edges. */
static const char *const pieces[] = {
    "0",
    "-1",
    "1",
    "2147483648",
    "9223372036854775807",
    "99999999999999999999",
    "1048576",
    "classes",
    "conv",
    "relu: {}",
    "[",
    "]",
    "{",
    "}",
    ":",
    ",",
    "- ",
    "\n",
    "  ",
    "\t",
    "name: a",
    "kernel: 1",
    "outputs: 1",
    "'",
    "\"",
    "#",
    "&a ",
    "*a",
    "%",
    "true",
    "1e3",
    "~",
    "!!int ",
    "|\n",
    "\xff",
    "---\n",
};

typedef struct {
    char bytes[MAX_SIZE];
    size_t size;
} text;

static void replace(text *t, size_t at, size_t n_removed, const char *piece, size_t n) {
    if (n_removed > t->size - at) n_removed = t->size - at;
    if (t->size - n_removed + n > MAX_SIZE) return;
    memmove(t->bytes + at + n, t->bytes + at + n_removed, t->size - at - n_removed);
    memcpy(t->bytes + at, piece, n);
    t->size += n - n_removed;
}

static void mutate(text *t, bpt_random *r) {
    const size_t at = bpt_random_below(r, (uint32_t)t->size + 1);
    const size_t length = bpt_random_below(r, 12);
    const uint32_t n_pieces = sizeof pieces / sizeof *pieces;
    const char *piece = pieces[bpt_random_below(r, n_pieces)];
    const char byte = (char)bpt_random_below(r, 256);
    char copy[64];
    switch (bpt_random_below(r, 5)) {
    case 0: /* one byte */
        replace(t, at, 1, &byte, 1);
        break;
    case 1: /* a piece more */
        replace(t, at, 0, piece, strlen(piece));
        break;
    case 2: /* a piece instead */
        replace(t, at, length, piece, strlen(piece));
        break;
    case 3: /* something less */
        replace(t, at, length, "", 0);
        break;
    default: /* a part of the file once more */
        if (t->size < sizeof copy) return;
        memcpy(copy, t->bytes + bpt_random_below(r, (uint32_t)(t->size - sizeof copy + 1)),
               sizeof copy);
        replace(t, at, 0, copy, sizeof copy);
    }
}

static size_t n_values(bpt_shape s) {
    return (size_t)s.c * (size_t)s.h * (size_t)s.w;
}

static void check_sound(const bpt_model *m) {
    bpt_shape shape = m->input;
    size_t n_segments = 0, n_elements = 0;
    assert_true(m->n_layers > 0 && m->classes > 0);
    for (size_t i = 0; i < m->n_layers; i++) {
        const bpt_layer *l = &m->layers[i];
        assert_memory_equal(&l->in, &shape, sizeof shape);
        assert_true(l->out.c > 0 && l->out.h > 0 && l->out.w > 0);
        assert_true(n_values(l->out) <= (size_t)1 << 30);
        assert_int_equal(l->first_segment, n_segments);
        n_segments += l->n_segments;
        shape = l->out;
    }
    assert_int_equal(n_values(shape), m->classes);
    assert_int_equal(m->segments.n, n_segments);
    for (size_t i = 0; i < n_segments; i++) {
        assert_int_equal(m->segments.items[i].offset, n_elements);
        n_elements += m->segments.items[i].count;
    }
    assert_int_equal(m->segments.n_elements, n_elements);
    assert_true(n_elements <= (size_t)1 << 30);
}

static void test_mutations(void **state) {
    (void)state;
    const uint64_t seed = 1, live = bpt_memory_live();
    size_t n_sound = 0;
    printf("seed %" PRIu64 "\n", seed);
    for (uint64_t i = 0; i < N_ROUNDS; i++) {
        bpt_random r = bpt_random_stream(seed, BPT_PURPOSE_TEST, i);
        text t = {.size = sizeof valid - 1};
        memcpy(t.bytes, valid, t.size);
        for (uint32_t n = bpt_random_below(&r, 6); n > 0; n--) mutate(&t, &r);
        bpt_model *m = NULL;
        const bpt_status status = bpt_model_parse("m.yaml", t.bytes, t.size, NULL, &m);
        if (status == BPT_OK) {
            check_sound(m);
            (void)bpt_model_training_flops(m);
            n_sound++;
        } else if (status != BPT_EUSAGE || m ||
                   strncmp(bpt_error_last()->text, "m.yaml:", 7) != 0 ||
                   !bpt_error_last()->hint[0]) {
            fail_msg("round %" PRIu64 ": %s: %s\n%.*s", i, bpt_status_name(status),
                     bpt_error_last()->text, (int)t.size, t.bytes);
        }
        bpt_model_free(m);
    }
    assert_int_equal(bpt_memory_live(), live);
    printf("%zu of %d still a model\n", n_sound, N_ROUNDS);
    assert_true(n_sound > N_ROUNDS / 10 && n_sound < N_ROUNDS);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_mutations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
