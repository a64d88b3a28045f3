/* Named memory: alignment, counting, overflow, and failure on demand. */
#include "base/memory.h"
#include "tests/base/support.h"

#include <sys/mman.h>
#include <sys/resource.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static void test_multiply_refuses_to_wrap_round(void **state) {
    (void)state;
    size_t product = 42;
    assert_int_equal(bpt_size_multiply(6, 7, &product), BPT_OK);
    assert_int_equal(product, 42);
    assert_int_equal(bpt_size_multiply(SIZE_MAX, 1, &product), BPT_OK);
    assert_true(product == SIZE_MAX);
    assert_int_equal(bpt_size_multiply(SIZE_MAX, 0, &product), BPT_OK);
    assert_int_equal(product, 0);
    product = 42;
    assert_int_equal(bpt_size_multiply(SIZE_MAX / 2 + 1, 2, &product), BPT_ENOMEM);
    assert_int_equal(bpt_size_multiply((size_t)1 << 32, (size_t)1 << 32, &product), BPT_ENOMEM);
    assert_int_equal(product, 42);
}

static void test_sums_stop_at_the_largest(void **state) {
    (void)state;
    assert_true(bpt_size_add(40, 2) == 42);
    assert_true(bpt_size_add(SIZE_MAX - 2, 2) == SIZE_MAX);
    assert_true(bpt_size_add(SIZE_MAX - 2, 3) == SIZE_MAX);
    assert_true(bpt_size_add(SIZE_MAX, SIZE_MAX) == SIZE_MAX);
}

static void test_machine_has_memory(void **state) {
    (void)state;
    assert_true(bpt_memory_of_machine() > (size_t)1 << 20);
}

static void test_memory_is_aligned_and_zero(void **state) {
    (void)state;
    for (size_t size = 0; size < 300; size++) {
        unsigned char *bytes;
        assert_int_equal(BPT_NEW("test bytes", size, &bytes), BPT_OK);
        assert_non_null(bytes);
        assert_int_equal((uintptr_t)bytes % BPT_ALIGNMENT, 0);
        for (size_t i = 0; i < size; i++) assert_int_equal(bytes[i], 0);
        if (size) memset(bytes, 0xAB, size); /* what the next one of this size may be made of */
        bpt_free(bytes);
    }
}

/* @return whether the mapping of @p address has a flag, by /proc/self/smaps ("hg": huge pages) */
static bool has_flag(const void *address, const char *flag) {
    FILE *f = fopen("/proc/self/smaps", "r");
    char line[512];
    bool inside = false, found = false;
    assert_non_null(f);
    while (fgets(line, sizeof line, f)) {
        unsigned long begin, end;
        if (sscanf(line, "%lx-%lx ", &begin, &end) == 2)
            inside = (uintptr_t)address >= begin && (uintptr_t)address < end;
        if (inside && strncmp(line, "VmFlags:", 8) == 0) found |= strstr(line, flag) != NULL;
    }
    fclose(f);
    return found;
}

static void test_large_memory_is_in_huge_pages(void **state) {
    (void)state;
    const size_t sizes[] = {BPT_HUGE_FROM, BPT_HUGE_FROM + 1, (size_t)3 * BPT_HUGE_PAGE - 1};
    if (access("/sys/kernel/mm/transparent_hugepage/enabled", R_OK) != 0) skip();
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        unsigned char *bytes;
        assert_int_equal(BPT_NEW("test bytes", sizes[i], &bytes), BPT_OK);
        assert_int_equal((uintptr_t)bytes % BPT_HUGE_PAGE, 0);
        assert_true(has_flag(bytes, " hg"));
        for (size_t at = 0; at < sizes[i]; at++) assert_true(bytes[at] == 0);
        memset(bytes, 0xAB, sizes[i]);
        bpt_free(bytes);
    }
}

/* What nobody touches takes no memory; else it is as any other. */
static void test_unset_memory_is_not_touched(void **state) {
    (void)state;
    enum { SIZE = 64 << 20, N_PAGES = SIZE / 4096 };
    static unsigned char resident[N_PAGES];
    const uint64_t live = bpt_memory_live(), made = bpt_memory_allocations();
    unsigned char *bytes;
    if (sysconf(_SC_PAGESIZE) != 4096) skip();
    assert_int_equal(BPT_NEW_UNSET("test bytes", SIZE, &bytes), BPT_OK);
    assert_int_equal((uintptr_t)bytes % BPT_HUGE_PAGE, 0);
    assert_int_equal(bpt_memory_live(), live + 1);
    assert_int_equal(bpt_memory_allocations(), made + 1);
    memset(bytes, 1, SIZE / 4);
    assert_int_equal(mincore(bytes, SIZE, resident), 0);
    for (size_t i = 0; i < N_PAGES / 4; i++) assert_true(resident[i] & 1);
    for (size_t i = N_PAGES / 4; i < N_PAGES; i++) assert_false(resident[i] & 1);
    bpt_free(bytes);
    bpt_memory_fail_at(0);
    assert_int_equal(BPT_NEW_UNSET("test bytes", SIZE, &bytes), BPT_ENOMEM);
    bpt_memory_fail_at(-1);
    assert_int_equal(BPT_NEW_UNSET("test bytes", SIZE_MAX, &bytes), BPT_ENOMEM);
    assert_int_equal(bpt_memory_live(), live);
}

