#include "scheduler/cores.h"

#include "base/cgroup.h"
#include "base/log.h"
#include "base/memory.h"
#include "scheduler/pool.h"

#include <errno.h>
#include <hwloc.h>
#include <math.h>
#include <stdbool.h>
#include <string.h>

struct bpt__cores {
    hwloc_topology_t topology;
    hwloc_bitmap_t allowed; /* logical processors */
    hwloc_bitmap_t creator; /* those of the thread that called create */
    hwloc_obj_type_t type;  /* core; logical processor where the machine does not tell cores */
    unsigned n;
};

/* Only cores and logical processors are of interest: the rest costs time to discover. */
static bpt_status load(hwloc_topology_t *topology) {
    if (hwloc_topology_init(topology))
        return bpt_fail(BPT_EBACKEND, "hwloc: no topology: %s", strerror(errno));
    hwloc_topology_set_all_types_filter(*topology, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(*topology, HWLOC_OBJ_CORE, HWLOC_TYPE_FILTER_KEEP_ALL);
    if (hwloc_topology_load(*topology)) {
        hwloc_topology_destroy(*topology);
        return bpt_fail(BPT_EBACKEND, "hwloc: cannot load the topology: %s", strerror(errno));
    }
    return BPT_OK;
}

/* A core counts if one of its logical processors may be used. */
static hwloc_obj_t next_core(const bpt__cores *cores, hwloc_obj_t core) {
    do core = hwloc_get_next_obj_by_type(cores->topology, cores->type, core);
    while (core && !hwloc_bitmap_intersects(core->cpuset, cores->allowed));
    return core;
}

bpt_status bpt__cores_create(bpt__cores **out) {
    bpt__cores *cores;
    bpt_status status;
    BPT_TRY(BPT_NEW("cores", 1, &cores));
    BPT_TRY_GOTO(status, load(&cores->topology), free_cores);
    cores->allowed = hwloc_bitmap_alloc();
    cores->creator = hwloc_bitmap_alloc();
    if (!cores->allowed || !cores->creator) {
        status = bpt_fail(BPT_ENOMEM, "hwloc: no memory for a processor set");
        goto free_bitmaps;
    }
    /* What cannot be asked is taken as not bound. */
    if (hwloc_get_cpubind(cores->topology, cores->allowed, HWLOC_CPUBIND_PROCESS))
        hwloc_bitmap_fill(cores->allowed);
    hwloc_bitmap_and(cores->allowed, cores->allowed,
                     hwloc_topology_get_allowed_cpuset(cores->topology));
    if (hwloc_get_cpubind(cores->topology, cores->creator, HWLOC_CPUBIND_THREAD))
        hwloc_bitmap_copy(cores->creator, cores->allowed);
    const bool has_cores = hwloc_get_nbobjs_by_type(cores->topology, HWLOC_OBJ_CORE) > 0;
    cores->type = has_cores ? HWLOC_OBJ_CORE : HWLOC_OBJ_PU;
    for (hwloc_obj_t core = next_core(cores, NULL); core; core = next_core(cores, core)) cores->n++;
    *out = cores;
    return BPT_OK;

free_bitmaps:
    hwloc_bitmap_free(cores->creator);
    hwloc_bitmap_free(cores->allowed);
    hwloc_topology_destroy(cores->topology);
free_cores:
    bpt_free(cores);
    return status;
}

void bpt__cores_free(bpt__cores *cores) {
    if (!cores) return;
    hwloc_bitmap_free(cores->creator);
    hwloc_bitmap_free(cores->allowed);
    hwloc_topology_destroy(cores->topology);
    bpt_free(cores);
}

unsigned bpt__cores_count(const bpt__cores *cores) {
    return cores->n ? cores->n : 1;
}

bpt_status bpt__cores_bind(const bpt__cores *cores, unsigned i) {
    hwloc_obj_t core = next_core(cores, NULL);
    for (unsigned k = 0; core && k < i; k++) core = next_core(cores, core);
    if (!core) return bpt_fail(BPT_EBACKEND, "no core %u of %u to bind to", i, cores->n);
    hwloc_bitmap_t set = hwloc_bitmap_dup(core->cpuset);
    if (!set) return bpt_fail(BPT_ENOMEM, "hwloc: no memory for a processor set");
    hwloc_bitmap_and(set, set, cores->allowed);
    const int failed = hwloc_set_cpubind(cores->topology, set, HWLOC_CPUBIND_THREAD);
    const int reason = errno;
    hwloc_bitmap_free(set);
    if (failed) return bpt_fail(BPT_EBACKEND, "cannot bind to core %u: %s", i, strerror(reason));
    return BPT_OK;
}

void bpt__cores_unbind(const bpt__cores *cores) {
    hwloc_set_cpubind(cores->topology, cores->creator, HWLOC_CPUBIND_THREAD);
}

unsigned bpt_pool_bound_cores(void) {
    bpt__cores *cores;
    if (bpt__cores_create(&cores) != BPT_OK) {
        bpt_warn("number of cores unknown, taken as 1: %s", bpt_error_last()->text);
        return 1;
    }
    const unsigned n = bpt__cores_count(cores);
    bpt__cores_free(cores);
    return n < BPT_MAX_WORKERS ? n : BPT_MAX_WORKERS;
}

/* A part of a core is one: threads that wait their turn do no harm where there is but one. */
unsigned bpt_pool_quota_cores(void) {
    const double most = ceil(bpt_cgroup_read().processors);
    return most < (double)BPT_MAX_WORKERS ? (unsigned)most : BPT_MAX_WORKERS;
}

unsigned bpt_pool_allowed_cores(void) {
    const unsigned bound = bpt_pool_bound_cores(), quota = bpt_pool_quota_cores();
    return bound < quota ? bound : quota;
}
