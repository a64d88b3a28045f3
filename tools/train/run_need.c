#include "tools/train/run_need.h"

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

/* None is made at the end itself. */
static uint64_t count_due(const bpt_run_writes *run) {
    if (run->every == 0 || run->progress >= run->total) return 0;
    return (run->total - 1) / run->every - run->progress / run->every;
}

static uint64_t count_certain(const bpt_run_writes *run) {
    if (count_due(run) == 0) return 0;
    const uint64_t due = (run->progress / run->every + 1) * run->every;
    return run->total - due > run->late ? 1 : 0;
}

/* What more there is on the disk than now, at most: while the first or the last of n checkpoints is
 * written, or at the end. */
static uint64_t need_of(const bpt_run_writes *run, uint64_t n) {
    const uint64_t checkpoint = run->vectors * run->weights, there = run->there;
    if (n == 0) return run->weights;
    const uint64_t before_last = n == 1 ? there : smaller(there + n - 1, run->keep);
    const uint64_t kept = smaller(there + n, run->keep);
    const uint64_t writing = larger(there, before_last) + 1 - there;
    if (kept >= there)
        return larger(writing * checkpoint, (kept - there) * checkpoint + run->weights);
    return larger(writing * checkpoint, run->weights); /* some go: there is more room by then */
}

bpt_run_need bpt_run_need_of(const bpt_run_writes *run) {
    const uint64_t certain = count_certain(run);
    return (bpt_run_need){
        .checkpoints = certain,
        .least = need_of(run, certain),
        .most = need_of(run, count_due(run)),
    };
}
