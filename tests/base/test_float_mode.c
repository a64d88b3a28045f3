/* Denormal numbers before and after they are flushed, in this thread and in one that it creates. */
#include "base/float_mode.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

typedef struct {
    float result, operand;
} products;

/* The compiler must not do them itself. */
static void multiply(products *p) {
    volatile float small = 1e-30f, denormal = 1e-40f;
    p->result = small * 1e-10f;
    p->operand = denormal * 1e20f;
}

static void *multiply_in_thread(void *p) {
    multiply(p);
    return NULL;
}

static void test_flush(void **state) {
    (void)state;
    products before, after, in_thread;
    pthread_t thread;
    multiply(&before);
    assert_true(before.result > 0.0f && before.operand > 0.0f);
    if (!bpt_float_flush_denormals()) skip();
    multiply(&after);
    assert_int_equal(pthread_create(&thread, NULL, multiply_in_thread, &in_thread), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(after.result == 0.0f && after.operand == 0.0f);
    assert_true(in_thread.result == 0.0f && in_thread.operand == 0.0f);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_flush)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
