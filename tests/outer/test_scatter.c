/* Items that rank 0 gives to those that ask. ctest: TIMEOUT=60 RANKS=2,3,4 */
#include "base/clock.h"
#include "base/memory.h"
#include "outer/comm/comm_state.h"
#include "outer/data/scatter_state.h"
#include "tests/outer/exchange_fixture.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { N = 5000, PER_PARCEL = 64, BAD = 4999, KINDS = 2 };

/* A parcel: kind, count, and of each item its number and 1000 bytes made of it. */
typedef struct {
    uint32_t number;
    uint8_t bytes[1000];
} item;

typedef struct {
    uint32_t kind, n;
} head;

typedef struct {
    bool bad_make, bad_keep, damages;
    const char *held_up_by; /* what is kept or made waits until this rank is seen to; or NULL */
    bool was_seen;
    uint32_t *order; /* shape [KINDS * N]: kind * N + number of what was kept, in order */
    uint32_t n_kept;
} store;

static uint8_t byte_of(uint32_t kind, uint32_t number, size_t i) {
    return (uint8_t)(number * 7 + kind * 31 + i);
}

/* A disk that hangs, until the rank is marked to wait for it; for some seconds at most. */
static void hang(store *s) {
    const uint64_t begin_ns = bpt_clock_ns();
    while (!s->was_seen && bpt_clock_seconds_since(begin_ns) < 3) {
        usleep(1000);
        s->was_seen = atomic_load(&comm->marks.kind) == BPT__OWN &&
                      strcmp(atomic_load(&comm->marks.what), s->held_up_by) == 0;
    }
}

static bpt_status make(void *arg, const bpt_scatter_items *items, void *parcel) {
    const store *s = arg;
    *(head *)parcel = (head){items->kind, items->n};
    item *out = (item *)((head *)parcel + 1);
    for (uint32_t k = 0; k < items->n; k++, out++) {
        if (s->bad_make && items->number[k] == BAD) {
            (void)bpt_fail(BPT_ECORRUPT, "item %u is damaged", BAD);
            bpt_hint("make it anew");
            return BPT_ECORRUPT;
        }
        out->number = items->number[k];
        for (size_t i = 0; i < sizeof out->bytes; i++)
            out->bytes[i] = byte_of(items->kind, out->number, i);
        if (s->damages && out->number == BAD) out->bytes[77] ^= 4;
    }
    return BPT_OK;
}

static bpt_status keep(void *arg, const bpt_scatter_items *items, const void *parcel) {
    store *s = arg;
    if (s->held_up_by) hang(s);
    const item *in = (const item *)((const head *)parcel + 1);
    const head h = *(const head *)parcel;
    if (h.kind != items->kind || h.n != items->n) return bpt_fail(BPT_ECORRUPT, "another parcel");
    for (uint32_t k = 0; k < h.n; k++, in++) {
        if (in->number != items->number[k]) return bpt_fail(BPT_ECORRUPT, "another item");
        for (size_t i = 0; i < sizeof in->bytes; i++)
            if (in->bytes[i] != byte_of(h.kind, in->number, i))
                return bpt_fail(BPT_ECORRUPT, "item %u came damaged", in->number);
        if (s->bad_keep && in->number == BAD) return bpt_fail(BPT_ENOSPC, "no room for %u", BAD);
        s->order[s->n_kept++] = h.kind * N + in->number;
    }
    return BPT_OK;
}

static uint32_t rank(void) {
    return bpt_comm_rank(comm);
}

static bpt_scatter_options options_of(store *s) {
    return (bpt_scatter_options){
        .make = make,
        .keep = keep,
        .arg = s,
        .parcel_bytes = sizeof(head),
        .item_bytes = sizeof(item),
        .items_per_parcel = PER_PARCEL,
        .n_items = KINDS * N,
        .waits_at = "items from rank 0",
    };
}

static bpt_scatter *create(store *s) {
    bpt_scatter *x = NULL;
    const bpt_scatter_options options = options_of(s);
    s->order = calloc(KINDS * N, sizeof *s->order);
    assert_non_null(s->order);
    if (bpt_scatter_create(comm, &options, &x) != BPT_OK) fail_msg("%s", bpt_error_last()->text);
    return x;
}

static void end(bpt_scatter *x, store *s) {
    assert_int_equal(bpt_scatter_destroy(x), BPT_OK);
    free(s->order);
}

