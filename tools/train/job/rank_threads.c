#include "tools/train/job/rank_threads.h"

#include "base/log.h"
#include "base/memory.h"
#include "outer/comm/launch.h"
#include "scheduler/pool.h"

#include <sched.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* The processors that a rank may use, and whether it computes on a device, as all ranks are told.
 */
typedef struct {
    cpu_set_t set;
    bool on_device;
} affinity;

unsigned bpt_rank_threads_share(unsigned cores, unsigned sharing, unsigned quota,
                                unsigned n_workers) {
    const unsigned of_cores = cores / sharing, of_quota = quota / n_workers;
    const unsigned n = of_cores < of_quota ? of_cores : of_quota;
    return n ? n : 1;
}

static unsigned capped(unsigned wanted) {
    return wanted < BPT_MAX_WORKERS ? wanted : BPT_MAX_WORKERS;
}

/* Of this rank's host. */
typedef struct {
    unsigned ranks;
    unsigned workers; /* among them */
    unsigned devices; /* workers that compute on one */
    /* That may use the same processors as this rank: workers on cores, and on devices. */
    unsigned sharing, sharing_devices;
} neighbours;

static bpt_status count_ranks(bpt_comm *comm, const affinity *mine, uint32_t n_workers,
                              neighbours *n) {
    affinity *all;
    BPT_TRY(bpt_comm_table(comm, "affinities", mine, sizeof *mine, (void **)&all));
    *n = (neighbours){0};
    for (uint32_t r = 0; r < bpt_comm_size(comm); r++) {
        if (!bpt_comm_together(comm, r, bpt_comm_rank(comm))) continue;
        n->ranks++;
        if (r >= n_workers) continue;
        const bool same = CPU_EQUAL(&all[r].set, &mine->set) != 0;
        n->workers++;
        n->devices += all[r].on_device;
        n->sharing += same && !all[r].on_device;
        n->sharing_devices += same && all[r].on_device;
    }
    bpt_free(all);
    return BPT_OK;
}

/* By mpirun, which can be told, or by whatever else started it. */
static void warn_bound(const bpt_comm *comm, unsigned cores, unsigned wanted) {
    char advice[112];
    if (bpt_launch_here().is_mpirun)
        snprintf(advice, sizeof advice,
                 "give mpirun the option --bind-to none (or --map-by slot:PE=%u)", wanted);
    else
        snprintf(advice, sizeof advice,
                 "what started it allows no more (taskset, a container, or srun without "
                 "--cpu-bind=none)");
    bpt_warn("rank %u on %s is bound to %u core%s and wants %u thread%s: %s", bpt_comm_rank(comm),
             bpt_comm_host(comm, bpt_comm_rank(comm)), cores, cores == 1 ? "" : "s", wanted,
             wanted == 1 ? "" : "s", advice);
}

/* There is nothing that mpirun could be told. */
static void warn_few(const bpt_comm *comm, unsigned cores, unsigned wanted) {
    bpt_warn(
        "rank %u on %s is to run %u threads, and the host has %u core%s: threads that share "
        "one take turns (0 chooses as many as there are cores)",
        bpt_comm_rank(comm), bpt_comm_host(comm, bpt_comm_rank(comm)), wanted, cores,
        cores == 1 ? "" : "s");
}

static unsigned less(unsigned n, unsigned taken) {
    return n > taken ? n - taken : 1;
}

/* Of a rank on cores: each rank on a device has one for itself. */
static unsigned share_of(const neighbours *n, unsigned cores) {
    return bpt_rank_threads_share(less(cores, n->sharing_devices), n->sharing,
                                  less(bpt_pool_quota_cores(), n->devices),
                                  n->workers - n->devices);
}

/* Also of its ranks.
 * @param[out] mine the processors that this rank may use; none where it is not known */
static bpt_status look_at_host(bpt_comm *comm, uint32_t n_workers, bool on_device, cpu_set_t *mine,
                               neighbours *n) {
    affinity own;
    memset(&own, 0, sizeof own);
    own.on_device = on_device;
    (void)sched_getaffinity(0, sizeof own.set, &own.set); /* else: empty, the same on all ranks */
    *mine = own.set;
    return count_ranks(comm, &own, n_workers, n);
}

bpt_status bpt_rank_threads_cores(bpt_comm *comm, uint32_t n_workers, bool on_device,
                                  unsigned *cores) {
    neighbours n;
    cpu_set_t mine;
    *cores = 1;
    BPT_TRY(look_at_host(comm, n_workers, on_device, &mine, &n));
    if (bpt_comm_rank(comm) < n_workers && !on_device)
        *cores = share_of(&n, bpt_pool_bound_cores());
    return BPT_OK;
}

bool bpt_rank_threads_lack(unsigned wanted, unsigned cores, unsigned processors) {
    return cores < wanted && processors < wanted;
}

bpt_status bpt_rank_threads_choose(bpt_comm *comm, unsigned wanted, uint32_t n_workers,
                                   bool on_device, unsigned *chosen, unsigned *cores,
                                   unsigned *on_host) {
    const long online = sysconf(_SC_NPROCESSORS_ONLN);
    const unsigned present = online > 0 ? (unsigned)online : 1; /* logical processors */
    const unsigned bound = bpt_pool_bound_cores();
    neighbours n;
    cpu_set_t mine;
    BPT_TRY(look_at_host(comm, n_workers, on_device, &mine, &n));
    *on_host = n.ranks;
    *chosen = *cores = 1;
    if (bpt_comm_rank(comm) >= n_workers) return BPT_OK;
    /* Bound to a single core, although the ranks of the host leave others idle. */
    const unsigned allowed = (unsigned)CPU_COUNT(&mine);
    const bool loses = bound == 1 && allowed * n.workers < present && !on_device;
    const bool lacks = bpt_rank_threads_lack(wanted, bound, allowed);
    if (wanted && lacks && allowed >= present)
        warn_few(comm, bound, wanted);
    else if (wanted ? lacks : loses)
        warn_bound(comm, bound, wanted ? wanted : present / n.workers);
    if (!on_device) *cores = share_of(&n, bound);
    *chosen = wanted ? capped(wanted) : *cores;
    return BPT_OK;
}

unsigned bpt_rank_threads_expected(unsigned wanted, unsigned on_host) {
    if (wanted) return capped(wanted);
    return bpt_rank_threads_share(bpt_pool_bound_cores(), on_host, bpt_pool_quota_cores(), on_host);
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
