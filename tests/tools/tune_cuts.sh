#!/usr/bin/env bash
# Convolutions cut as a tuned file says: a run with them is stopped and goes on bit for bit, is replayed and repeated
# from its own folder alone, and says what it did. The costs are made up, so that there are cuts on any machine.
source "$(dirname "$0")/common.sh"
make_data 600 100
cat >wide.yaml <<'MODEL'
name: wide
input: [1, 28, 28]
classes: 10
layers:
  - conv: {name: conv1, filters: 32, kernel: 5}
  - relu
  - maxpool: {name: pool1, kernel: 2}
  - conv: {name: conv2, filters: 32, kernel: 3}
  - relu
  - maxpool: {name: pool2, kernel: 2}
  - conv: {name: conv3, filters: 32, kernel: 3, pad: 1}
  - relu
  - fc: {name: fc1, outputs: classes}
MODEL

# Each of two ranks that share two cores has one, as one rank that may use the first.
cores=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2], sep=",")')
one() { # COMMAND...: on one rank
    taskset -c "${cores%,*}" "$@"
}
two() { # COMMAND...: on two
    # shellcheck disable=SC2086 # several words
    taskset -c "$cores" $BPT_MPIRUN -np 2 "$@"
}

# ---- files: with these cuts, with others, with none ----
ended() { # puts right what the last line says of the rows
    local text
    text=$(sed '/^rows:/d')
    printf '%s\nrows: %s\n' "$text" "$(grep -c '^ *- \[' <<<"$text")"
}
run 0 one "$tune" --model wide.yaml --input-size 28 28 --classes 10 --batch-size 4 --out any.yaml --budget 1
sed '/^cuts:/,$d' any.yaml | ended >whole.yaml
# conv2 along rows, which changes last bits where kernels take it; conv3 along channels.
rows='[32, 12, 12, 32, 10, 10, 3, 3, 1, 1, 0, 0, 1, 1, 1]'
channels='[32, 5, 5, 32, 5, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1]'
entries() { # CONVOLUTION CUT
    for step in forward backward_data; do
        echo "    - [$step, fp32, direct, $1, [1, 1, 1], 100000]"
        echo "    - [$step, fp32, direct, $1, $2, 10000]"
    done
}
section() { # MARGIN
    printf 'cuts:\n  workers: 64\n  margin-percent: %s\n  costs:\n' "$1"
    entries "$rows" '[1, 1, 2]'
    entries "$channels" '[1, 2, 1]'
}
(cat whole.yaml && section 5) | ended >cut.yaml
(cat whole.yaml && section 7) | ended >other.yaml

# ---- one rank ----
local=(--data data --model wide.yaml --batch-size 4 --lr 0.02 --log-interval 0.1 --eval-every 1)
run 0 one "$train" "${local[@]}" --epochs 1 --output runs/whole --tuned whole.yaml
grep -q 'cut by measured costs' err && die "it says that it cuts, and does not"
check_json runs/whole/summary.json 'd["ranks"][0]["tuned"] is True' 'd["ranks"][0]["cuts"] is False'
run 0 one "$train" "${local[@]}" --epochs 1 --output runs/cut --tuned cut.yaml --log-level debug
says 'kinds of tasks, convolutions cut by measured costs'
says 'layer conv3: forward in parts of 1 samples, 2 ranges of channels, 1 of rows'
check_json runs/cut/summary.json 'd["ranks"][0]["tuned"] is True' 'd["ranks"][0]["cuts"] is True'
near_weights runs/whole runs/cut 1e-2
# Threads change no bit with cuts either.
run 0 one "$train" "${local[@]}" --epochs 1 --output runs/threads --tuned cut.yaml --threads 3
same_weights runs/cut runs/threads
# A run is repeated from its folder, also if the file is another one by now.
cp cut.yaml moved.yaml
run 0 one "$train" "${local[@]}" --epochs 1 --output runs/moved --tuned moved.yaml
rm moved.yaml
run 0 one "$train" --config runs/moved/config.yaml --tuned runs/moved/tuned.rank-0.yaml --output runs/again
same_weights runs/cut runs/again
run 0 one "$train" --model wide.yaml --batch-size 4 --bench 2 --tuned cut.yaml
says 'convolutions cut by measured costs'
# Costs that cut nothing.
(cat whole.yaml && echo 'cuts: {workers: 64, costs: []}') | ended >empty.yaml
run 0 one "$train" "${local[@]}" --epochs 0.1 --output runs/empty --tuned empty.yaml
grep -q 'cut by measured costs' err && die "it says that it cuts, and there are no costs"
check_json runs/empty/summary.json 'd["ranks"][0]["tuned"] is True' 'd["ranks"][0]["cuts"] is False'
sed 's/workers: 64/workers: 0/' cut.yaml >wrong.yaml
fails_well 2 one "$train" "${local[@]}" --epochs 1 --output runs/wrong --tuned wrong.yaml
says 'wrong.yaml:'

