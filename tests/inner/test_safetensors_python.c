/* A written file read by an independent reader: read_safetensors.py, the format's rules in twenty
 * lines. Skipped where there is no python3. */
#include "inner/weights/safetensors.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static void test_read_by_python(void **state) {
    (void)state;
    char folder[] = "/tmp/bpt-test-safetensors-XXXXXX", path[64], command[512], text[512] = "";
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/m.safetensors", folder);
    bpt_segments s = {0};
    assert_int_equal(bpt_segments_add(&s, "z.weight", (int64_t[]){1, 2, 1, 2}, 4,
                                      (bpt_segment_role){.fan_in = 4, .decays = true}),
                     BPT_OK);
    assert_int_equal(bpt_segments_add(&s, "a.weight", (int64_t[]){2, 1}, 2,
                                      (bpt_segment_role){.fan_in = 1, .decays = true}),
                     BPT_OK);
    assert_int_equal(bpt_segments_add(&s, "a.bias", (int64_t[]){1}, 1,
                                      (bpt_segment_role){.fan_in = 0, .decays = false}),
                     BPT_OK);
    const float values[] = {0.5f, -1.25f, 3e38f, 1e-40f, 7, 8, -0.0f};
    const bpt_metadata metadata[] = {{"model", "a \"small\" one\\"}, {"epochs", "3"}};
    assert_int_equal(bpt_safetensors_write(path, &s, values, metadata, 2), BPT_OK);

    snprintf(command, sizeof command, "python3 '%s' '%s'", BPT_READ_SAFETENSORS, path);
    FILE *python = popen(command, "r");
    assert_non_null(python);
    const size_t n = fread(text, 1, sizeof text - 1, python);
    assert_int_equal(pclose(python), 0);
    text[n] = '\0';
    assert_string_equal(text,
                        "start 320\n"
                        "meta model a \"small\" one\\\n"
                        "meta epochs 3\n"
                        "z.weight F32 1x2x1x2 0.5 -1.25 3e+38 9.99995e-41\n"
                        "a.weight F32 2x1 7 8\n"
                        "a.bias F32 1 -0\n");
    bpt_segments_clear(&s);
    unlink(path);
    rmdir(folder);
}

int main(void) {
    if (system("python3 -c '' >/dev/null 2>&1") != 0) {
        puts("skipped: no python3");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_read_by_python)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