/* Wants @p n items of a kind from @p first on. */
static void want(bpt_scatter *x, uint32_t kind, uint32_t first, uint32_t n) {
    uint32_t *number = malloc((n + 1) * sizeof *number);
    assert_non_null(number);
    for (uint32_t i = 0; i < n; i++) number[i] = first + i;
    bpt_scatter_want(x, kind, number, n);
    free(number); /* it was copied */
}

/* All ranks, with what each has kept, have been sent as much by rank 0. */
static void assert_sums(bpt_scatter *x, uint64_t mine) {
    uint64_t all[16], sum = 0;
    bpt_scatter_stats stats;
    assert_int_equal(bpt_scatter_settle(x), BPT_OK);
    assert_int_equal(bpt_comm_allgather(comm, &mine, sizeof mine, all), BPT_OK);
    for (uint32_t r = 0; r < bpt_comm_size(comm); r++) sum += all[r];
    bpt_scatter_stats_get(x, &stats);
    assert_int_equal(stats.items_kept, mine);
    assert_int_equal(stats.item_bytes_kept, mine * sizeof(item));
    assert_int_equal(stats.items_sent, rank() == 0 ? sum : 0);
    assert_int_equal(stats.item_bytes_sent, rank() == 0 ? sum * sizeof(item) : 0);
}

static void test_each_gets_what_it_wants(void **state) {
    (void)state;
    store s = {0};
    bpt_scatter *x = create(&s);
    const uint32_t n = rank() == 0 ? 0 : 1000 * rank() + 3;
    if (rank() != 0) want(x, 0, 100 * rank(), n);
    assert_int_equal(bpt_scatter_wanted(x), n);
    assert_int_equal(bpt_scatter_wait(x, n, INFINITY), BPT_OK);
    assert_int_equal(bpt_scatter_kept(x), n);
    assert_int_equal(s.n_kept, n);
    for (uint32_t i = 0; i < n; i++) assert_int_equal(s.order[i], 100 * rank() + i);
    assert_sums(x, n);
    if (rank() != 0) { /* nothing is asked for any more */
        want(x, 0, 0, 1);
        assert_int_equal(bpt_scatter_wait(x, n + 1, 0.1), BPT_OK);
        assert_int_equal(bpt_scatter_kept(x), n);
    }
    end(x, &s);
}

/* In the order of asking, whatever the kinds and the sizes of what is asked for. */
static void test_order(void **state) {
    (void)state;
    store s = {0};
    bpt_scatter *x = create(&s);
    uint32_t total = 0, first[KINDS] = {0}, i = 0;
    for (uint32_t n = 0; rank() != 0 && n < 300; n++) {
        const uint32_t size = n % 7 == 0 ? 0 : n % 13 + (n % 50 == 1 ? 150 : 0),
                       kind = n / 3 % KINDS;
        want(x, kind, first[kind], size);
        first[kind] += size;
        total += size;
        if (n % 40 == 0) assert_int_equal(bpt_scatter_wait(x, total / 2, INFINITY), BPT_OK);
    }
    assert_int_equal(bpt_scatter_wait(x, total, INFINITY), BPT_OK);
    memset(first, 0, sizeof first);
    for (uint32_t n = 0; rank() != 0 && n < 300; n++) {
        const uint32_t size = n % 7 == 0 ? 0 : n % 13 + (n % 50 == 1 ? 150 : 0),
                       kind = n / 3 % KINDS;
        for (uint32_t k = 0; k < size; k++)
            assert_int_equal(s.order[i++], kind * N + first[kind]++);
    }
    assert_int_equal(i, total);
    assert_sums(x, total);
    end(x, &s);
}

/* A wait comes back when it should, and says no more than is true. */
static void test_wait_is_bounded(void **state) {
    (void)state;
    store s = {0};
    bpt_scatter *x = create(&s);
    assert_int_equal(bpt_scatter_wait(x, 1, 0.01), BPT_OK); /* nothing was asked for */
    assert_int_equal(bpt_scatter_kept(x), 0);
    end(x, &s);
}

/* What cannot be made is known to who asked for it, in rank 0's words, and to rank 0. */
static void test_what_cannot_be_made(void **state) {
    (void)state;
    store s = {.bad_make = true};
    bpt_scatter *x = create(&s);
    const bool asks = rank() == bpt_comm_size(comm) - 1;
    if (asks) {
        want(x, 0, BAD - 200, 201);
        want(x, 0, 0, 500);
        assert_int_equal(bpt_scatter_wait(x, 701, INFINITY), BPT_ECORRUPT);
        assert_true(s.n_kept <= 200);
    }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    const bpt_status status = bpt_scatter_check(x);
    assert_int_equal(status, asks || rank() == 0 ? BPT_ECORRUPT : BPT_OK);
    if (status != BPT_OK) {
        assert_string_equal(bpt_error_last()->text, "item 4999 is damaged");
        assert_string_equal(bpt_error_last()->hint, "make it anew");
    }
    end(x, &s);
}

