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

both() { # RUN OPTION...
    local run=$1
    shift
    run 0 ranks 2 ./slow "$train" --data data --model lenet --batch-size 32 --sync-every 16 --threads 1 --lr 0.005 \
        --eval-every 0 --output "$run" "$@"
    python3 - "$run" <<'END'
import json, sys
d = json.load(open(sys.argv[1] + "/summary.json"))
print(f"{sys.argv[1]}: {d['seconds']:.1f} s, {d['images_per_s']:.0f} img/s")
for r in d["ranks"]:
    print(f"  rank {r['rank']}: share {r['share']:.2f}, {r['images_per_s']:.0f} img/s, waited "
          f"{100 * r['wait_s'] / d['seconds']:.2f} %, communication "
          f"{100 * r['comm_cpu_s'] / r['compute_s']:.2f} % of its computing time")
END
}

# Long enough that what a start costs is little. At the end all meet, and the fast one waits for the
# step that the slow one is at: once.
both agwu --update agwu --epochs 20
check_json agwu/summary.json \
    'd["ranks"][0]["images_per_s"] > 2 * d["ranks"][1]["images_per_s"]' \
    'd["ranks"][0]["samples"] > 2 * d["ranks"][1]["samples"]' \
    'all(r["comm_cpu_s"] < 0.02 * r["compute_s"] for r in d["ranks"])' \
    'all(r["wait_s"] < 0.02 * d["seconds"] for r in d["ranks"])'

both sgwu --update sgwu --partition even --epochs 3
check_json sgwu/summary.json 'd["ranks"][0]["wait_s"] >= 0.2 * d["seconds"]'
