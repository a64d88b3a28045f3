#include "tests/outer/exchange_fixture.h"

#include "base/checksum.h"
#include "base/file.h"
#include "base/memory.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Last: it needs those above, and defines fail and skip. */
#include <cmocka.h>

bpt_comm *comm;

void start_mpi(void) {
    if (bpt_comm_start(&comm) == BPT_OK) return;
    fprintf(stderr, "%s\n", bpt_error_last()->text);
    exit(1);
}

/* A rank whose test failed would leave the others waiting in the next. */
int end_mpi(int failed) {
    if (failed) bpt_comm_abort(comm, 1);
    bpt_comm_stop(comm);
    return bpt_memory_live() == 0 ? 0 : 1;
}

void fixture_vector(uint32_t worker, uint64_t seq, size_t n, float *out) {
    uint64_t bits = 0x9E3779B97F4A7C15u * (seq * 64 + worker + 1);
    for (size_t i = 0; i < n; i++) {
        bits = bits * 6364136223846793005u + 1442695040888963407u;
        out[i] = (float)(int32_t)(bits >> 32) * 0x1p-31f;
    }
}

double fixture_quality(uint32_t worker) {
    return 1.0 / (1.0 + worker);
}

void fixture_prepare(fixture *f, const bpt_update_rule *rule, size_t n, uint64_t total_samples) {
    *f = (fixture){.m = bpt_comm_size(comm), .rank = bpt_comm_rank(comm), .n = n};
    strcpy(f->folder, "/tmp/bpt-exchange-XXXXXX");
    assert_non_null(mkdtemp(f->folder));
    snprintf(f->log_path, sizeof f->log_path, "%s/updates.jsonl", f->folder);
    f->initial = calloc(n + 1, sizeof(float));
    f->vector = calloc(n + 1, sizeof(float));
    fixture_vector(0, 0, n, f->initial);
    f->coordinator = (bpt_coordinator_options){.n_ranks = f->m, .total_samples = total_samples};
    f->options = (bpt_exchange_options)BPT_EXCHANGE_OPTIONS_INIT;
    f->options.rule = rule;
    f->options.n_elements = n;
    f->options.initial = f->initial;
    f->options.log_path = f->log_path;
}

void fixture_start(fixture *f) {
    f->options.coordinator = &f->coordinator;
    if (bpt_exchange_create(comm, &f->options, &f->x) != BPT_OK)
        fail_msg("%s", bpt_error_last()->text);
}

void fixture_end(fixture *f) {
    assert_int_equal(bpt_exchange_destroy(f->x), BPT_OK);
    assert_int_equal(bpt_dir_remove(f->folder), BPT_OK);
    free(f->vector);
    free(f->initial);
}

void fixture_push(fixture *f, uint64_t samples, uint32_t wants) {
    fixture_vector(f->rank, ++f->pushes, f->n, bpt_exchange_outbox(f->x));
    const bpt_report report = {.samples = samples,
                               .busy_ns = samples * 1000 * (f->rank + 1),
                               .quality = fixture_quality(f->rank),
                               .rates = FIXTURE_RATES,
                               .wants = wants};
    assert_int_equal(bpt_exchange_push(f->x, &report), BPT_OK);
}

bpt_reply fixture_wait(fixture *f) {
    bpt_reply reply = {0};
    if (bpt_exchange_wait(f->x, &reply) != BPT_OK) fail_msg("%s", bpt_error_last()->text);
    assert_true(bpt_exchange_ready(f->x));
    return reply;
}

void assert_same_on_all_ranks(const void *data, size_t bytes) {
    const uint32_t m = bpt_comm_size(comm);
    const uint64_t mine = bpt_checksum(data, bytes);
    uint64_t all[16];
    assert_true(m <= 16);
    assert_int_equal(bpt_comm_allgather(comm, &mine, sizeof mine, all), BPT_OK);
    for (uint32_t r = 0; r < m; r++) assert_true(all[r] == mine);
}
