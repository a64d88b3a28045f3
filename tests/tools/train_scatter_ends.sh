#!/usr/bin/env bash
# --data-mode scatter: killed and resumed nothing is sent again; what cannot be is said.
source "$(dirname "$0")/common.sh"
make_data
make_model
source "$here/scatter_help.sh"

kill_rank() { # N: the N-th local rank of the mpirun that is $pid, without a word
    local victim
    victim=$(rank_process "$1") || die "no rank $1"
    kill -KILL "$victim"
    wait "$pid" && die "a job whose rank was killed ends well"
}

# ---- killed ----

# All is given out in one round, which is there before the first step.
whole=(--update sgwu --partition even --lr 0.01 --checkpoint-every 20)
start_ranks 3 ./apart "$train" "${scattered[@]}" "${whole[@]}" --epochs 100000 --output "$work/killed"
await killed/log.rank-0.txt ': checkpoint '
kill_rank 3
run 0 ranks 3 ./apart "$train" "${scattered[@]}" "${whole[@]}" --epochs 2 --output "$work/next" --resume "$work/killed"
check_given next 'received == 0' 'found == held + test'
says ' 0 samples have come from rank 0 to begin with; '

# In the middle of its rounds: what had come is kept, what is missing comes, once.
rounds=(--update agwu --rebalance 0 --sync-every 4 --lr 0.01 --checkpoint-every 8 --scratch "$work/rounds")
start_ranks 3 ./apart "$train" "${scattered[@]}" "${rounds[@]}" --epochs "$(length 60 30)" --output "$work/torn"
await torn/log.rank-0.txt ': checkpoint '
kill_rank 2
run 0 ranks 3 ./apart "$train" "${scattered[@]}" "${rounds[@]}" --epochs "$(length 60 30)" --output "$work/torn" --resume auto
check_given torn 'found > 0' 'found + received >= held + test' 'found + received <= all + test'
python3 - <<'END_OF_CHECK' || die "rounds that were given out before the stop are not those of after"
import json
shares = [e for e in map(json.loads, open("torn/metrics.jsonl")) if e["event"] == "shares"]
assert [e["round"] for e in shares][-1] == 4, shares
END_OF_CHECK

# Stopped and resumed under allreduce: the weights are those of a run that never stopped.
one=(--update allreduce --epochs "$(length 12 5)" --lr 0.01 --eval-every 0 --scratch "$work/one")
run 0 ranks 2 ./apart "$train" "${scattered[@]}" "${one[@]}" --output "$work/unstopped"
rm -r one
# shellcheck disable=SC2086 # several words
stop_early "$work/stopped" USR1 $BPT_MPIRUN -np 2 ./apart "$train" "${scattered[@]}" "${one[@]}"
run 0 ranks 2 ./apart "$train" "${scattered[@]}" "${one[@]}" --output "$work/stopped" --resume auto
same_weights unstopped stopped
check_given stopped 'found > 0' 'found + received <= all + test'

# Told to stop while it is measured, which is noticed when the first samples are waited for. The folder is cleared by then.
run 0 ranks 2 ./apart "$train" "${scattered[@]}" --update sgwu --epochs 1 --output "$work/replaced"
for gone in 'what --force replaces is removed' 'while samples came'; do
    start_ranks 2 ./apart "$train" "${scattered[@]}" --update sgwu --epochs 1 --output "$work/replaced" --force --calibrate 3
    await replaced/run.lock ' '
    kill -USR1 "$pid"
    finish 75
    says "stopped before the first step, $gone"
    grep -q 'nothing is changed' err && die "it says that nothing is changed"
    rm -rf replaced # the second job has one of its own
done

# ---- what cannot be ----

good=("${scattered[@]}" --update sgwu --epochs 2)
for n in 2 3; do
    fails_well 3 ranks $n ./apart "$train" "${good[@]}" --data nowhere --output "$work/x"
    says 'bpt-train: there is no dataset at nowhere'
    says 'hint: with --data-mode scatter rank 0 has to have the dataset'
done
[ ! -e x ] || die "a failed start leaves a run folder"

