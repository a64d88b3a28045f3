#!/usr/bin/env bash
# --stage on a disk that is too small: an error before and while it is copied, and it goes on once there is room. Needs
# root.
source "$(dirname "$0")/common.sh"
[ "$(id -u)" -eq 0 ] || skip "only root may mount"
make_data 9000 500 # two blocks
make_model
mkdir small && mount -t tmpfs -o size=1m none small 2>/dev/null || skip "no tmpfs can be mounted"
trap 'umount "$work/small"; clean_up' EXIT
job=("${common[@]}" --update sgwu --epochs 0.1 --stage small/stage)

run 2 ranks 2 "$train" "${job[@]}" --check
says "error: rank 0 on $(hostname): the disk of its --stage has room for " out
says ' hint: make room there' out
[ "$(grep -c '^error: ' out)" -eq 1 ] || die "not one error"
[ -z "$(ls -A small)" ] || die "left: $(ls -A small)"
fails_well 1 ranks 2 "$train" "${job[@]}" --output x
says 'no room in '
grep -qE '[0-9.]+ MB are to be copied yet, [0-9.]+ MB are free' err || die "it does not say how much"
[ ! -e x ] || die "a failed start leaves a run folder"
mount -o remount,size=40m small
run 0 ranks 2 "$train" "${job[@]}" --output run
says 'the dataset is copied: '
cmp small/stage/data-*/data.mdb data/data.mdb || die "the copy is not the dataset"
