#!/usr/bin/env bash
# --stage: the dataset is read from a copy on the machine's own disk, made once, and training is the same.
source "$(dirname "$0")/common.sh"
make_data
make_model
job=("${common[@]}" --update sgwu --partition even --epochs 1)

copy_of() { # DIR: the one copy in it, whole
    local all=("$1"/data-*)
    [ "${#all[@]}" -eq 1 ] || die "not one copy in $1: ${all[*]}"
    cmp "${all[0]}/data.mdb" data/data.mdb || die "the copy in $1 is not the dataset"
    [ -s "${all[0]}/stage.seal" ] || die "no seal in $1"
    copy=${all[0]}
}

# ---- one copy for all ranks of a machine ----

run 0 ranks 3 "$train" "${job[@]}" --output plain
! grep -q 'network file system' err || die "advice where none is needed"
run 0 ranks 3 "$train" "${job[@]}" --stage stage --output staged
says 'the dataset is copied: '
says 'it is read from its copy in '
same_weights plain staged
copy_of stage
run 0 ranks 3 "$train" "${job[@]}" --config staged/config.yaml --output again # its configuration says so too
says 'the dataset is there already: '
same_weights plain again

# ---- a copy that was altered ----

python3 - "$copy/data.mdb" <<'END_OF_ALTER' || die "cannot alter the copy"
import os, sys
with open(sys.argv[1], "r+b") as f:
    size = os.path.getsize(sys.argv[1])
    for at in range(size // 3, 2 * size // 3, 512):
        f.seek(at)
        f.write(b"\x55")
END_OF_ALTER
run 0 ranks 2 "$train" "${job[@]}" --stage stage --output altered
says 'is not as it was sealed: it is checked'
says 'the dataset is copied: '
copy_of stage
run 0 ranks 2 "$train" "${job[@]}" --output two
same_weights two altered

# Damage that its times do not show: the records tell, and the next run makes it anew.
hide_damage() {
    python3 - "$copy" <<'END_OF_HIDE' || die "cannot hide damage"
import os, sys
path = sys.argv[1] + "/data.mdb"
with open(path, "r+b") as f:
    at = os.path.getsize(path) // 2 // 4096 * 4096 + 2000 # within the pixels of a value
    f.seek(at)
    byte = f.read(1)[0]
    f.seek(at)
    f.write(bytes([byte ^ 0x55]))
seal = open(sys.argv[1] + "/stage.seal").read().split()
info = os.stat(path)
def time(ns):
    return f"{ns // 10**9}.{ns % 10**9:09d}"
seal[3:] = [str(info.st_ino), str(info.st_size), time(info.st_mtime_ns), time(info.st_ctime_ns)]
open(sys.argv[1] + "/stage.seal", "w").write(" ".join(seal) + "\n")
END_OF_HIDE
}
hide_damage
fails_well 3 ranks 2 "$train" "${job[@]}" --stage stage --output hidden
says "$copy is damaged"
says 'hint: run this again'
run 0 ranks 2 "$train" "${job[@]}" --stage stage --output hidden --force
says 'the dataset is copied: '
same_weights two hidden
evaluated=("$eval" --data data --split train --model tiny.yaml --weights two/model.safetensors --stage stage)
hide_damage
fails_well 3 "${evaluated[@]}"
says "$copy is damaged"
says 'hint: run this again'
run 0 "${evaluated[@]}"
says 'the dataset is copied: '

# ---- two jobs at once, and one that is not let in ----

start_ranks 2 "$train" "${job[@]}" --stage both --output one-of-two
"$train" "${common[@]}" --epochs 0.5 --stage both --output other-of-two >out2 2>err2 </dev/null || die "the second of two jobs"
finish 0
same_weights two one-of-two
copy_of both

flock "$copy/stage.lock" sleep 2 &
started+=($!)
sleep 0.2
run 0 "$train" "${common[@]}" --epochs 0.1 --stage both --output waited
flock "$copy/stage.lock" sleep 60 &
started+=($!)
holder=$!
sleep 0.2
start_ranks 2 "$train" "${job[@]}" --stage both --output never
await err 'waiting for another job'
kill -TERM "$(rank_process 2)"
finish 75 30
says 'stopped before the first step'
kill $holder $(pgrep -P $holder) 2>/dev/null

# ---- other ways to read it ----

# Each machine has a folder of its own; here, each rank.
run 0 ranks 2 "${unlike[@]}" "$train" "${job[@]}" --stage disk-0 --output unlike --others \
    "$train" "${job[@]}" --stage disk-1 --output unlike
same_weights two unlike
copy_of disk-0
copy_of disk-1

# Or only some have one.
run 0 ranks 2 "${unlike[@]}" "$train" "${job[@]}" --output some --others "$train" "${job[@]}" --stage disk-1 --output some
same_weights two some

source "$here/scatter_help.sh"
run 0 ranks 3 ./apart "$train" "${scattered[@]}" --stage "$work/scattered" --update sgwu --partition even --epochs 1 \
    --output "$work/scattered-run"
same_weights plain scattered-run
copy_of scattered

run 0 ranks 3 "$train" "${common[@]}" --stage with-server --update agwu --servers 1 --epochs 0.5 --output served
copy_of with-server

run 0 "$eval" --data data --model tiny.yaml --weights plain/model.safetensors --json
mv out plain-eval
run 0 "$eval" --data data --model tiny.yaml --weights plain/model.safetensors --json --stage stage
says 'the dataset is there already: '
cmp out plain-eval || die "another evaluation of a copy"

# ---- a look before, and what goes wrong ----

run 0 ranks 2 "$train" "${job[@]}" --stage nowhere/yet --output checked --check
[ ! -e nowhere ] || die "--check makes the folder of a copy"
says ' GB free ' out
says 'stage' out
touch file
fails_well 2 ranks 2 "$train" "${job[@]}" --stage file --output x
fails_well 2 "$train" "${common[@]}" --stage '' --output x
fails_well 3 ranks 2 "$train" "${job[@]}" --data none --stage stage --output x
says 'there is no dataset at none'
[ ! -e x ] || die "a failed start leaves a run folder"

# ---- a network file system ----

mkdir on-network && cp -r data on-network/
nfs=(env "LD_PRELOAD=$BPT_HELPERS/libnetwork_statfs.so" "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0")
run 0 ranks 2 "${nfs[@]}" "$train" "${job[@]}" --data on-network/data --output advised
says 'on-network/data is on a network file system (nfs): --stage DIR copies it'
[ "$(grep -c 'network file system' err)" -eq 1 ] || die "it is said more than once"
same_weights two advised
run 0 ranks 2 "${nfs[@]}" "$train" "${job[@]}" --data on-network/data --stage near --output taken
! grep -q 'network file system' err || die "advice where it is taken"
same_weights two taken
run 0 ranks 2 "${nfs[@]}" "$train" "${job[@]}" --data on-network/data --stage on-network/stage --output x --check
says 'its copy of the dataset is on a network file system (nfs)' out
