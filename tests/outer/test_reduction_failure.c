/* Sums while MPI fails: whichever call it is, every bucket that is given is told of once. Calls of
 * MPI are replaced here. ctest: TIMEOUT=120 RANKS=1,2,3 */
#include "outer/exchange/reduction.h"
#include "tests/outer/exchange_fixture.h"

#include <sys/mman.h>

#include <fcntl.h>
#include <mpi.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

enum { BUCKETS = 3, STEPS = 2, AT_ONCE = 0, NEVER = 1000000 };

/* ---- MPI that fails ---- */

static atomic_bool *broken;      /* on any rank; shared by all of them */
static atomic_bool counts;       /* calls do */
static atomic_int left, attempt; /* calls before the one that fails; a part of all tags */

/* What an earlier attempt has left under way is not to meet what comes later. */
static int tag_now(int tag) {
    return tag + 16 * atomic_load(&attempt);
}

static bool fails(void) {
    if (!atomic_load(&counts)) return false;
    if (atomic_fetch_sub(&left, 1) == 0) atomic_store(broken, true);
    return atomic_load(broken);
}

int MPI_Isend(const void *data, int n, MPI_Datatype type, int to, int tag, MPI_Comm world,
              MPI_Request *request) {
    return fails() ? MPI_ERR_OTHER : PMPI_Isend(data, n, type, to, tag_now(tag), world, request);
}

int MPI_Irecv(void *data, int n, MPI_Datatype type, int from, int tag, MPI_Comm world,
              MPI_Request *request) {
    return fails() ? MPI_ERR_OTHER : PMPI_Irecv(data, n, type, from, tag_now(tag), world, request);
}

int MPI_Testsome(int n, MPI_Request *requests, int *n_done, int *index, MPI_Status *statuses) {
    if (atomic_load(&counts) && atomic_load(broken)) return MPI_ERR_OTHER;
    return PMPI_Testsome(n, requests, n_done, index, statuses);
}

static void share_flag(void) {
    char path[] = "/tmp/bpt-reduction-XXXXXX";
    int file = -1;
    if (bpt_comm_rank(comm) == 0) {
        file = mkstemp(path);
        assert_true(file >= 0);
        assert_int_equal(ftruncate(file, sizeof *broken), 0);
    }
    assert_int_equal(bpt_comm_broadcast(comm, 0, path, sizeof path), BPT_OK);
    if (file < 0) file = open(path, O_RDWR);
    assert_true(file >= 0);
    broken = mmap(NULL, sizeof *broken, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    assert_true(broken != MAP_FAILED);
    close(file);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    if (bpt_comm_rank(comm) == 0) unlink(path);
}

/* ---- sums ---- */

static struct {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int told[BUCKETS], failed;
    bool silent; /* a failure without its text */
} seen = {.mutex = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static void note(void *context, uint32_t bucket, bpt_status status) {
    (void)context;
    pthread_mutex_lock(&seen.mutex);
    seen.told[bucket]++;
    if (status != BPT_OK) {
        seen.failed++;
        if (!strstr(bpt_error_last()->text, "MPI cannot") || status != BPT_ECOMM)
            seen.silent = true;
    }
    pthread_cond_signal(&seen.changed);
    pthread_mutex_unlock(&seen.mutex);
}

static void await(int times) {
    pthread_mutex_lock(&seen.mutex);
    for (int b = 0; b < BUCKETS; b++)
        while (seen.told[b] < times) pthread_cond_wait(&seen.changed, &seen.mutex);
    pthread_mutex_unlock(&seen.mutex);
}

/* The last bucket is shorter than a piece: most ranks have none of it.
 * @return whether the sums of this rank failed */
static bool sum(int calls) {
    static const size_t begin[] = {0, 40, 90, 93};
    const bpt_reduction_options options = {BUCKETS, begin, note, NULL};
    bpt_reduction *r;
    memset(seen.told, 0, sizeof seen.told);
    seen.failed = 0;
    atomic_store(broken, false);
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    atomic_store(&left, calls);
    atomic_fetch_add(&attempt, 1);
    atomic_store(&counts, true);
    assert_int_equal(bpt_reduction_create(comm, &options, &r), BPT_OK);
    for (int step = 0; step < STEPS; step++) {
        memset(bpt_reduction_vector(r), 0, begin[BUCKETS] * sizeof(float));
        for (uint32_t b = 0; b < BUCKETS; b++) bpt_reduction_give(r, b);
        await(step + 1);
    }
    assert_int_equal(bpt_comm_barrier(comm), BPT_OK);
    const bpt_status status = bpt_reduction_destroy(r);
    atomic_store(&counts, false);
    for (int b = 0; b < BUCKETS; b++) assert_int_equal(seen.told[b], STEPS);
    assert_false(seen.silent);
    assert_true(status == BPT_OK || status == BPT_ECOMM);
    if (seen.failed > 0) assert_int_equal(status, BPT_ECOMM);
    return seen.failed > 0;
}

static bool any(bool mine) {
    bool all[16], one = false;
    assert_int_equal(bpt_comm_allgather(comm, &mine, sizeof mine, all), BPT_OK);
    for (uint32_t r = 0; r < bpt_comm_size(comm); r++) one = one || all[r];
    return one;
}

/* The n-th call of every rank fails, n = 0, 1, 2, ... until none does. */
static void test_every_call(void **state) {
    (void)state;
    int n = AT_ONCE;
    share_flag();
    while (any(sum(n))) n++;
    assert_true(bpt_comm_size(comm) == 1 ? n == 0 : n > 10);
    assert_false(any(sum(NEVER)));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_call)};
    return RUN_WITH_MPI(tests);
}
