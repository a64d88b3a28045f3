/* Who measures with whom: every host meets others enough that a slow one hides nobody's speed. */
#include "outer/placement/link_pairs.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

enum { MAX = 64 };

/* Ranks in turn on hosts of which host h has 1 + h % per_host. @return the number of ranks */
static uint32_t make_hosts(uint32_t n_hosts, uint32_t per_host, uint32_t *first) {
    uint32_t m = 0, lowest[MAX];
    for (uint32_t turn = 0; turn < per_host; turn++)
        for (uint32_t h = 0; h < n_hosts; h++) {
            if (turn > h % per_host) continue;
            if (turn == 0) lowest[h] = m;
            first[m++] = lowest[h];
        }
    return m;
}

static void test_pairs(void **state) {
    (void)state;
    for (uint32_t n = 1; n <= 20; n++)
        for (uint32_t per_host = 1; per_host <= 3; per_host++) {
            uint32_t first[MAX], met[MAX] = {0};
            bool pair[MAX][MAX] = {{0}};
            const uint32_t m = make_hosts(n, per_host, first);
            for (uint32_t k = 0; k < bpt__link_rounds(first, m); k++)
                for (uint32_t r = 0; r < m; r++) {
                    const uint32_t other = bpt__link_partner(first, m, k, r);
                    assert_true(other < m);
                    assert_int_equal(bpt__link_partner(first, m, k, other), r);
                    if (other == r) continue;
                    assert_true(first[r] == r && first[other] == other);
                    assert_false(pair[r][other]);
                    pair[r][other] = true;
                    met[r]++;
                }
            for (uint32_t r = 0; r < m; r++)
                if (first[r] == r) assert_true(met[r] >= (n < BPT__LINK_ROUNDS ? n : 5) - 1);
        }
}

/* What pairs come to where @p link is what each rank's host has. */
static void measure(const uint32_t *first, uint32_t m, const double *link, double *speed) {
    for (uint32_t r = 0; r < m; r++) speed[r] = 0;
    for (uint32_t k = 0; k < bpt__link_rounds(first, m); k++)
        for (uint32_t r = 0; r < m; r++) {
            const uint32_t other = bpt__link_partner(first, m, k, r);
            const double pair = link[r] < link[other] ? link[r] : link[other];
            if (other != r && pair > speed[r]) speed[r] = pair;
        }
    bpt__link_share(first, m, speed);
}

/* The slow host may have any number, rank 0 among its ranks or not. */
static void test_one_slow_host(void **state) {
    (void)state;
    for (uint32_t n = 3; n <= 20; n++)
        for (uint32_t per_host = 1; per_host <= 3; per_host++)
            for (uint32_t slow = 0; slow < n; slow++) {
                uint32_t first[MAX], sharers[MAX] = {0};
                double link[MAX], speed[MAX];
                const uint32_t m = make_hosts(n, per_host, first);
                for (uint32_t r = 0; r < m; r++) link[r] = first[r] == slow ? 10 : 100;
                for (uint32_t r = 0; r < m; r++) sharers[first[r]]++;
                measure(first, m, link, speed);
                for (uint32_t r = 0; r < m; r++)
                    assert_true(speed[r] == link[r] / sharers[first[r]]);
            }
}

static void test_two_hosts(void **state) {
    (void)state;
    const uint32_t first[] = {0, 0, 2, 0};
    double speed[4];
    measure(first, 4, (const double[]){60, 60, 90, 60}, speed); /* one pair, and it is theirs */
    assert_true(speed[0] == 20 && speed[1] == 20 && speed[2] == 60 && speed[3] == 20);
    assert_int_equal(bpt__link_rounds((const uint32_t[]){0, 0}, 2), 0); /* no other host */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pairs),
        cmocka_unit_test(test_one_slow_host),
        cmocka_unit_test(test_two_hosts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
