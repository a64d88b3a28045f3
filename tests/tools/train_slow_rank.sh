#!/usr/bin/env bash
# Two ranks, one of them slowed fourfold: under agwu the fast one hardly waits, under sgwu with even
# shares it does, and communication takes next to no processor time. Needs root and cgroups (v1).
source "$(dirname "$0")/common.sh"
cpu=/sys/fs/cgroup/cpu
[ "$(id -u)" -eq 0 ] || skip "only root may slow a process down"
group=$(mktemp -d $cpu/bpt-test-XXXXXX 2>/dev/null) ||
    skip "no cpu cgroup of version 1"
leave() {
    clean_up
    local left=50
    until rmdir "$group" 2>/dev/null || [ $((left--)) -eq 0 ]; do sleep 0.1; done
}
trap leave EXIT
# A quarter of a core, in slices short against a step.
echo 10000 >"$group/cpu.cfs_period_us" && echo 2500 >"$group/cpu.cfs_quota_us" ||
    skip "no quota of processor time"

make_data 4000 200
# Rank 1 goes into the group before it becomes the program.
cat >slow <<END
#!/bin/sh
[ "\$OMPI_COMM_WORLD_RANK" = 1 ] && echo \$\$ >$group/cgroup.procs
exec "\$@"
END
chmod +x slow

# Runs a command; the file "others" tells how many cores on average the rest of the machine has taken meanwhile, by the
# kernel's counts: all that was not idle and that the command and what it started did not use.
cat >watch <<'END'
import os, resource, subprocess, sys, time
def busy():
    user, nice, system, _, _, irq, softirq, steal = map(int, open("/proc/stat").readline().split()[1:9])
    return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")
before, begin = busy(), time.monotonic()
status = subprocess.call(sys.argv[1:])
used = resource.getrusage(resource.RUSAGE_CHILDREN)
others = (busy() - before - used.ru_utime - used.ru_stime) / (time.monotonic() - begin)
print(f"{others:.3f}", file=open("others", "w"))
sys.exit(status)
END

both() { # RUN OPTION...
    local run=$1
    shift
    # shellcheck disable=SC2086 # several words
    run 0 python3 watch $BPT_MPIRUN -np 2 ./slow "$train" --data data --model lenet --batch-size 32 --sync-every 16 \
        --threads 1 --lr 0.005 --eval-every 0 --output "$run" --force "$@"
    python3 - "$run" "$(cat others)" <<'END'
import json, sys
d = json.load(open(sys.argv[1] + "/summary.json"))
print(f"others took {sys.argv[2]} cores")
print(f"{sys.argv[1]}: {d['seconds']:.1f} s, {d['images_per_s']:.0f} img/s")
for r in d["ranks"]:
    print(f"  rank {r['rank']}: share {r['share']:.2f}, {r['images_per_s']:.0f} img/s, waited "
          f"{100 * r['wait_s'] / d['seconds']:.2f} %, communication "
          f"{100 * r['comm_cpu_s'] / r['compute_s']:.2f} % of its computing time")
END
}

# Whether a fast rank waits can be seen where it has a core to itself: if others had more than a twentieth of one, a
# figure that is too high says nothing, and is taken again.
judge() { # RUN EXPRESSION...: as check_json, but 1 where others may be to blame
    json_holds "$1/summary.json" "${@:2}" 2>&1 && return
    python3 -c "raise SystemExit(not $(cat others) > 0.05)" || die "$1, and others took but $(cat others) cores"
    echo "$1: not judged, others took $(cat others) cores"
    return 1
}

# Long enough that what a start costs is little. At the end all meet, and the fast one waits for the
# step that the slow one is at: once.
for turn in 1 2; do
    both agwu --update agwu --epochs 7
    judge agwu \
        'd["ranks"][0]["images_per_s"] > 2 * d["ranks"][1]["images_per_s"]' \
        'd["ranks"][0]["samples"] > 2 * d["ranks"][1]["samples"]' \
        'all(r["comm_cpu_s"] < 0.02 * r["compute_s"] for r in d["ranks"])' \
        'all(r["wait_s"] < 0.02 * d["seconds"] for r in d["ranks"])' && break
    [ $turn -lt 2 ] || die "agwu, twice, and the machine was busy with something else"
done

# Whatever it hosts costs the fast one nothing, and the slow one time.
check_json agwu/exchange/shards.json 'd == {"begin": [0, 431080]}'

both sgwu --update sgwu --partition even --epochs 1
check_json sgwu/summary.json 'd["ranks"][0]["wait_s"] >= 0.2 * d["seconds"]'
