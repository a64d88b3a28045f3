/* Which layers a layer may name as its inputs, and how many. */
#include "inner/models/model.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

#define HEAD "name: t\ninput: [3, 9, 11]\nclasses: 7\nlayers:\n" /* layers start at line 5 */

static void check_error(const char *text, const char *message, const char *hint) {
    bpt_model *m = NULL;
    assert_int_equal(bpt_model_parse("t.yaml", text, strlen(text), NULL, &m), BPT_EUSAGE);
    assert_null(m);
    assert_string_equal(bpt_error_last()->text, message);
    if (hint) assert_string_equal(bpt_error_last()->hint, hint);
    assert_true(bpt_error_last()->hint[0] != '\0');
}

/* An input is the model's own or an earlier layer's. */
static void test_errors_of_inputs(void **state) {
    (void)state;
    check_error(HEAD "  - relu: {input: [conv1]}\n",
                "t.yaml:5: layer relu1: no layer before it is called \"conv1\"",
                "an input is the name of an earlier layer, or input for the model's own");
    check_error(HEAD "  - relu: {input: inptu}\n",
                "t.yaml:5: layer relu1: no layer before it is called \"inptu\"",
                "did you mean \"input\"?");
    check_error(HEAD "  - relu: {name: own, input: own}\n",
                "t.yaml:5: layer own: no layer before it is called \"own\"",
                "an input is the name of an earlier layer, or input for the model's own");
    check_error(HEAD "  - relu: {input: later}\n  - relu: {name: later}\n",
                "t.yaml:5: layer relu1: no layer before it is called \"later\"", NULL);
    check_error(HEAD "  - add: {input: [input, [input]]}\n",
                "t.yaml:5: an input must be one word or text", NULL);
    check_error(HEAD "  - relu: {input: {input: input}}\n",
                "t.yaml:5: an input must be one word or text", NULL);
    check_error(HEAD "  - add\n", "t.yaml:5: layer add1: input is missing",
                "name what it joins: \"- add: {input: [conv1, conv2]}\"");
    check_error(HEAD "  - relu\n  - fc: {outputs: classes, input: input}\n",
                "t.yaml:5: layer relu1: no layer takes its output, and it is not the last",
                "name it as the input of another layer, or leave it out");
}

/* @return an add of the model's own input, @p n times, in a model of one class; caller frees */
static char *add_of(int n) {
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    assert_non_null(out);
    fprintf(out, "name: t\ninput: [1, 2, 2]\nclasses: 1\nlayers:\n  - add: {input: [input");
    for (int i = 1; i < n; i++) fprintf(out, ", input");
    fprintf(out, "]}\n  - fc: {outputs: classes}\n");
    assert_int_equal(fclose(out), 0);
    return text;
}

static void test_number_of_inputs(void **state) {
    (void)state;
    char *most = add_of(64), *more = add_of(65), *one = add_of(1);
    bpt_model *m = NULL;
    assert_int_equal(bpt_model_parse("t.yaml", most, strlen(most), NULL, &m), BPT_OK);
    assert_int_equal(m->layers[0].n_inputs, 64);
    bpt_model_free(m);
    check_error(more, "t.yaml:5: layer add1: 65 inputs, more than 64",
                "join some of them in a layer before it");
    check_error(one, "t.yaml:5: layer add1: add takes two or more inputs",
                "name them: \"- add: {input: [conv1, conv2]}\"");
    free(one);
    free(more);
    free(most);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_errors_of_inputs),
        cmocka_unit_test(test_number_of_inputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
