#!/usr/bin/env bash
# The plan of memory is true: what a run takes at most is near what --dry-run says, and a plan that
# the machine has no memory for is refused with the batch that fits.
source "$(dirname "$0")/common.sh"
make_data 1024 64
make_model

plan() { # COMMAND...: bytes of the whole plan
    run 0 "$@" --dry-run
    planned=$(sed -nE 's/^  total +([0-9]+) .*/\1/p' out)
    [ -n "$planned" ] || die "no total in the plan"
}

near_plan() { # RUN: the peak of each rank is within 10 % and 100 MB of the plan
    check_json "$1/summary.json" \
        "all(abs(r['peak_rss_bytes'] - $planned) <= 0.1 * $planned + 100e6 for r in d['ranks'])"
}

# The total is that of the rows. A batch of 20 images is in memory once for each of those that come next, and three times
# for an evaluation; a vector has 2802 weights.
rows() { # VECTORS COMMAND...
    plan "${@:2}"
    python3 - "$1" "$planned" <<'END' || die "the rows of the plan: ${*:2}"
import re, sys
vectors, planned = map(int, sys.argv[1:])
rows = {name: int(n) for name, n in re.findall(r"^  ([a-z ]+?) +(\d+) +[\d.]+ MB$", open("out").read(), re.M)}
total = rows.pop("total")
assert len(rows) >= 10 and total == planned == sum(rows.values()), (rows, total)
assert rows["batches"] == (5 + 3) * 20 * (28 * 28 * 4 + 12), rows
assert rows["vectors of weights"] == vectors * 2802 * 4, rows
assert rows["order of samples"] >= 4 * 1024, rows
END
}
small_plan=("$train" "${common[@]}" --prefetch 5)
rows 2 "${small_plan[@]}"
rows 3 ranks 2 "${small_plan[@]}" --update agwu # of the weights that came last, and of those that were pushed
rows 2 ranks 2 "${small_plan[@]}" --update allreduce --batch-size 40

# Sanitizers take memory of their own.
if ! ldd "$train" | grep -qE 'lib(a|t|ub)san'; then
    # Most of it activations, then most of it weights; what either needs is several times the slack.
    activations=(--data data --model resnet20 --batch-size 512 --epochs 1 --threads 2)
    plan "$train" "${activations[@]}"
    [ "$planned" -gt 500000000 ] || die "a plan of $planned bytes shows nothing"
    run 0 "$train" "${activations[@]}" --output runs/activations
    near_plan runs/activations

    cat >heavy.yaml <<'END'
name: heavy
input: [1, 28, 28]
classes: 10
layers:
  - fc: {outputs: 4096}
  - relu
  - fc: {outputs: 4096}
  - relu
  - fc: {outputs: classes}
END
    weights=(--data data --model heavy.yaml --batch-size 64 --epochs 0.25 --threads 1 --lr 0.001)
    plan "$train" "${weights[@]}"
    [ "$planned" -gt 300000000 ] || die "a plan of $planned bytes shows nothing"
    run 0 "$train" "${weights[@]}" --output runs/weights
    near_plan runs/weights
    for update in agwu allreduce; do
        plan ranks 2 "$train" "${weights[@]}" --update $update
        run 0 ranks 2 "$train" "${weights[@]}" --update $update --output runs/$update
        near_plan runs/$update
    done
fi

# ---- machines of a made-up size ----

small() { # BYTES: sets $small, before a command on a machine with so much memory
    small=(env "LD_PRELOAD=$BPT_HELPERS/libsmall_memory.so" "BPT_TEST_MEMORY=$1"
        "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0")
}
named_in() { # FILE: the batch that it names as the largest
    sed -nE 's/.*the largest that fits is --batch-size ([0-9]+)(;.*)?$/\1/p' "$1"
}

# Of a network in two parts the largest batch is the same whatever was asked for, and fits; the next does not.
small 400000000
for update in allreduce agwu; do
    [ $update = agwu ] || variants || continue
    parted=(ranks 2 "${small[@]}" "$train" --model lenet --placement fc1 --threads 1 --dry-run --update $update)
    run 0 "${parted[@]}" --batch-size 4096
    largest=$(named_in out)
    [ -n "$largest" ] || die "no batch that fits"
    for asked in 3000 1700 $((largest + 1)); do
        run 0 "${parted[@]}" --batch-size $asked
        [ "$(named_in out)" = "$largest" ] || die "asked for $asked: another batch than $largest fits"
    done
    run 0 "${parted[@]}" --batch-size "$largest"
    grep -q 'more than the ' out && die "batch $largest does not fit"
