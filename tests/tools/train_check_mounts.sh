#!/usr/bin/env bash
# bpt-train --check where a file system is full, or is another one on some host. Needs root.
source "$(dirname "$0")/common.sh"
[ "$(id -u)" -eq 0 ] || skip "only root may mount"
mkdir small && mount -t tmpfs -o size=1m none small 2>/dev/null || skip "no tmpfs can be mounted"
trap 'umount "$work/small"; clean_up' EXIT
host=$(hostname)

run 2 ranks 2 "$train" --check --output small/run
says "error: rank 0 on $host: the file system of the run folder is full: " out
says ' hint: make room there' out
says 'tmpfs local' out
[ "$(grep -c '^error: ' out)" -eq 1 ] || die "not one error"
[ -z "$(ls -A small)" ] || die "left: $(ls -A small)"

# What --force removes makes room: half a megabyte of weights.
make_data 200 50
cat >wide.yaml <<'END'
name: wide
input: [1, 28, 28]
classes: 10
layers:
  - fc: {name: one, outputs: 150}
  - relu
  - fc: {name: two, outputs: classes}
END
job=("${common[@]}" --model wide.yaml --epochs 0.1)
# By what it keeps: a checkpoint has the momentum, too.
keeps=("${job[@]}" --epochs 1 --checkpoint-every 4 --output small/run)
fails_well 1 "$train" "${keeps[@]}"
takes=$(sed -n 's/.*: its weights and a checkpoint take \([0-9.]* MB\),.*/\1/p' err)
[ -n "$takes" ] || die "it is not refused for what it keeps"
run 2 "$train" "${keeps[@]}" --check
says "the weights and a checkpoint take $takes" out
run 0 "$train" "${keeps[@]}" --momentum 0 --checkpoint-every 0 --check
run 0 "$train" "${job[@]}" --output small/run
head -c 2m /dev/zero >small/other 2>/dev/null # which a finished run needs nothing of
run 0 "$train" "${job[@]}" --output small/run --resume auto
run 0 ranks 2 "$train" "${job[@]}" --output small/run --resume auto --check
says ': 0 errors' out
head -c 300k /dev/zero >small/other
run 2 "$train" "${job[@]}" --check --output small/next
says 'the file system of the run folder has room for 0.' out
says 'the weights take 0.6 MB' out
run 0 "$train" "${job[@]}" --check --output small/run --force
says 'MB are free with what is removed' out
[ -s small/run/model.safetensors ] || die "--check has removed something"
run 0 "$train" "${job[@]}" --output small/run --force

# Rank 1 has a folder of that name, too, and it is not the same.
unshare --mount true 2>/dev/null || skip "no mount namespaces"
mkdir shared
cat >apart <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 1 ] || exec "$@"
exec unshare --mount sh -c 'mount -t tmpfs none shared && exec "$@"' apart "$@"
END
chmod +x apart
run 2 ranks 3 ./apart "$train" --check --output shared/run
says "error: rank 1 on $host: does not see the run folder's place of rank 0" out
[ "$(grep -c '^error: ' out)" -eq 1 ] || die "not one error"
[ -z "$(ls -A shared)" ] || die "left: $(ls -A shared)"
