#include "tests/tools/work_place.h"

#include "base/file.h"
#include "base/memory.h"

#include <sys/stat.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

static char place[] = "/tmp/bpt-work-place-XXXXXX";

int work_place_open(void **state) {
    (void)state;
    return mkdtemp(place) ? chdir(place) : -1;
}

int work_place_close(void **state) {
    (void)state;
    return chdir("/") == 0 && bpt_dir_remove(place) == BPT_OK ? 0 : -1;
}

int work_place_clear(void **state) {
    if (work_place_close(state) != 0 || mkdir(place, 0777) != 0) return -1;
    return chdir(place);
}

const char *work_place(void) {
    return place;
}

void put_file(const char *path, const char *content) {
    assert_int_equal(bpt_file_write(path, content, strlen(content)), BPT_OK);
}

void put_large_file(const char *path) {
    char *content;
    assert_int_equal(bpt_alloc("content", LARGE_FILE, 1, (void **)&content), BPT_OK);
    memset(content, 'x', LARGE_FILE);
    assert_int_equal(bpt_file_write(path, content, LARGE_FILE), BPT_OK);
    bpt_free(content);
}

void make_folder(const char *path) {
    assert_int_equal(bpt_dir_create(path, false), BPT_OK);
}
