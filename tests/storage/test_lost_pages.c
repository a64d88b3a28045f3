/* Marks of files whose pages may be lost: whose they are, while files come and go on one thread and
 * another one's handler looks at all of them. ctest: TIMEOUT=30 */
#include "base/thread.h"
#include "storage/environment/lost_pages.h"
#include "tests/storage/made_files.h"

#include <sys/mman.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h>

#include <cmocka.h>

enum { PAGE = 4096 };

static int make(const char *name) {
    static const char bytes[PAGE];
    made_bytes(name, bytes, sizeof bytes);
    const int fd = open(made_path(name), O_RDWR);
    assert_true(fd >= 0);
    return fd;
}

static bpt__watched *watch(int fd) {
    bpt__watched *watched = NULL;
    assert_int_equal(bpt__lost_pages_watch(fd, "a file", &watched), BPT_OK);
    return watched;
}

/* Reads a page of a file that is cut short. */
static void lose_page(int fd) {
    assert_int_equal(ftruncate(fd, PAGE), 0);
    const volatile uint8_t *map = mmap(NULL, PAGE, PROT_READ, MAP_SHARED, fd, 0);
    assert_true(map != MAP_FAILED);
    assert_int_equal(ftruncate(fd, 0), 0);
    assert_int_equal(map[0], 0);
    munmap((void *)(uintptr_t)map, PAGE);
}

static void a_mark_is_used_again_for_its_file_alone(void **state) {
    (void)state;
    const int first = make("first"), second = make("second");
    bpt__watched *const before = watch(first);
    lose_page(first);
    assert_true(bpt__lost_pages_any(before));
    bpt__lost_pages_unwatch(before);
    bpt__watched *const other = watch(second), *const again = watch(first);
    assert_ptr_not_equal(other, before);
    assert_ptr_equal(again, before);
    assert_false(bpt__lost_pages_any(other) || bpt__lost_pages_any(again));
    bpt__lost_pages_unwatch(again);
    bpt__lost_pages_unwatch(other);
    close(second);
    close(first);
}

enum { ROUNDS = 4 };

/* Whose turn it is. Relaxed, so that the thread sanitizer sees what the marks order by themselves.
 */
static atomic_int turn;

static void await(int number) {
    while (atomic_load_explicit(&turn, memory_order_relaxed) != number) sched_yield();
}

static void pass_on(void) {
    atomic_fetch_add_explicit(&turn, 1, memory_order_relaxed);
}

typedef struct visitor {
    int files[2];
    bool failed, lost;
} visitor;

static void *come_and_go(void *arg) {
    visitor *v = arg;
    for (int i = 0; i < ROUNDS; i++) {
        bpt__watched *watched = NULL;
        await(2 * i);
        v->failed |= bpt__lost_pages_watch(v->files[i % 2], "a file", &watched) != BPT_OK;
        pass_on();
        await(2 * i + 2);
        v->lost |= bpt__lost_pages_any(watched);
        bpt__lost_pages_unwatch(watched);
    }
    return NULL;
}

static void others_come_and_go(void **state) {
    (void)state;
    pthread_t thread;
    const int mine = make("mine");
    visitor v = {.files = {make("one"), make("another")}};
    bpt__watched *const watched = watch(mine);
    assert_int_equal(bpt_thread_start(&thread, come_and_go, &v), 0);
    for (int i = 0; i < ROUNDS; i++) {
        await(2 * i + 1);
        lose_page(mine);
        pass_on();
    }
    pthread_join(thread, NULL);
    assert_false(v.failed || v.lost);
    assert_true(bpt__lost_pages_any(watched));
    bpt__lost_pages_unwatch(watched);
    close(v.files[1]);
    close(v.files[0]);
    close(mine);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_mark_is_used_again_for_its_file_alone, made_files_set_up,
                                        made_files_tear_down),
        cmocka_unit_test_setup_teardown(others_come_and_go, made_files_set_up,
                                        made_files_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
