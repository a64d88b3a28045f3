#include "base/clock.h"
#include "base/memory.h"
#include "outer/placement/link_speed.h"
#include "tools/plan/probe_parts.h"
#include "tools/spread.h"

#include <math.h>
#include <string.h>

/* What goes round is as much as the weights within these bounds, and goes round until it was so
 * much in all. */
enum { LEAST_BYTES = 1 << 20, MOST_BYTES = 64 << 20, BYTES_IN_ALL = 16 << 20, LEAST_ROUNDS = 2 };
enum { N_BARRIERS = 50, N_WARM_BARRIERS = 5 };

/* Whatever disturbs a measurement makes a link look slower than it is: the fastest counts. */
enum { N_LINK_TRIALS = 5 };

static bpt_status measure_link(const bpt_probe *p, double *bytes_per_s) {
    const uint32_t n = bpt_comm_size(p->comm);
    double *of_rank = NULL;
    bpt_status status = bpt_comm_agree(p->comm, BPT_NEW("speeds of links", n, &of_rank));
    *bytes_per_s = 0;
    for (int i = 0; i < N_LINK_TRIALS && status == BPT_OK; i++) {
        status = bpt_comm_link_speeds(p->comm, of_rank);
        if (status == BPT_OK) *bytes_per_s = fmax(*bytes_per_s, of_rank[bpt_comm_rank(p->comm)]);
    }
    bpt_free(of_rank);
    return status;
}

static size_t bytes_of_round(const bpt_probe *p) {
    const size_t bytes = p->subject->model->segments.n_elements * sizeof(float);
    return bytes < LEAST_BYTES ? LEAST_BYTES : bytes > MOST_BYTES ? MOST_BYTES : bytes;
}

/* Every rank gives a block to all others, and gets theirs.
 * @param blocks shape [1 + n_ranks][bytes]: its own, and those of all */
static bpt_status go_round(const bpt_probe *p, char *blocks, size_t bytes, size_t n_rounds) {
    for (size_t i = 0; i < n_rounds; i++)
        BPT_TRY(bpt_comm_allgather(p->comm, blocks, bytes, blocks + bytes));
    return BPT_OK;
}

/* The first round gets connections going. */
static bpt_status time_rounds(const bpt_probe *p, char *blocks, size_t bytes, double *s_per_byte) {
    const size_t of_round = bytes_of_round(p), enough = BYTES_IN_ALL / of_round;
    const size_t n_rounds = enough > LEAST_ROUNDS ? enough : LEAST_ROUNDS;
    const double moved = 2.0 * (bpt_comm_size(p->comm) - 1) * (double)bytes * (double)n_rounds;
    BPT_TRY(go_round(p, blocks, bytes, 1));
    BPT_TRY(bpt_comm_barrier(p->comm));
    const double before_s = bpt_comm_cpu_seconds(p->comm);
    BPT_TRY(go_round(p, blocks, bytes, n_rounds));
    *s_per_byte = (bpt_comm_cpu_seconds(p->comm) - before_s) / moved;
    return BPT_OK;
}

static bpt_status measure_messages(const bpt_probe *p, double *s_per_byte) {
    const size_t n = bpt_comm_size(p->comm), bytes = bytes_of_round(p) / n;
    char *blocks = NULL;
    bpt_status status = BPT_NEW("what goes round", (1 + n) * bytes, &blocks);
    status = bpt_comm_agree(p->comm, status);
    if (status == BPT_OK) {
        memset(blocks, 1, (1 + n) * bytes); /* as weights, which have been touched */
        status = time_rounds(p, blocks, bytes, s_per_byte);
    }
    bpt_free(blocks);
    return status;
}

/* A barrier is as many messages one behind the other as it takes to double a rank until it is all
 * of them. */
static unsigned doublings(uint32_t n_ranks) {
    unsigned n = 0;
    for (uint64_t ranks = 1; ranks < n_ranks; ranks *= 2) n++;
    return n;
}

static bpt_status measure_latency(const bpt_probe *p, double *latency_s) {
    double of_barrier[N_BARRIERS];
    for (int i = 0; i < N_WARM_BARRIERS; i++) BPT_TRY(bpt_comm_barrier(p->comm));
    for (int i = 0; i < N_BARRIERS; i++) {
        const uint64_t start_ns = bpt_clock_ns();
        BPT_TRY(bpt_comm_barrier(p->comm));
        of_barrier[i] = bpt_clock_seconds_since(start_ns);
    }
    *latency_s = bpt_spread_of(of_barrier, N_BARRIERS).median / doublings(bpt_comm_size(p->comm));
    return BPT_OK;
}

bpt_status bpt__probe_links(const bpt_probe *p, bpt_node *node, double *latency_s) {
    *latency_s = 0;
    if (bpt_comm_size(p->comm) == 1) return BPT_OK;
    BPT_TRY(measure_link(p, &node->link_bytes_per_s));
    BPT_TRY(measure_messages(p, &node->message_s_per_byte));
    return measure_latency(p, latency_s);
}