done

# What does not fit with any batch, and a server that does not: said before a run as by it.
small 64000000
run 0 "${small[@]}" "$train" --model resnet50 --batch-size 4 --dry-run
says 'more than the 64.0 MB of this machine; not even one sample fits' out
grep -q 'batch-size 0$' out && die "a batch of no samples is named"
fails_well 2 "${small[@]}" "$train" --model resnet50 --threads 1 --bench 1 --batch-size 4
says 'hint: not even one sample fits; --dry-run shows what takes the memory'
# lenet: a worker with one sample takes 14.6 MB; a server of eight keeps weights of each, 19 MB.
small 150000000
run 0 ranks 9 "${small[@]}" "$train" --model lenet --update agwu --servers 1 --batch-size 1 --threads 1 --dry-run
[ "$(grep -c 'more than the ' out)" -eq 1 ] || die "not the server alone is too large"
says 'more than the 16.7 MB of this machine for each rank on it; give more --servers' out

# A replay has the networks of all ranks in one process: four of lenet, with 64 samples each, and no batch to lower.
run 0 ranks 4 "$train" "${common[@]}" --model lenet --batch-size 64 --update agwu --epochs 0.5 --output runs/four
small 30000000
fails_well 2 "${small[@]}" "$train" --replay runs/four
says 'a replay of 4 ranks needs 0.'
small 1000000000
run 0 "${small[@]}" "$train" --replay runs/four

# Batches that are cut by speed, here 1 to 4 by the threads: the rank with most of one names a batch that it then takes.
cat >each <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && exec "$@" --threads 4
exec "$@" --threads 1
END
chmod +x each
plan "$train" "${common[@]}" --threads 4 --batch-size 700
small $((2 * planned))
cut=(ranks 2 ./each "${small[@]}" "$train" "${common[@]}" --update allreduce --partition idpa --calibrate 0)
fails_well 2 "${cut[@]}" --batch-size 1024 --output runs/cut
says 'rank 1 on '
largest=$(named_in err)
[ -n "$largest" ] || die "no batch that fits"
run 0 "${cut[@]}" --batch-size "$largest" --epochs 1 --lr 0.001 --output runs/cut
says 'each batch is cut by speed'

# ---- this machine ----

# A model whose batch of 1024 takes more than twice the memory of the machine.
channels=$(python3 -c 'import os
memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
print(int(2 * memory / (1024 * 28 * 28 * 4)))')
[ "$channels" -le 1000000 ] || exit 0 # a model cannot be as large as this machine
cat >wide.yaml <<END
name: wide
input: [1, 28, 28]
classes: 10
layers:
  - pad_channels: {channels: $channels}
  - global_avgpool
  - fc: {outputs: classes}
END
wide=(--data data --model wide.yaml --threads 1)
memory=$(python3 -c 'import os; print(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))')
check_largest() { # FACTOR LIMIT COMMAND...: what the hint names fits, and the next does not
    local factor=$1 limit=$2 largest
    shift 2
    largest=$(sed -nE 's/^hint: the largest that fits is --batch-size ([0-9]+);.*/\1/p' err)
    [ -n "$largest" ] || die "no batch that fits"
    plan "$@" --batch-size "$largest"
    [ "$planned" -le "$limit" ] || die "batch $largest does not fit: $planned bytes"
    plan "$@" --batch-size $((largest + factor))
    [ "$planned" -gt "$limit" ] || die "batch $((largest + factor)) fits too: $planned bytes"
}
fails_well 2 "$train" "${wide[@]}" --output runs/wide --batch-size 1024
grep -qE "GB of memory, (this machine has|a control group leaves) " err || die "who has too little is not said"
[ ! -e runs/wide ] || die "a refused run leaves a folder"
check_largest 1 "$memory" "$train" "${wide[@]}"
run 0 "$train" "${wide[@]}" --dry-run --batch-size 1024
says "the largest that fits is --batch-size" out
if variants; then
    fails_well 2 "$train" --model resnet50 --threads 1 --bench 1 --batch-size 60000
    says 'hint: the largest that fits is --batch-size'
fi
# What does not suit the dataset is heard of first.
fails_well 2 "$train" "${wide[@]}" --bench 1 --batch-size 1024 --augment crop=400
says crop
fails_well 2 ranks 2 "$train" "${wide[@]}" --output runs/wide --batch-size 1024 --update allreduce
says "for each rank on it"
check_largest 2 $((memory / 2)) ranks 2 "$train" "${wide[@]}" --update allreduce
