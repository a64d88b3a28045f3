#include "tools/train/job/run_need.h"

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

/* What more there is on the disk than now, at most: while one of n checkpoints is written, or at
 * the end. Once those that are there now are gone, another one changes nothing. */
static uint64_t need_of(const bpt_run_writes *run, uint64_t n) {
    const int64_t weights = (int64_t)run->weights, checkpoint = (int64_t)run->checkpoint;
    int64_t more = 0, most = 0;
    uint64_t old = run->n_there, made = 0;
    for (; n > 0 && (old > 0 || made <= run->keep); n--) {
        made++;
        more += checkpoint;
        if (more > most) most = more;
        while (old > 0 && old + made > run->keep) more -= (int64_t)run->there[--old];
        if (made > run->keep) more -= checkpoint;
    }
    if (more + weights > most) most = more + weights;
    return (uint64_t)most + BPT_RUN_NEED_OTHERS;
}

bpt_run_need bpt_run_need_of(const bpt_run_writes *run) {
    const uint64_t certain = count_certain(run);
    return (bpt_run_need){
        .checkpoints = certain,
        .least = need_of(run, certain),
        .most = need_of(run, count_due(run)),
        .fewer = run->keep > 1,
    };
}

uint64_t bpt_run_need_of_one(const bpt_run_writes *run) {
    return need_of(run, 1);
}
