/* Which of --force and --resume counts, where one is given in a file and the other by hand. */
#include "tests/tools/work_place.h"
#include "tools/train/options/force_or_resume.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

typedef struct {
    bpt_train_options options;
    bpt_option_set *set;
    const char *unused;
} choice;

/* @param file     what it says; NULL: there is none
 * @param words of the command line besides, up to NULL */
static choice choose(const char *file, const char *const *words) {
    char *argv[16] = {"bpt-train"};
    int argc = 1;
    choice c;
    bpt_option_request request;
    if (file) {
        put_file("given.yaml", file);
        argv[argc++] = "--config";
        argv[argc++] = "given.yaml";
    }
    while (*words) argv[argc++] = (char *)*words++;
    assert_int_equal(
        bpt_options_parse(&bpt_train_command, argc, argv, &c.options, &request, &c.set), BPT_OK);
    c.unused = bpt_force_or_resume(&c.options, c.set);
    return c;
}

/* @param unused by name; NULL: both count as they are given */
static void assert_unused(const char *file, const char *const *words, const char *unused) {
    choice c = choose(file, words);
    if (unused)
        assert_string_equal(c.unused, unused);
    else
        assert_null(c.unused);
    if (unused) assert_int_equal(c.options.force, strcmp(unused, "resume") == 0);
    if (unused) assert_int_equal(c.options.resume == NULL, strcmp(unused, "resume") == 0);
    if (!unused) assert_true(c.options.force && c.options.resume);
    bpt_option_set_free(c.set);
}

#define WORDS(...) ((const char *const[]){__VA_ARGS__, NULL})

static void test_by_hand_counts(void **state) {
    (void)state;
    assert_unused("force: true\n", WORDS("--output", "runs/a", "--resume", "auto"), "force");
    assert_unused("resume: auto\n", WORDS("--output", "runs/a", "--force"), "resume");
    assert_unused("force: true\noutput: runs/a\n", WORDS("--resume", "runs/a"), "force");
}

/* Side by side they are left to be refused. */
static void test_side_by_side(void **state) {
    (void)state;
    assert_unused("force: true\nresume: auto\n", WORDS("--output", "runs/a"), NULL);
    assert_unused(NULL, WORDS("--output", "runs/a", "--force", "--resume", "auto"), NULL);
}

/* Nothing is chosen for a run without a folder, or one that does not resume anyway. */
static void test_where_it_does_not_matter(void **state) {
    (void)state;
    assert_unused("force: true\n", WORDS("--resume", "auto"), NULL);
    assert_unused("force: true\n", WORDS("--output", "a", "--resume", "auto", "--bench", "1"),
                  NULL);
    choice c = choose("force: false\n", WORDS("--output", "a", "--resume", "auto"));
    assert_true(!c.unused && !c.options.force);
    assert_string_equal(c.options.resume, "auto");
    bpt_option_set_free(c.set);
    c = choose(NULL, WORDS("--output", "a", "--force"));
    assert_true(!c.unused && c.options.force && !c.options.resume);
    bpt_option_set_free(c.set);
}

/* A path is of the folder by its names alone: whatever else they hold, links are not asked. */
static void test_paths(void **state) {
    (void)state;
    static const struct {
        const char *output, *resume;
        bool within;
    } cases[] = {
        {"runs/a", "runs/a", true},
        {"runs/a", "runs/a/checkpoints/step-1", true},
        {"./runs//a/", "runs/./a/checkpoints", true},
        {"/tmp/a", "//tmp/a/b", true},
        {"runs/a", "runs/ab", false},
        {"runs/ab", "runs/a", false},
        {"runs/a", "runs/b", false},
        {"runs/a", "runs", false},
        {"runs/a", "a", false},
        {"tmp/a", "/tmp/a", false},
        {"/tmp/a", "tmp/a", false},
        {"runs/a", "runs/a/../b", false},
        {"runs/a", "runs/a/b/..", false},
        {"runs/a", "runs/a/xy", true},
        {"runs/a", "runs/a/..b", true},
        {"runs/a", "runs/a/b..", true},
        {"../a", "../a/b", true},
        {"auto", "auto", true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_unused("force: true\n",
                      WORDS("--output", cases[i].output, "--resume", cases[i].resume),
                      cases[i].within ? "force" : NULL);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand_counts),
        cmocka_unit_test(test_side_by_side),
        cmocka_unit_test(test_where_it_does_not_matter),
        cmocka_unit_test(test_paths),
    };
    return cmocka_run_group_tests(tests, work_place_open, work_place_close);
}
