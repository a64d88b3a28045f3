#!/usr/bin/env bash
# Ranks that were told unlike things, or have unlike files before them, do not train together.
source "$(dirname "$0")/common.sh"
make_data 400 100
make_model
mv data one
make_data 400 100
cp -r data two
"$ingest" glyphs --out two --split train --count 400 --seed 7 --force >out 2>err || die "another dataset"
cp tiny.yaml same.yaml
sed 's/filters: 8, kernel: 3/filters: 4, kernel: 3/' tiny.yaml >other.yaml
job=("${common[@]}" --epochs 0.5 --eval-every 0 --update agwu)

# pair STATUS OPTION... -- OPTION...: rank 0 with the first, rank 1 with the others
pair() {
    local wanted=$1 mine=()
    shift
    while [ "$1" != -- ]; do
        mine+=("$1")
        shift
    done
    shift
    rm -rf run
    run "$wanted" ranks 2 "${unlike[@]}" "$train" "${job[@]}" --output run "${mine[@]}" --others \
        "$train" "${job[@]}" --output run "$@"
}

refused() { # TEXT: said once, and nothing was begun
    says "$1"
    [ "$(grep -cF -- "$1" err)" -eq 1 ] || die "it says more than once: $1"
    [ ! -e run ] || die "a run folder after: $1"
}

# ---- options ----
pair 2 --update agwu -- --update sgwu
refused 'has --update sgwu, rank 0 on'
says 'has --update agwu'
pair 2 --lr 0.05 -- --lr 0.06
refused 'has --lr 0.06, rank 0 on'
pair 2 -- --max-staleness 3
refused 'has --max-staleness 3, rank 0 on'
pair 2 --init-weights none.safetensors --
refused 'has no --init-weights, rank 0 on'
pair 2 --check --
refused 'has --check false, rank 0 on'
pair 2 --output elsewhere --
refused 'has --output "run", rank 0 on'
[ ! -e elsewhere ] || die "rank 0 began by itself"

# ---- version ----
later=$PWD/bpt-train.later # as this one, but for the version that it says it has
python3 - "$train" "$later" <<'END' || die "no bpt-train of another version"
import subprocess, sys
version = subprocess.check_output([sys.argv[1], "--version"], text=True).split()[1].encode()
program = open(sys.argv[1], "rb").read()
held = version.ljust(32, b"\0")
assert held in program # sanitizers pad other literals with zeros, too: they may change with it
open(sys.argv[2], "wb").write(program.replace(held, b"77.7".ljust(32, b"\0")))
END
chmod +x "$later"
run 2 ranks 2 "${unlike[@]}" "$train" "${job[@]}" --output run --others "$later" "${job[@]}" --output run
refused "runs bpt 77.7, rank 0 on $(hostname) runs "
run 2 ranks 2 "${unlike[@]}" "$later" "${job[@]}" --output run --others "$train" "${job[@]}" --output run
refused "rank 0 on $(hostname) runs 77.7"
# Findings of --check are of one form in each build, too; and all ranks with another one are named.
run 2 ranks 4 "${unlike[@]}" "$train" --check --data data --others "$later" --check --data data
refused "rank 1 on $(hostname) runs bpt 77.7, rank 0 on $(hostname) runs "
says "; others than rank 0 run also ranks 2 on $(hostname), 3 on $(hostname)"
[ ! -s out ] || die "--check of unlike builds goes on"

# Before MPI is started nobody knows of another's errors: who has one says so, and once where all have it.
alone() { # TEXT: of rank 1, and of no other
    refused "$1"
    [ "$(grep -c '^bpt-train: ' err)" -eq 1 ] || die "not one error"
    says "bpt-train: rank 1 on $(hostname): "
}
pair 2 -- --foo
alone 'unknown option "foo"'
pair 2 -- --sync-every 0
alone '"0" is neither a number of steps'
pair 2 -- --config nowhere.yaml
alone 'nowhere.yaml'
pair 2 --foo -- --foo
[ "$(grep -c '^bpt-train: ' err)" -eq 1 ] || die "an error that all have is not said once"

# What may be another on every host.
pair 0 --threads 1 --loader-threads 1 --prefetch 3 --data one -- --threads 2 --loader-threads 2 --prefetch 5 --data data
pair 0 --log-level debug --policy fifo -- --log-level info --policy level

# ---- files ----
pair 3 --data one -- --data two
refused 'the dataset two of rank 1 on'
pair 3 --data two --update allreduce --batch-size 20 -- --data one --update allreduce --batch-size 20
refused 'the dataset one of rank 1 on'
"$ingest" glyphs --out two --split train --count 300 --force >out 2>err || die "a smaller dataset"
pair 3 --data one -- --data two
refused 'the dataset two of rank 1 on'
# Too small for the batch: it is the dataset that is wrong.
pair 3 --data one --batch-size 180 -- --data two --batch-size 180
refused 'the dataset two of rank 1 on'
pair 3 --data two --batch-size 180 -- --data one --batch-size 180
refused 'the dataset one of rank 1 on'

# A model of the same name in another place: the file of each host is what counts.
mkdir a b
cp same.yaml a/m.yaml
cp other.yaml b/m.yaml
rm -rf run
# shellcheck disable=SC2086 # several words
run 3 $BPT_MPIRUN -np 2 bash -c 'cd "$([ "$OMPI_COMM_WORLD_RANK" = 0 ] && echo a || echo b)" && exec "$@"' bash \
    "$train" "${job[@]}" --data "$PWD/one" --model m.yaml --output "$PWD/run"
refused 'the model m.yaml of rank 1 on'

# A checkpoint of another job at the same place: also where its momentum would be read by all together.
kept=("${common[@]}" --data "$PWD/one" --model "$PWD/same.yaml" --epochs 1 --eval-every 0 --checkpoint-every 4)
for options in "--update sgwu --server-momentum 0.3 --lr-scale none" "--update allreduce"; do
    for seed in 1 2; do
        in=$([ $seed = 1 ] && echo a || echo b)
        rm -rf $in/old
        # shellcheck disable=SC2086 # several words
        run 0 ranks 2 bash -c 'cd "$0" && exec "$@"' $in "$train" "${kept[@]}" $options --seed $seed --output old
        cut_back $in/old
    done
    [ "$(ls a/old/checkpoints)" = "$(ls b/old/checkpoints)" ] || die "checkpoints of other names"
    rm -rf run
    # shellcheck disable=SC2086 # several words
    run 3 $BPT_MPIRUN -np 2 bash -c 'cd "$([ "$OMPI_COMM_WORLD_RANK" = 0 ] && echo a || echo b)" && exec "$@"' bash \
        "$train" "${kept[@]}" $options --output "$PWD/run" --resume "old/checkpoints/$(ls a/old/checkpoints)"
    refused 'the checkpoint '
    says 'hint: give --resume a folder that all hosts share'
done