static void test_element_size_comes_from_the_pointer(void **state) {
    (void)state;
    double *numbers;
    assert_int_equal(BPT_NEW("test numbers", 1000, &numbers), BPT_OK);
    for (int i = 0; i < 1000; i++) numbers[i] = i; /* the address sanitizer measures it */
    assert_true(numbers[999] == 999.0);
    bpt_free(numbers);
}

static void test_sizes_beyond_memory_are_refused(void **state) {
    (void)state;
    double *numbers = NULL;
    const uint64_t live = bpt_memory_live(), made = bpt_memory_allocations();
    assert_int_equal(BPT_NEW("test numbers", SIZE_MAX / 4, &numbers), BPT_ENOMEM);
    assert_int_equal(BPT_NEW("test numbers", SIZE_MAX / sizeof *numbers, &numbers), BPT_ENOMEM);
    assert_non_null(strstr(bpt_error_last()->text, "test numbers"));
    assert_null(numbers);
    assert_int_equal(bpt_memory_live(), live);
    assert_int_equal(bpt_memory_allocations(), made);
}

static void test_counters_follow_allocations(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live(), made = bpt_memory_allocations();
    char *a, *b;
    assert_int_equal(BPT_NEW("a", 1, &a), BPT_OK);
    assert_int_equal(BPT_NEW("b", 0, &b), BPT_OK);
    assert_int_equal(bpt_memory_live(), live + 2);
    assert_int_equal(bpt_memory_allocations(), made + 2);
    bpt_free(a);
    bpt_free(NULL);
    assert_int_equal(bpt_memory_live(), live + 1);
    bpt_free(b);
    assert_int_equal(bpt_memory_live(), live);
    assert_int_equal(bpt_memory_allocations(), made + 2);
}

static void test_exactly_the_nth_allocation_fails(void **state) {
    (void)state;
    for (int n = 0; n < 5; n++) {
        const uint64_t live = bpt_memory_live();
        char *parts[5] = {0};
        bpt_memory_fail_at(n);
        for (int i = 0; i < 5; i++)
            assert_int_equal(BPT_NEW("part", 3, &parts[i]), i == n ? BPT_ENOMEM : BPT_OK);
        assert_null(parts[n]);
        assert_string_equal(bpt_error_last()->text, "part: cannot allocate 3 bytes");
        assert_int_equal(bpt_memory_live(), live + 4);
        for (int i = 0; i < 5; i++) bpt_free(parts[i]);
    }
    bpt_memory_fail_at(0);
    bpt_memory_fail_at(-1);
    char *memory;
    assert_int_equal(BPT_NEW("after", 1, &memory), BPT_OK);
    bpt_free(memory);
}

static void test_grow_keeps_content_and_zeroes_the_rest(void **state) {
    (void)state;
    const uint64_t made = bpt_memory_allocations();
    uint32_t *array = NULL;
    size_t capacity = 0;
    for (uint32_t n = 0; n < 5000; n++) {
        assert_int_equal(BPT_GROW("list", n + 1, &array, &capacity), BPT_OK);
        assert_true(capacity > n);
        assert_int_equal(array[n], 0);
        array[n] = n + 1;
    }
    for (uint32_t i = 0; i < 5000; i++) assert_int_equal(array[i], i + 1);
    for (size_t i = 5000; i < capacity; i++) assert_int_equal(array[i], 0);
    assert_true(bpt_memory_allocations() - made <= 12); /* doubling, not one by one */

    const uint32_t *before = array;
    assert_int_equal(BPT_GROW("list", 10, &array, &capacity), BPT_OK);
    assert_ptr_equal(array, before); /* never shrinks */
    bpt_free(array);
}