# ---- stopped and gone on ----
# The last tuned file counts, as any option does; who goes on with other cuts is told.
long=("${local[@]}" --epochs 8 --checkpoint-every 150)
run 0 one "$train" "${long[@]}" --output runs/long --tuned cut.yaml
for by in same other none; do
    case $by in
    same) file=(--tuned cut.yaml) ;;
    other) file=(--tuned other.yaml) ;;
    none) file=() ;;
    esac
    rm -rf runs/new
    run 0 one "$train" "${long[@]}" "${file[@]}" --output runs/new --resume runs/long/checkpoints/step-00000900
    if [ $by = same ]; then
        same_weights runs/long runs/new
        grep -q 'has changed since' err && die "a warning, and nothing differs"
    else
        says 'what rank 0 cuts convolutions by has changed since runs/long/checkpoints/step-00000900'
    fi
done
[ ! -e runs/new/tuned.rank-0.yaml ] || die "a file of a run that was not tuned"
# In its own folder such a run takes away what it was tuned by, and nothing else.
rm -rf runs/new
cp -r runs/long runs/new
cp runs/new/tuned.rank-0.yaml runs/new/tuned.rank-0.old.yaml
run 0 one "$train" "${long[@]}" --output runs/new --resume runs/new
[ "$(cd runs/new && echo tuned.*)" = tuned.rank-0.old.yaml ] || die "left: $(ls runs/new)"
stop_early runs/stop TERM taskset -c "${cores%,*}" "$train" "${long[@]}" --tuned cut.yaml
run 0 one "$train" "${long[@]}" --output runs/stop --tuned cut.yaml --resume auto
same_weights runs/long runs/stop

# ---- two ranks ----
# Under allreduce last bits are those of a run without a stop, under agwu a replay has those of the run.
all=(--data data --model wide.yaml --batch-size 8 --lr 0.02 --epochs 2 --update allreduce --checkpoint-every 50)
run 0 two "$train" "${all[@]}" --output runs/all --tuned cut.yaml
check_json runs/all/summary.json 'all(r["cuts"] for r in d["ranks"])'
run 0 two "$train" "${all[@]}" --output runs/all-on --tuned cut.yaml --resume runs/all/checkpoints/step-00000100
same_weights runs/all runs/all-on
async=(--data data --model wide.yaml --batch-size 4 --lr 0.02 --epochs 3 --update agwu --sync-every 3)
run 0 two "$train" "${async[@]}" --output runs/async --tuned cut.yaml
mv cut.yaml gone.yaml
run 0 "$train" --replay runs/async --log-level debug
says 'bit for bit'
says 'layer conv3: forward in parts of 1 samples, 2 ranges of channels, 1 of rows'
if ! cmp -s runs/whole/model.safetensors runs/cut/model.safetensors; then # kernels took the rows
    cp -r runs/async runs/unlike
    cp whole.yaml runs/unlike/tuned.rank-1.yaml
    fails_well 3 "$train" --replay runs/unlike
    says 'weights differ'
    rm -r runs/unlike
fi
# Ranks of unlike machines may cut each in its own way: what counts is what a rank has kept.
cp -r runs/async runs/unlike
sed 's/^cuts:/cuts: 3\nkuts:/' gone.yaml >runs/unlike/tuned.rank-1.yaml
fails_well 2 "$train" --replay runs/unlike
says 'runs/unlike/tuned.rank-1.yaml'
rm runs/unlike/tuned.rank-1.yaml
fails_well 2 "$train" --replay runs/unlike
says 'runs/unlike/tuned.rank-1.yaml'
# One rank may be tuned and another not: of each counts what the summary says, whatever its neighbours have kept.
for tuned in 0 1; do
    to=runs/one-$tuned options=("" "")
    options[tuned]='--tuned gone.yaml'
    # shellcheck disable=SC2086 # several words
    run 0 two "${unlike[@]}" "$train" "${async[@]}" --output $to ${options[0]} --others "$train" "${async[@]}" --output $to ${options[1]}
    check_json $to/summary.json "[r['tuned'] for r in d['ranks']] == [$tuned == 0, $tuned == 1]"
    run 0 "$train" --replay $to
    says 'bit for bit'
    cp $to/tuned.rank-$tuned.yaml $to/tuned.rank-$((1 - tuned)).yaml
    run 0 "$train" --replay $to
    rm $to/tuned.rank-$tuned.yaml
    fails_well 2 "$train" --replay $to
    says "$to/tuned.rank-$tuned.yaml"
done
# A run in the place of another one leaves none of its files.
run 0 one "$train" "${local[@]}" --epochs 0.1 --output runs/async --force
[ -z "$(find runs/async -name 'tuned.rank-*')" ] || die "files of another run: $(ls runs/async)"
exit 0
