#include "tools/train/report/contribution.h"

#include <float.h>

double bpt_gain_without_async(const bpt_effort *ranks, uint32_t n, uint32_t rank, double seconds) {
    uint64_t pushes = 0;
    double saved = 0; /* samples */
    for (uint32_t r = 0; r < n; r++) pushes += ranks[r].submissions;
    for (uint32_t r = 0; r < n && pushes > 0; r++) {
        if (r == rank || !(ranks[r].compute_s > 0)) continue;
        const double part = (double)ranks[rank].submissions / (double)pushes;
        const double rate = (double)ranks[r].samples / ranks[r].compute_s;
        saved += rate * part * ranks[r].comm_s / ranks[r].threads;
    }
    return (saved - (double)ranks[rank].samples) / seconds;
}

double bpt_gain_without_sync(const bpt_effort *ranks, uint32_t n, uint32_t rank) {
    uint64_t all = 0;
    double with = 0, others = 0; /* the slowest's time in steps */
    for (uint32_t r = 0; r < n; r++) {
        all += ranks[r].samples;
        if (ranks[r].compute_s > with) with = ranks[r].compute_s;
        if (r != rank && ranks[r].compute_s > others) others = ranks[r].compute_s;
    }
    const uint64_t rest = all - ranks[rank].samples;
    if (rest == 0 || !(with > 0)) return -DBL_MAX; /* nobody else does anything */
    return 1 - others * (double)all / (double)rest / with;
}
