/* Pixels become floats: the same bits past the caches, wherever they begin and end. */
#include "storage/loader/normalise.h"
#include "tests/storage/made_images.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 70, SPARE = 8 };

static void all_lengths_and_places_agree(void **state) {
    (void)state;
    static uint8_t pixels[MOST + SPARE];
    static float out[MOST + 2 * SPARE];
    const float scale = 0.0171247538F, shift = -2.11790395F, untouched = 77;
    made_noise(pixels, sizeof pixels, 5);
    for (size_t n = 0; n <= MOST; n++)
        for (size_t from = 0; from < SPARE; from++)
            for (int past_caches = 0; past_caches < 2; past_caches++) {
                for (size_t i = 0; i < MOST + 2 * SPARE; i++) out[i] = untouched;
                bpt__normalise(pixels + n % SPARE, n, scale, shift, past_caches, out + from);
                for (size_t i = 0; i < MOST + 2 * SPARE; i++) {
                    const bool inside = i >= from && i < from + n;
                    const float product = inside ? (float)pixels[n % SPARE + i - from] * scale : 0;
                    const float expected = inside ? product + shift : untouched;
                    assert_memory_equal(&out[i], &expected, sizeof expected);
                }
            }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_lengths_and_places_agree)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
