#!/usr/bin/env bash
# Scratch on a disk that fills up: --check finds it before, a run says it, and goes on once there is room. Needs root.
source "$(dirname "$0")/common.sh"
[ "$(id -u)" -eq 0 ] || skip "only root may mount"
make_data 4000 500
make_model
source "$here/scatter_help.sh"
mkdir small && mount -t tmpfs -o size=1m none small 2>/dev/null || skip "no tmpfs can be mounted"
trap 'umount "$work/small"; clean_up' EXIT
host=$(hostname)
full=("${scattered[@]}" --scratch "$work/small/scratch" --update agwu --rebalance 0 --sync-every 4 --epochs 20 --lr 0.01)

run 2 ranks 2 ./apart "$train" "${full[@]}" --check
says "error: rank 1 on $host: its scratch has room for " out
says ' hint: make room there, or name a --scratch on another disk' out
[ "$(grep -c '^error: ' out)" -eq 1 ] || die "not one error"
[ -z "$(ls -A small)" ] || die "left: $(ls -A small)"
mount -o remount,size=3m small
run 0 ranks 2 ./apart "$train" "${full[@]}" --check # for an even share, but not for all
says "warning: rank 1 on $host: its scratch has room for " out
mount -o remount,size=1m small

# Four rounds of half a megabyte or so: some come.
fails_well 1 ranks 2 ./apart "$train" "${full[@]}" --output "$work/run"
says 'o space left'
says 'hint: make room on the file system of the scratch folder; what has come stays there'
mount -o remount,size=20m small
run 0 ranks 2 ./apart "$train" "${full[@]}" --output "$work/run" --force
check_json run/summary.json 'd["ranks"][1]["data_samples_found"] > 0' 'd["ranks"][1]["data_samples_received"] > 0'
