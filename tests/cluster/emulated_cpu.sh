# A cgroup for each host of a made-up cluster, for tests/cluster/emulate, which has stop() and sources this.
#
# All groups of an emulate are in one, bpt-emulate-PID-RANDOM, whose folder it holds a lock on while it lives. A group
# without that lock belongs to an emulate that died. The number tells people whose it is; it does not decide, since
# numbers come again and are others in another container that sees the same cgroups.
cgroups= # folder of the controller cpu
cgroup_version=

# Finds the controller, of version 1 or 2.
find_cpu_controller() {
    local place kind words
    while read -r _ place kind words _; do
        if [ "$kind" = cgroup ] && [[ ,$words, == *,cpu,* ]]; then
            cgroups=$place cgroup_version=1
            return
        elif [ "$kind" = cgroup2 ] && grep -qsw cpu "$place/cgroup.controllers"; then
            cgroups=$place cgroup_version=2
        fi
    done </proc/mounts
    [ -n "$cgroups" ] || stop 77 "there is no cgroup controller cpu" "mount one, or boot a kernel that has it"
}

# Opens and locks the folder of a group that was just made. Another emulate may have taken it for dead meanwhile.
lock_group() {
    exec {lock}<"$group" && flock "$lock" && [ -d "$group" ]
}

# Makes the group of this emulate, $group, and in it one a host, with its quota. No command stands between making it
# and knowing its name: a signal's trap would run there, and leave it.
make_group() {
    local tries=20
    until group=$(mktemp -d "$cgroups/bpt-emulate-$$-XXXXXX" 2>&1) && lock_group; do
        [ $((tries--)) -gt 0 ] ||
            stop 77 "no cgroup can be made: $group" "in a container: mount $cgroups writable"
    done 2>/dev/null
    if [ $cgroup_version = 2 ]; then
        { echo +cpu >"$cgroups/cgroup.subtree_control" && echo +cpu >"$group/cgroup.subtree_control"; } 2>/dev/null ||
            stop 77 "the controller cpu cannot be handed down from $cgroups" \
                "processes that are in it stand in the way: see cgroups(7)"
    fi
    local host
    for host in "${hosts[@]}"; do
        mkdir "$group/$host" && set_quota "$group/$host" "${cpu_of[$host]-}" ||
            stop 77 "no quota of processor time in $group" "see the words above"
    done
}

# Sets a quota of so many cores. A period short against a training step, or the host would be fast and then stand
# still; but a kernel gives no quota below 1 ms.
set_quota() { # GROUP CORES, perhaps empty
    [ -n "$2" ] || return 0
    local period_us=10000 quota_us
    awk "BEGIN { exit !($2 < 0.1) }" && period_us=100000
    quota_us=$(awk "BEGIN { printf \"%.0f\", $2 * $period_us }")
    if [ $cgroup_version = 1 ]; then
        echo $period_us >"$1/cpu.cfs_period_us" && echo "$quota_us" >"$1/cpu.cfs_quota_us"
    else
        echo "$quota_us $period_us" >"$1/cpu.max"
    fi
}

# Removes a group and those in it, whose processes are dead or die now.
remove_group() { # GROUP, perhaps empty or gone
    local left=50
    [ -n "$1" ] || return 0
    while [ -d "$1" ] && [ $((left--)) -gt 0 ]; do
        rmdir "$1"/*/ 2>/dev/null
        rmdir "$1" 2>/dev/null || sleep 0.1
    done
    [ ! -d "$1" ] || echo "emulate: warning: $1 cannot be removed" >&2
}

remove_dead_groups() {
    local dead fd
    for dead in "$cgroups"/bpt-emulate-*/; do
        { exec {fd}<"$dead"; } 2>/dev/null || continue
        flock --nonblock "$fd" && remove_group "${dead%/}"
        exec {fd}<&-
    done
}
