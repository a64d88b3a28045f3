#include "tests/base/support.h"

#include "base/memory.h"

#include <fcntl.h>
#include <ftw.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char scratch[SUPPORT_PATH_SIZE / 2];

static struct {
    int fd;    /* whose output is captured */
    int saved; /* where it went before */
    FILE *file;
} capture;

int support_make_scratch(void **state) {
    (void)state;
    const char *parent = getenv("TMPDIR");
    snprintf(scratch, sizeof scratch, "%s/bpt-base-XXXXXX", parent ? parent : "/tmp");
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_entry(const char *path, const struct stat *info, int type, struct FTW *walk) {
    (void)info;
    (void)type;
    (void)walk;
    return remove(path);
}

int support_remove_scratch(void **state) {
    (void)state;
    return nftw(scratch, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

const char *support_scratch(void) {
    return scratch;
}

const char *support_path(char path[SUPPORT_PATH_SIZE], const char *name) {
    const int length = snprintf(path, SUPPORT_PATH_SIZE, "%s/%s", scratch, name);
    assert_in_range(length, 1, SUPPORT_PATH_SIZE - 1);
    return path;
}

void support_write(char path[SUPPORT_PATH_SIZE], const char *name, const void *data, size_t size) {
    FILE *file = fopen(support_path(path, name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

void support_capture_start(int fd) {
    fflush(NULL);
    capture.fd = fd;
    capture.file = tmpfile();
    assert_non_null(capture.file);
    capture.saved = dup(fd);
    assert_true(capture.saved >= 0);
    assert_int_equal(dup2(fileno(capture.file), fd), fd);
}

char *support_capture_end(void) {
    fflush(NULL);
    assert_int_equal(dup2(capture.saved, capture.fd), capture.fd);
    close(capture.saved);
    const off_t size = lseek(fileno(capture.file), 0, SEEK_END);
    assert_true(size >= 0);
    char *text = calloc(1, (size_t)size + 1);
    assert_non_null(text);
    assert_int_equal(pread(fileno(capture.file), text, (size_t)size, 0), size);
    fclose(capture.file);
    return text;
}

void support_fail_each_allocation(bpt_status (*attempt)(void *), void *arg) {
    enum { MORE_THAN_ANY_TEST_NEEDS = 2000 };
    bpt_status status = BPT_ENOMEM;
    for (int n = 0; status != BPT_OK; n++) {
        assert_true(n < MORE_THAN_ANY_TEST_NEEDS);
        const uint64_t live = bpt_memory_live();
        bpt_memory_fail_at(n);
        status = attempt(arg);
        bpt_memory_fail_at(-1);
        assert_int_equal(bpt_memory_live(), live);
        if (status == BPT_OK) {
            assert_true(n > 0); /* else nothing has been tried */
            break;
        }
        assert_int_equal(status, BPT_ENOMEM);
        assert_int_equal(bpt_error_last()->status, BPT_ENOMEM);
    }
}
