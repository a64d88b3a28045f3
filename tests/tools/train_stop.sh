#!/usr/bin/env bash
# A stop that one rank is told of while others evaluate, which takes them minutes: it waits for no evaluation, which
# the checkpoint has for the job that goes on.
source "$(dirname "$0")/common.sh"
make_data 40 12000
cat >wide.yaml <<'YAML'
name: wide
input: [1, 28, 28]
classes: 10
layers:
  - conv: {name: conv1, filters: 256, kernel: 3, pad: 1}
  - conv: {name: conv2, filters: 256, kernel: 3, pad: 1}
  - relu
  - maxpool: {name: pool2, kernel: 2}
  - fc: {name: fc1, outputs: classes}
YAML
wide=(--data data --model wide.yaml --batch-size 1 --threads 1 --lr 0.001 --log-interval 0 --calibrate 0.05
    --loader-threads 1 --epochs 1000 --eval-every 0.1 --sync-every 1)

pushes() { # RUN RANK: lines of its log so far that are pushes
    local log=$1/exchange/steps.rank-$2.jsonl
    [ -e "$log" ] && grep -c pushed_at "$log" || echo 0
}

# Rank 0 evaluates alone, while rank 1 trains on, and is told.
start_ranks 2 "$train" "${wide[@]}" --update agwu --output runs/agwu
await_steps runs/agwu
for turn in $(seq 600); do
    [ "$(pushes runs/agwu 1)" -gt $(($(pushes runs/agwu 0) + 20)) ] && break
    sleep 0.1
done
[ "$turn" -lt 600 ] || die "rank 0 does not evaluate"
kill -s TERM "$(rank_process 2)" || die "no second rank"
finish 75 30
says "checkpoint saved"
says "rank  host" # what each has brought until then

# All evaluate, and one is told.
start_ranks 2 "$train" "${wide[@]}" --update sgwu --output runs/sgwu
await_steps runs/sgwu # the evaluation follows
sleep 1
kill -s TERM "$(rank_process 2)" || die "no second rank"
finish 75 30
says "checkpoint saved"
for run in agwu sgwu; do
    grep -q '"event": "eval"' runs/$run/metrics.jsonl && die "$run: an evaluation has ended before the stop"
    grep -q '"eval_due": true' runs/$run/checkpoints/*/rank-0.json || die "$run: no evaluation is due"
done

# What was trained before the evaluation, no line of which was due yet, is told of all the same.
start "$train" "${wide[@]}" --log-interval 3600 --checkpoint-every 3 --output runs/rest
await runs/rest/checkpoints/step-00000003/DONE '' # the evaluation follows after the next step
sleep 1
kill -s TERM "$pid"
finish 75 30
! grep -q 'training was limited by' err || die "a run shorter than --log-interval tells what limited it"
grep -q '"event": "eval"' runs/rest/metrics.jsonl && die "an evaluation has ended before the stop"
check_json <(tail -n 1 runs/rest/metrics.jsonl) 'd["event"] == "step"' 'd["step"] >= 3' 'd["loss"] > 0'
