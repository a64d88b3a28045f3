#!/usr/bin/env bash
# bpt-train on two hosts, one of them slow and at the end of a slow link.
source "$(dirname "$0")/cluster.sh"
make_data 1000 200
make_model
run 0 "$emulate" --hosts fast:cpu=0.8,slow:cpu=0.3 --link 1gbit --link-of slow=100mbit -- \
    "$mpirun" -np 2 "$train" "${common[@]}" --update agwu --epochs 2 --output run
check_json run/summary.json '[r["host"] for r in d["ranks"]] == ["fast", "slow"]' \
    'all(r["samples"] > 0 and r["bytes_sent"] > 0 for r in d["ranks"])'
says " fast " run/log.rank-0.txt
says " slow " run/log.rank-1.txt
