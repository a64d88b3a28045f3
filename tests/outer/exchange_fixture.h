/** @file tests/outer/exchange_fixture.h
 * An exchange with made-up vectors, on however many ranks the test is run. */
#ifndef BPT_TESTS_OUTER_EXCHANGE_FIXTURE_H
#define BPT_TESTS_OUTER_EXCHANGE_FIXTURE_H

#include "outer/exchange/exchange.h"

extern bpt_comm *comm; /* of the whole test program */

#define FIXTURE_RATES 0.25 /* of every push */

typedef struct fixture {
    uint32_t m, rank;
    size_t n;
    bpt_coordinator_options coordinator;
    bpt_exchange_options options;
    float *initial, *vector; /* [n] */
    char folder[64];         /* of this rank, temporary */
    char log_path[96];
    uint64_t pushes;         /* by this rank */
    uint64_t largest_spread; /* of its answers, where the test notes it */
    bpt_exchange *x;
} fixture;

/** Prepares options with a log; the test may change them before fixture_start(). */
void fixture_prepare(fixture *f, const bpt_update_rule *rule, size_t n, uint64_t total_samples);
void fixture_start(fixture *f);

/** Ends the exchange, removes the folder. */
void fixture_end(fixture *f);

/** What worker @p worker pushes as its number @p seq (from 1), or the initial values (seq 0), shape
 * [n]; the same on any rank. */
void fixture_vector(uint32_t worker, uint64_t seq, size_t n, float *out);

/** Pushes this rank's next vector. @param wants see bpt_report */
void fixture_push(fixture *f, uint64_t samples, uint32_t wants);

/** Waits for the answer. */
bpt_reply fixture_wait(fixture *f);

/** Asserts that all ranks have the same @p bytes at @p data. */
void assert_same_on_all_ranks(const void *data, size_t bytes);

/** Quality of worker @p worker's pushes. */
double fixture_quality(uint32_t worker);

/** Runs a group of tests with MPI. @return exit status */
#define RUN_WITH_MPI(tests) (start_mpi(), end_mpi(cmocka_run_group_tests((tests), NULL, NULL)))
void start_mpi(void);
int end_mpi(int failed);

#endif
