#include "scheduler/pool.h"

#include "base/log.h"
#include "base/memory.h"
#include "base/thread.h"
#include "scheduler/pool_private.h"

#include <assert.h>
#include <string.h>

static bool has_work(bpt__worker *w) {
    bpt_pool *const pool = w->pool;
    if (pool->policy->stealing == BPT_STEAL_NEVER) return atomic_load(&w->ready.best) != 0;
    for (unsigned i = 0; i < pool->n_workers; i++)
        if (atomic_load(&pool->workers[i].ready.best)) return true;
    return false;
}

/* Under pool->lock. */
static void set_asleep(bpt_pool *pool, bpt__worker *w) {
    const unsigned n = atomic_load_explicit(&pool->n_idle, memory_order_relaxed);
    w->asleep = true;
    pool->idle[n] = w;
    atomic_store(&pool->n_idle, n + 1);
}

/* Under pool->lock. */
static void set_awake(bpt_pool *pool, bpt__worker *w) {
    const unsigned n = atomic_load_explicit(&pool->n_idle, memory_order_relaxed);
    unsigned i = n;
    do i--;
    while (pool->idle[i] != w);
    memmove(&pool->idle[i], &pool->idle[i + 1], (n - 1 - i) * sizeof *pool->idle);
    w->asleep = false;
    atomic_store(&pool->n_idle, n - 1);
}

/* Under pool->lock. */
static void wake(bpt_pool *pool, bpt__worker *w) {
    set_awake(pool, w);
    pthread_cond_signal(&w->wake);
}

bool bpt__worker_sleep(bpt__worker *w) {
    bpt_pool *const pool = w->pool;
    pthread_mutex_lock(&pool->lock);
    set_asleep(pool, w);
    if (has_work(w) || pool->stopping || (w->index == 0 && atomic_load(&pool->remaining) == 0))
        set_awake(pool, w);
    while (w->asleep) pthread_cond_wait(&w->wake, &pool->lock);
    const bool go_on = !pool->stopping;
    pthread_mutex_unlock(&pool->lock);
    return go_on;
}

void bpt__pool_wake(bpt_pool *pool, unsigned n) {
    if (atomic_load(&pool->n_idle) == 0) return;
    pthread_mutex_lock(&pool->lock);
    for (; n > 0 && pool->n_idle > 0; n--) wake(pool, pool->idle[pool->n_idle - 1]);
    pthread_mutex_unlock(&pool->lock);
}

void bpt__pool_wake_for(bpt_pool *pool, bpt__worker *w, bool or_other) {
    if (atomic_load(&pool->n_idle) == 0) return;
    pthread_mutex_lock(&pool->lock);
    if (w->asleep)
        wake(pool, w);
    else if (or_other && pool->n_idle > 0 && pool->policy->stealing != BPT_STEAL_NEVER)
        wake(pool, pool->idle[pool->n_idle - 1]);
    pthread_mutex_unlock(&pool->lock);
}

void bpt__pool_wake_caller(bpt_pool *pool) {
    if (atomic_load(&pool->n_idle) == 0) return;
    bpt__worker *const w = &pool->workers[0];
    pthread_mutex_lock(&pool->lock);
    if (w->asleep) wake(pool, w);
    pthread_mutex_unlock(&pool->lock);
}

/* Binding only makes runs steadier, so a failure is told and survived. */
static void start_worker(bpt__worker *w) {
    const bpt_pool *const pool = w->pool;
    if (pool->cores && bpt__cores_bind(pool->cores, w->index) != BPT_OK)
        bpt_warn("worker %u stays unbound: %s", w->index, bpt_error_last()->text);
    if (pool->on_start) pool->on_start(w->index);
}

static void *thread_main(void *arg) {
    bpt__worker *const w = arg;
    bpt_pool *const pool = w->pool;
    start_worker(w);
    pthread_mutex_lock(&pool->lock);
    if (++pool->n_started == pool->n_workers) pthread_cond_signal(&pool->workers[0].wake);
    pthread_mutex_unlock(&pool->lock);
    bpt__worker_loop(w);
    return NULL;
}

static void stop_threads(bpt_pool *pool, unsigned n_threads) {
    pthread_mutex_lock(&pool->lock);
    pool->stopping = true;
    pthread_mutex_unlock(&pool->lock);
    bpt__pool_wake(pool, pool->n_workers);
    for (unsigned i = 1; i <= n_threads; i++) pthread_join(pool->workers[i].thread, NULL);
}

static bpt_status start_threads(bpt_pool *pool) {
    int failed = 0;
    unsigned n_threads = 0;
    for (unsigned i = 1; i < pool->n_workers && !failed; i++) {
        bpt__worker *const w = &pool->workers[i];
        failed = bpt_thread_start(&w->thread, thread_main, w);
        n_threads += !failed;
    }
    if (failed) {
        stop_threads(pool, n_threads);
        return bpt_fail(BPT_EIO, "worker thread %u of %u: %s", n_threads + 1, pool->n_workers,
                        strerror(failed));
    }
    return BPT_OK;
}

