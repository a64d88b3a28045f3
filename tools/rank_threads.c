#include "tools/rank_threads.h"

#include "base/log.h"
#include "scheduler/pool.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned ranks_on_this_host(const bpt_comm *comm) {
    const char *here = bpt_comm_host(comm, bpt_comm_rank(comm));
    unsigned n = 0;
    for (uint32_t r = 0; r < bpt_comm_size(comm); r++)
        n += strcmp(bpt_comm_host(comm, r), here) == 0;
    return n;
}

static void warn_if_bound(const bpt_comm *comm, unsigned allowed, unsigned wanted) {
    if (allowed >= wanted) return;
    bpt_warn(
        "rank %u on %s is bound to %u core%s and wants %u thread%s: give mpirun the option "
        "--bind-to none (or --map-by slot:PE=%u)",
        bpt_comm_rank(comm), bpt_comm_host(comm, bpt_comm_rank(comm)), allowed,
        allowed == 1 ? "" : "s", wanted, wanted == 1 ? "" : "s", wanted);
}

unsigned bpt_rank_threads_choose(const bpt_comm *comm, unsigned wanted) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned present = online > 0 ? (unsigned)online : 1;
    const unsigned allowed = bpt_pool_allowed_cores();
    if (wanted) {
        warn_if_bound(comm, allowed, wanted);
        return wanted;
    }
    /* Ranks that may use every core share them; a bound rank has its cores to itself. */
    unsigned share = present / ranks_on_this_host(comm);
    if (share == 0) share = 1;
    warn_if_bound(comm, allowed, share);
    if (allowed < share) share = allowed;
    return share < BPT_MAX_WORKERS ? share : BPT_MAX_WORKERS;
}

double bpt_rank_threads_speed(unsigned n_threads) {
    double mhz = 0.0;
    char line[256];
    FILE *file = fopen("/proc/cpuinfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "cpu MHz : %lf", &mhz) == 1) break;
    if (file) fclose(file);
    return n_threads * (mhz > 0.0 ? mhz * 1e-3 : 1.0);
}