static void test_grow_that_fails_changes_nothing(void **state) {
    (void)state;
    uint32_t *array = NULL;
    size_t capacity = 0;
    assert_int_equal(BPT_GROW("list", 4, &array, &capacity), BPT_OK);
    array[3] = 77;
    uint32_t *const before = array;
    const size_t capacity_before = capacity;
    const uint64_t live = bpt_memory_live();
    bpt_memory_fail_at(0);
    assert_int_equal(BPT_GROW("list", 4000, &array, &capacity), BPT_ENOMEM);
    assert_int_equal(BPT_GROW("list", SIZE_MAX, &array, &capacity), BPT_ENOMEM);
    assert_int_equal(BPT_GROW("list", SIZE_MAX / 2 + 1, &array, &capacity), BPT_ENOMEM);
    bpt_memory_fail_at(-1);
    assert_ptr_equal(array, before);
    assert_int_equal(capacity, capacity_before);
    assert_int_equal(array[3], 77);
    assert_int_equal(bpt_memory_live(), live);
    bpt_free(array);
}

static void test_strings(void **state) {
    (void)state;
    char *copy, *text;
    assert_int_equal(bpt_strdup("", &copy), BPT_OK);
    assert_string_equal(copy, "");
    bpt_free(copy);
    assert_int_equal(bpt_strdup("conv1", &copy), BPT_OK);
    assert_string_equal(copy, "conv1");
    char long_text[200] = "";
    for (size_t n = 0; n + 1 < sizeof long_text; long_text[n++] = 'x', long_text[n] = '\0') {
        char *same;
        assert_int_equal(bpt_strdup(long_text, &same), BPT_OK);
        assert_memory_equal(same, long_text, n + 1); /* with its end, also behind whole lines */
        bpt_free(same);
    }
    assert_int_equal(bpt_strf(&text, "%s/step-%08d", copy, 120), BPT_OK);
    assert_string_equal(text, "conv1/step-00000120");
    bpt_free(text);
    assert_int_equal(bpt_strf(&text, "%0500d", 7), BPT_OK);
    assert_int_equal(strlen(text), 500);
    assert_int_equal(text[499], '7');
    bpt_free(text);
    bpt_free(copy);
}

/* Of what cannot be formatted that alone takes no seconds. */
static void test_what_cannot_be_formatted(void **state) {
    (void)state;
    char *text = NULL;
    assert_int_equal(bpt_strf(&text, "%ls", L"\x20AC"), BPT_EUSAGE);
    assert_string_equal(bpt_error_last()->text, "cannot format \"%ls\"");
    assert_null(text);
}

static bpt_status make_strings(void *arg) {
    (void)arg;
    char *copy, *text;
    BPT_TRY(bpt_strdup("abc", &copy));
    const bpt_status status = bpt_strf(&text, "%s-%d", copy, 1);
    if (status == BPT_OK) bpt_free(text);
    bpt_free(copy);
    return status;
}

static void test_strings_report_failure(void **state) {
    (void)state;
    support_fail_each_allocation(make_strings, NULL);
}

/* Pages that are fetched from the system while 16 MiB are taken, written, and freed. */
static long pages_fetched(void) {
    enum { N = 128, BYTES = 128 << 10 };
    static char *blocks[N];
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (int i = 0; i < N; i++) {
        assert_non_null(blocks[i] = malloc(BYTES));
        memset(blocks[i], i, BYTES);
    }
    for (int i = 0; i < N; i++) free(blocks[i]);
    getrusage(RUSAGE_SELF, &after);
    return after.ru_minflt - before.ru_minflt;
}

/* The last test, since it holds for the whole process. */
static void test_freed_memory_is_kept(void **state) {
    (void)state;
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
    skip(); /* these have allocators of their own */
#endif
    bpt_memory_keep();
    pages_fetched();
    assert_in_range(pages_fetched(), 0, 64);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_multiply_refuses_to_wrap_round),
        cmocka_unit_test(test_sums_stop_at_the_largest),
        cmocka_unit_test(test_machine_has_memory),
        cmocka_unit_test(test_memory_is_aligned_and_zero),
        cmocka_unit_test(test_large_memory_is_in_huge_pages),
        cmocka_unit_test(test_unset_memory_is_not_touched),
        cmocka_unit_test(test_element_size_comes_from_the_pointer),
        cmocka_unit_test(test_sizes_beyond_memory_are_refused),
        cmocka_unit_test(test_counters_follow_allocations),
        cmocka_unit_test(test_exactly_the_nth_allocation_fails),
        cmocka_unit_test(test_grow_keeps_content_and_zeroes_the_rest),
        cmocka_unit_test(test_grow_that_fails_changes_nothing),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_what_cannot_be_formatted),
        cmocka_unit_test(test_strings_report_failure),
        cmocka_unit_test(test_freed_memory_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
