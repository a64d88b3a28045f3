/* The exit status of a program whose results could not be written. */
#include "base/status.h"
#include "tools/program.h"

#include <sys/wait.h>

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include <cmocka.h>

static void open_output(const char *path) {
    const int fd = open(path, O_WRONLY);
    if (fd < 0 || dup2(fd, STDOUT_FILENO) < 0) _exit(77);
    close(fd);
}

/* @param later where the output goes from the second half of the results on
 * @return the exit status of a program that came to @p status and had a full disk to write to */
static int end_of_program(const char *later, bpt_status status) {
    fflush(NULL);
    const pid_t child = fork();
    if (child == 0) {
        open_output("/dev/full");
        puts("first half");
        (void)fflush(stdout); /* as it comes of itself where a buffer is full */
        open_output(later);
        puts("second half");
        _exit(bpt_program_end("test", status));
    }
    int ended = 0;
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_true(WIFEXITED(ended));
    if (WEXITSTATUS(ended) == 77) skip();
    return WEXITSTATUS(ended);
}

static void test_disk_that_stays_full(void **state) {
    (void)state;
    assert_int_equal(end_of_program("/dev/full", BPT_OK), 1);
}

static void test_disk_that_has_room_again(void **state) {
    (void)state;
    assert_int_equal(end_of_program("/dev/null", BPT_OK), 1);
}

static void test_failure_comes_first(void **state) {
    (void)state;
    assert_int_equal(end_of_program("/dev/full", bpt_fail(BPT_ENUMERIC, "no number")), 4);
    assert_int_equal(end_of_program("/dev/null", bpt_fail(BPT_ENUMERIC, "no number")), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_disk_that_stays_full),
        cmocka_unit_test(test_disk_that_has_room_again),
        cmocka_unit_test(test_failure_comes_first),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