/* Rank 0 makes no parcel that is larger than its room, whatever it is asked for. */
static void test_too_much_in_one_request(void **state) {
    (void)state;
    store s = {0};
    bpt_scatter *x = create(&s);
    const bool asks = rank() == bpt_comm_size(comm) - 1;
    if (rank() == 0) x->options.items_per_parcel = PER_PARCEL / 2; /* the others do not know */
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    if (asks) {
        want(x, 0, 0, PER_PARCEL / 2 + 1);
        assert_int_equal(bpt_scatter_wait(x, PER_PARCEL / 2 + 1, INFINITY), BPT_ECOMM);
    }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    assert_int_equal(bpt_scatter_check(x), asks || rank() == 0 ? BPT_ECOMM : BPT_OK);
    if (asks || rank() == 0) {
        char text[BPT_ERROR_TEXT_SIZE];
        snprintf(text, sizeof text, "rank %u asks for 33 items in a parcel, which holds 1 to 32",
                 bpt_comm_size(comm) - 1);
        assert_string_equal(bpt_error_last()->text, text);
    }
    assert_int_equal(s.n_kept, 0);
    end(x, &s);
}

/* Where one rank takes other parcels than rank 0 makes, no rank begins. */
static void test_other_sizes(void **state) {
    (void)state;
    store s = {0};
    bpt_scatter *x = NULL;
    bpt_scatter_options o = options_of(&s);
    const bool differs = rank() == bpt_comm_size(comm) - 1;
    if (differs) o.items_per_parcel *= 1000; /* many chunks */
    assert_int_equal(bpt_scatter_create(comm, &o, &x), differs ? BPT_EUSAGE : BPT_EPEER);
    assert_null(x);
    if (differs)
        assert_non_null(strstr(bpt_error_last()->text,
                               "takes parcels of 64000 items of 1004 bytes and 8 beside them, and "
                               "rank 0 makes them of 64 of 1004 and 8"));
}

/* What cannot be kept is known to who should; what came before it is kept, nothing behind it. */
static void test_what_cannot_be_kept(void **state) {
    (void)state;
    store s = {.bad_keep = rank() == 1};
    bpt_scatter *x = create(&s);
    const uint32_t n = rank() == 0 ? 0 : 700;
    if (rank() != 0) want(x, 1, BAD - 199, 200);
    if (rank() != 0) want(x, 1, 0, 500);
    assert_int_equal(bpt_scatter_wait(x, n, INFINITY), rank() == 1 ? BPT_ENOSPC : BPT_OK);
    assert_int_equal(bpt_scatter_check(x), rank() == 1 ? BPT_ENOSPC : BPT_OK);
    if (rank() == 1) {
        assert_string_equal(bpt_error_last()->text, "no room for 4999");
        assert_true(bpt_scatter_kept(x) <= 199);
    }
    end(x, &s);
}

/* Who waits for what it cannot keep waits for its own disk, not for rank 0. */
static void check_own_disk(bpt_status (*await)(bpt_scatter *x)) {
    store s = {.held_up_by = rank() == 1 ? "the scratch disk" : NULL};
    bpt_scatter *x = create(&s);
    if (rank() != 0) want(x, 0, 0, PER_PARCEL);
    if (await == bpt_scatter_settle) usleep(100000); /* so that the parcel is asked for before */
    assert_int_equal(await(x), BPT_OK);
    assert_int_equal(atomic_load(&comm->marks.kind), BPT__BUSY);
    assert_int_equal(s.was_seen, rank() == 1);
    end(x, &s);
}

static bpt_status await_parcel(bpt_scatter *x) {
    return bpt_scatter_wait(x, rank() == 0 ? 0 : PER_PARCEL, INFINITY);
}

static void test_own_disk(void **state) {
    (void)state;
    check_own_disk(await_parcel);
    check_own_disk(bpt_scatter_settle);
}

/* Where many pieces of a parcel come one after another, a wait for them is none that hangs. */
static void test_parts_are_seen(void **state) {
    (void)state;
    store s = {0};
    bpt_scatter *x = create(&s);
    unsigned before, after;
    const bpt__copy first = {&before, &comm->marks.wait_moves, sizeof before};
    bpt__comm_copy(comm, &first, 1);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK); /* nobody has wanted anything before */
    if (rank() != 0) want(x, 0, 0, 1);
    assert_int_equal(bpt_scatter_wait(x, rank() == 0 ? 0 : 1, INFINITY), BPT_OK);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    const bpt__copy last = {&after, &comm->marks.wait_moves, sizeof after};
    bpt__comm_copy(comm, &last, 1);
    assert_true(after != before);
    end(x, &s);
}