(mkdir different && cd different && make_data 300 60) || die "data"
fails_well 3 ranks 3 ./apart "$train" "${good[@]}" --data different/data --output "$work/x"
says 'holds images of another dataset'

mkdir -p taken/rank-1
touch taken/rank-1/letters
fails_well 2 ranks 2 ./apart "$train" "${good[@]}" --scratch "$work/taken" --output "$work/x"
says 'is no scratch folder, and not empty: it holds letters'
fails_well 1 ranks 2 ./apart "$train" "${good[@]}" --scratch /proc/nobody/writes/here --output "$work/x"

# Two jobs with one scratch.
start_ranks 2 ./apart "$train" "${scattered[@]}" --update sgwu --epochs 100000 --output "$work/holds"
await_steps holds
mv err first
fails_well 1 ranks 2 ./apart "$train" "${good[@]}" --output "$work/x"
says 'is being written by another process'
kill -USR1 "$pid"
finish 75

# Records in rank 0's dataset that are damaged: found when they are to be sent.
damage() { # FILE: bytes of its middle, where images are
    python3 - "$1" <<'END_OF_DAMAGE' || die "no images found in $1"
import sys
data = bytearray(open(sys.argv[1], "rb").read())
changed = 0
for at in range(len(data) // 3, 2 * len(data) // 3, 512):
    if data[at:at + 16].count(0) == 0:
        data[at + 8] ^= 0x55
        changed += 1
open(sys.argv[1], "wb").write(data)
assert changed > 0
END_OF_DAMAGE
}
cp -r data damaged
damage damaged/data.mdb
for update in agwu sgwu allreduce; do
    [ $update = agwu ] || variants || continue
    fails_well 3 ranks 3 ./apart "$train" "${good[@]}" --data damaged --update $update --scratch "$work/d-$update" --output "$work/x"
    says 'damaged: split'
    rm -rf x
done

# In scratch: found when they are read; without it they are sent again.
whole=("${good[@]}" --partition even --scratch "$work/worn")
run 0 ranks 2 ./apart "$train" "${whole[@]}" --output "$work/before"
damage worn/rank-1/samples.mdb
fails_well 3 ranks 2 ./apart "$train" "${whole[@]}" --output "$work/x"
says "bpt-train: rank 1 on $(hostname): scratch folder $work/worn/rank-1 is damaged"
says 'hint: remove it: what it held is sent again'
printf 'no LMDB' | dd of=worn/rank-1/samples.mdb bs=8192 conv=notrunc,sync status=none
fails_well 3 ranks 2 ./apart "$train" "${whole[@]}" --output "$work/x"
says "hint: remove $work/worn/rank-1: what it held is sent again"
rm -rf worn x
run 0 ranks 2 ./apart "$train" "${whole[@]}" --output "$work/after"
same_weights before after

# ---- options ----

fails_well 2 "$train" "${common[@]}" --output x --data-mode scatter
says 'bpt-train: --scratch is missing'
fails_well 2 "$train" "${common[@]}" --output x --scratch here
says '--scratch is not used by --data-mode shared'
for task in --bench\ 2 --replay\ x; do
    # shellcheck disable=SC2086 # several words
    fails_well 2 "$train" --model tiny.yaml $task --data-mode scatter --scratch here
    says "--data-mode is not used by ${task% *}"
done

# A plan has what giving out samples takes, and says that without others it takes nothing.
run 0 ranks 2 "$train" "${scattered[@]}" --update sgwu --dry-run
says 'samples given out' out
run 0 ranks 2 "$train" "${common[@]}" --data-mode scatter --dry-run
says 'samples given out' out
run 0 ranks 2 "$train" "${common[@]}" --dry-run
grep -q 'samples given out' out && die "each rank has the dataset, and the plan gives out samples"
run 0 "$train" "${common[@]}" --data-mode scatter --dry-run
says '--data-mode scatter: without effect on 1 rank'
grep -q 'samples given out' out && die "one rank gives samples to nobody"
[ ! -e x ] || die "a refused start, or a plan, leaves a run folder"
