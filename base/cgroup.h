/** @file base/cgroup.h
 * What the control groups of this process leave it of the machine: batch systems and containers
 * bound memory and processor time so, and whoever takes more is killed or made to wait.
 *
 * Version 1 and 2 of Linux' cgroups, also where both are mounted. Groups above the process' own
 * count too, as far as they can be seen. Elsewhere, and where nothing can be read, there is no
 * limit.
 *
 * Threads: any. Reads files: milliseconds. */
#ifndef BPT_BASE_CGROUP_H
#define BPT_BASE_CGROUP_H

#include <stddef.h>

typedef struct bpt_cgroup_limits {
    size_t memory_bytes; /* SIZE_MAX: none */
    double processors;   /* processor time over time, above 0; HUGE_VAL: no limit */
} bpt_cgroup_limits;

/** @return the least of the limits of the process' groups and of those above them: memory.max and
 * cpu.max, or memory.limit_in_bytes and cpu.cfs_quota_us over cpu.cfs_period_us; memory.high,
 * beyond which the system takes memory back but ends nobody, is none. */
bpt_cgroup_limits bpt_cgroup_read(void);

/** Reads them from a tree of files as if that were the system's root: proc/self/cgroup and
 * proc/self/mountinfo, and the groups' folders at the mount points that this names.
 * @param root without a slash at its end; "" for the system's own */
bpt_cgroup_limits bpt_cgroup_read_below(const char *root);

#endif