static void test_damage_on_the_way(void **state) {
    (void)state;
    store s = {.damages = true};
    bpt_scatter *x = create(&s);
    if (rank() != 0) want(x, 0, BAD, 1);
    assert_int_equal(bpt_scatter_wait(x, rank() != 0, INFINITY),
                     rank() == 0 ? BPT_OK : BPT_ECORRUPT);
    assert_int_equal(s.n_kept, 0);
    end(x, &s);
}

/* An end with much still wanted: what is kept is whole and a beginning of it. */
static void test_end_before_all_has_come(void **state) {
    (void)state;
    store s = {0};
    bpt_scatter *x = create(&s);
    if (rank() != 0) {
        want(x, 0, 0, N);
        want(x, 1, 0, N);
        assert_int_equal(bpt_scatter_wait(x, 10, INFINITY), BPT_OK);
    }
    assert_int_equal(bpt_scatter_destroy(x), BPT_OK);
    for (uint32_t i = 0; i < s.n_kept; i++) assert_int_equal(s.order[i], i);
    free(s.order);
}

/* Of four ranks: rank 0 has requests of the three others, and parcels; they have requests with
 * parcels, and a list of what they want. */
static void test_bytes(void **state) {
    (void)state;
    const bpt_scatter_options o = {
        .parcel_bytes = 8, .item_bytes = 100, .items_per_parcel = 10, .n_items = 7000};
    const size_t parcel = 8 + 10 * 100, request = 2 * 4 + 10 * 4;
    assert_int_equal(bpt_scatter_bytes(&o, 4, 0), 4 * parcel + 3 * 2 * request);
    assert_int_equal(bpt_scatter_bytes(&o, 4, 1), 2 * (parcel + request) + 7000 * 5);
}

/* Nothing is allocated once it is made. */
static void test_memory_is_fixed(void **state) {
    (void)state;
    store s = {0};
    bpt_scatter *x = create(&s);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    const uint64_t before = bpt_memory_allocations();
    if (rank() != 0) want(x, 0, 0, 1000);
    assert_int_equal(bpt_scatter_wait(x, rank() == 0 ? 0 : 1000, INFINITY), BPT_OK);
    assert_int_equal(bpt_scatter_settle(x), BPT_OK);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK); /* rank 0 has made all by then */
    assert_int_equal(bpt_memory_allocations(), before);
    end(x, &s);
}

/* The n-th allocation of every rank fails, n = 0, 1, 2, ... until none does. */
static void test_no_memory(void **state) {
    (void)state;
    const uint64_t live = bpt_memory_live();
    const bpt_scatter_options options = {
        .make = make,
        .keep = keep,
        .parcel_bytes = sizeof(head),
        .item_bytes = sizeof(item),
        .items_per_parcel = PER_PARCEL,
        .n_items = N,
        .waits_at = "items from rank 0",
    };
    bpt_scatter *x = NULL;
    int failures = 0;
    for (int64_t n = 0; !x; n++) {
        bpt_memory_fail_at(n);
        const bpt_status status = bpt_scatter_create(comm, &options, &x);
        bpt_memory_fail_at(-1);
        if (x) break;
        assert_true(status == BPT_ENOMEM || status == BPT_EPEER);
        assert_int_equal(bpt_memory_live(), live);
        failures++;
    }
    assert_true(failures > 8);
    assert_int_equal(bpt_scatter_destroy(x), BPT_OK);
    assert_int_equal(bpt_memory_live(), live);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_gets_what_it_wants), cmocka_unit_test(test_order),
        cmocka_unit_test(test_wait_is_bounded),         cmocka_unit_test(test_what_cannot_be_made),
        cmocka_unit_test(test_too_much_in_one_request), cmocka_unit_test(test_other_sizes),
        cmocka_unit_test(test_what_cannot_be_kept),     cmocka_unit_test(test_own_disk),
        cmocka_unit_test(test_parts_are_seen),          cmocka_unit_test(test_damage_on_the_way),
        cmocka_unit_test(test_end_before_all_has_come), cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_memory_is_fixed),         cmocka_unit_test(test_no_memory),
    };
    return RUN_WITH_MPI(tests);
}