static void wait_until_started(bpt_pool *pool) {
    pthread_mutex_lock(&pool->lock);
    pool->n_started++; /* worker 0 */
    while (pool->n_started < pool->n_workers)
        pthread_cond_wait(&pool->workers[0].wake, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

/* As with binding itself: no cores are found where the machine does not tell. */
static bpt_status find_cores(bpt_pool *pool) {
    const bpt_status status = bpt__cores_create(&pool->cores);
    if (status == BPT_EBACKEND) {
        bpt_warn("workers stay unbound: %s", bpt_error_last()->text);
        return BPT_OK;
    }
    BPT_TRY(status);
    const unsigned n = bpt__cores_count(pool->cores);
    if (n >= pool->n_workers) return BPT_OK;
    bpt_debug("%u workers on %u cores: not bound", pool->n_workers, n);
    bpt__cores_free(pool->cores);
    pool->cores = NULL;
    return BPT_OK;
}

static void init_locks(bpt_pool *pool) {
    pthread_mutex_init(&pool->lock, NULL);
    for (unsigned i = 0; i < pool->n_workers; i++) {
        bpt__worker *const w = &pool->workers[i];
        w->pool = pool;
        w->index = i;
        pthread_cond_init(&w->wake, NULL);
        pthread_mutex_init(&w->ready.lock, NULL);
    }
}

static void destroy_locks(bpt_pool *pool) {
    for (unsigned i = 0; i < pool->n_workers; i++) {
        pthread_mutex_destroy(&pool->workers[i].ready.lock);
        pthread_cond_destroy(&pool->workers[i].wake);
    }
    pthread_mutex_destroy(&pool->lock);
}

bpt_status bpt_pool_create(const bpt_pool_options *options, bpt_pool **out) {
    const unsigned n = options->n_workers;
    if (n < 1 || n > BPT_MAX_WORKERS)
        return bpt_fail(BPT_EUSAGE, "%u workers: allowed are 1 to %d", n, BPT_MAX_WORKERS);
    bpt_pool *pool;
    bpt_status status;
    BPT_TRY(BPT_NEW("pool", 1, &pool));
    pool->n_workers = n;
    pool->on_start = options->on_start;
    pool->policy = options->policy ? options->policy : &bpt_policy_critical_path;
    pool->machine = (bpt_machine){.n_workers = n, .n_kinds = 1};
    pool->places = bpt_policy_places(pool->policy, &pool->machine);
    BPT_TRY_GOTO(status, BPT_NEW("workers", n, &pool->workers), free_pool);
    BPT_TRY_GOTO(status, BPT_NEW("idle workers", n, &pool->idle), free_workers);
    BPT_TRY_GOTO(status, BPT_NEW("loads", n, &pool->loads), free_idle);
    if (options->bind) BPT_TRY_GOTO(status, find_cores(pool), free_loads);
    init_locks(pool);
    BPT_TRY_GOTO(status, start_threads(pool), destroy_locks);
    start_worker(&pool->workers[0]);
    wait_until_started(pool);
    *out = pool;
    return BPT_OK;

destroy_locks:
    destroy_locks(pool);
    bpt__cores_free(pool->cores);
free_loads:
    bpt_free(pool->loads);
free_idle:
    bpt_free(pool->idle);
free_workers:
    bpt_free(pool->workers);
free_pool:
    bpt_free(pool);
    return status;
}

bpt_status bpt_pool_open(const char *policy, unsigned n_workers, bpt_pool **pool) {
    bpt_pool_options options = BPT_POOL_OPTIONS_INIT;
    options.n_workers = n_workers;
    BPT_TRY(bpt_policy_find(policy, &options.policy));
    return bpt_pool_create(&options, pool);
}

void bpt_pool_free(bpt_pool *pool) {
    if (!pool) return;
    assert(!pool->graph);
    stop_threads(pool, pool->n_workers - 1);
    if (pool->cores) bpt__cores_unbind(pool->cores);
    destroy_locks(pool);
    bpt__cores_free(pool->cores);
    bpt_free(pool->loads);
    bpt_free(pool->idle);
    bpt_free(pool->workers);
    bpt_free(pool);
}

void bpt_pool_set_trace(bpt_pool *pool, bpt_trace *trace) {
    assert(!pool->graph);
    for (unsigned i = 0; i < pool->n_workers; i++) pool->workers[i].trace = trace;
}

const bpt_policy *bpt_pool_policy(const bpt_pool *pool) {
    return pool->policy;
}

unsigned bpt_pool_n_workers(const bpt_pool *pool) {
    return pool->n_workers;
}
