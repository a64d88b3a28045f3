#!/usr/bin/env bash
# Going on as another job: agwu from where all ranks met, other ranks, other options.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/resume_help.sh"
make_data
make_model

# Samples and seconds of a rank are of the same part of a job: of all of it, or, where it goes on as another one, of what
# came since.
speed_of_first() { # RUN [CHECKPOINT]: in the table of the last run; CHECKPOINT of another job that RUN goes on from
    python3 - "$@" <<'END' || die "the speed of rank 0 in the table of $1"
import json, re, sys
summary = json.load(open(sys.argv[1] + "/summary.json"))
before = json.load(open(sys.argv[2] + "/rank-0.json"))["seconds"] if sys.argv[2:] else 0
told, = re.findall(r"info: +0  \S+ +cpu +(\d+) ", open("err").read())
rank = summary["ranks"][0]
seconds = summary["seconds"] - before - rank["eval_s"]
assert seconds > 0 and abs(int(told) - rank["samples"] / seconds) < 0.51, (told, before, summary)
END
}

# agwu depends on who comes first; it goes on from where all ranks met, and ends well.
both=("${common[@]}" "${lasts[@]}" --update agwu)
for _ in 1 2 3 4 5; do # until the signal comes before the end does
    start_ranks 2 "$train" "${both[@]}" --output runs/agwu
    await_steps runs/agwu
    kill -s TERM "$(rank_process 1)" 2>/dev/null
    await_exit
    [ $status -eq 0 ] || break
    rm -r runs/agwu
done
[ $status -eq 75 ] || die "exit status $status instead of 75"
stopped runs/agwu
before=$(newest runs/agwu)
cp -r runs/agwu runs/agwu-worked
run 0 ranks 2 "$train" "${both[@]}" --output runs/agwu --resume auto
speed_of_first runs/agwu
# The others train on while a rank waits for a core, an epoch in tens of milliseconds.
check_json runs/agwu/summary.json "d['test_accuracy'] > 0.5" "$n_epochs <= d['epochs'] < 1.5 * $n_epochs" \
    'sum(r["samples"] for r in d["ranks"]) == d["samples"]' \
    'math.isclose(sum(r["share"] for r in d["ranks"]), 1)' \
    'sum(r["submissions"] for r in d["ranks"]) * 2 * d["weight_bytes"] == sum(r["payload_bytes_sent"] for r in d["ranks"])' \
    'sum(r["submissions"] for r in d["ranks"]) * len(d["ranks"]) == sum(d["staleness"])'
# A replay would begin where the logs do, in the middle.
fails_well 2 "$train" --replay runs/agwu
says "bpt-train: runs/agwu cannot be replayed: it was resumed, the last time at epoch "
says "hint: train it again, from its beginning to its end"

# The speed of a rank, by which the data is given out, is that of what it does now: time that it spent
# before the stop, here of thirty years, is not set against the samples of the first push.
worked=$(newest runs/agwu-worked)
sed -i -E 's/"compute_ns": [0-9]+/"compute_ns": 1000000000000000000/' "$worked/rank-1.json"
# An evaluation by rank 0 alone that was stopped, of which no other rank knows, is made up for by all.
sed -i 's/"eval_due": false/"eval_due": true/' "$worked/rank-0.json"
check_json "$worked/rank-0.json" 'd["eval_due"]'
seal "$worked"
run 0 ranks 2 "$train" "${both[@]}" --output runs/agwu-worked --resume auto --checkpoint-every 10 \
    --checkpoint-keep 1000
python3 - runs/agwu-worked/metrics.jsonl <<'END' || die "the evaluation that was due is not made first"
import json, sys
events = [json.loads(line) for line in open(sys.argv[1])]
begun = max(i for i, e in enumerate(events) if e["event"] == "start")
first = next(e for e in events[begun + 1:] if e["event"] != "shares")
assert first["event"] == "eval" and first["step"] == events[begun]["step"], (events[begun], first)
END
for state in runs/agwu-worked/checkpoints/*/rank-0.json; do
    check_json "$state" 'all(ns < 1e9 * n for ns, n in zip(*map(d["exchange"]["coordinator"].get, ["timed_ns", "timed_samples"])))'
done

# ---- other ranks, other options ----

run 0 ranks 3 "$train" "${both[@]}" --output runs/agwu-on-3 --resume "$before"
says "the number of ranks differs"
speed_of_first runs/agwu-on-3 "$before"
check_json runs/agwu-on-3/summary.json 'd["test_accuracy"] > 0.5' 'len(d["ranks"]) == 3' \
    'math.isclose(sum(r["share"] for r in d["ranks"]), 1)' # of what these have trained
fails_well 2 "$train" --replay runs/agwu-on-3
says "bpt-train: runs/agwu-on-3 cannot be replayed: it went on from $before"
run 0 "$train" "${common[@]}" "${lasts[@]}" --output runs/agwu-on-1 --resume "$before"
check_json runs/agwu-on-1/summary.json 'd["test_accuracy"] > 0.5' 'd["update"] == "local"'
run 0 ranks 2 "$train" "${both[@]}" --partition even --output runs/agwu-even --resume "$before"
says "(--partition differs)"
if variants; then
    run 0 ranks 2 "$train" "${both[@]}" --gamma lag --output runs/agwu-lag --resume "$before"
    says "(--gamma differs)"
    run 0 ranks 2 "$train" "${both[@]}" --idpa-rounds 2 --output runs/agwu-rounds --resume "$before"
    says "(--idpa-rounds differs)"
fi
# Rounds that nobody asks for are those of the checkpoint, as an earlier version had them; of another job as many as
# bring all data to what is left.
run 0 ranks 2 "$train" "${both[@]}" --epochs 3 --idpa-rounds 4 --checkpoint-every 10 --output runs/rounds
rm runs/rounds/summary.json
run 0 ranks 2 "$train" "${both[@]}" --epochs 3 --output runs/rounds --resume auto
! grep -q 'is of another job' err || die "rounds that nobody asked for make another job"
! grep -q 'data, round 1 of ' err || die "it tells again of what the part before has told"
run 0 ranks 3 "$train" "${both[@]}" --epochs 3 --output runs/rounds-on-3 --resume "$(newest runs/rounds)"
says "data, round 1 of 1: "
run 0 ranks 4 "$train" "${common[@]}" "${lasts[@]}" --update allreduce \
    --output runs/agwu-sum --resume "$before"
run 0 ranks 2 "$train" "${both[@]}" --seed 5 --output runs/agwu-seed --resume "$before"
says "--seed differs"
# Fewer epochs have fewer rounds, which nobody asked for; data that were not given out again are none that are missing.
run 0 ranks 2 "$train" "${both[@]}" --epochs 1 --output runs/agwu-short --resume "$before"
says "(--epochs differs)"
run 0 ranks 2 "$train" "${both[@]}" --epochs 3 --idpa-rounds 64 --output runs/agwu-many --resume "$before"
says "(--epochs differs)"
! grep -q 'never given out' err || die "images are missing that the job before had"
run 3 ranks 2 "$train" "${both[@]}" --model lenet --output runs/agwu-lenet --resume "$before"

# Without momentum and with one rate nothing is left of another job but the order of samples. Under
# local and allreduce it goes on, whatever the number of ranks; the warning says what it does.
plain=("${common[@]}" --momentum 0 --schedule constant --warmup-epochs 0)
orders=("the optimiser's state starts anew, the order of samples goes on"
    "the optimiser's state starts anew, the samples come in another order"
    "the optimiser's state and the order of samples start anew")
run 0 "$train" "${plain[@]}" --epochs 2 --checkpoint-every 150 --output runs/plain
run 0 "$train" "${plain[@]}" --epochs 3 --output runs/plain-3
from=runs/plain/checkpoints/step-00000150
goes_on() { # NAME ORDER RANKS OPTION...: from the checkpoint of the plain run, with 3 epochs
    local name=$1 order=$2 n=$3
    shift 3
    run 0 ranks "$n" "$train" "${plain[@]}" --epochs 3 "$@" --output "runs/plain-$name" --resume $from
    says "${orders[$order]}"
    [ "$(grep -c 'is of another job' err)" -eq 1 ] || die "not one warning"
}
goes_on epochs 0 1
same_weights runs/plain-3 runs/plain-epochs
# Ten steps later, not 150: sums are in another order, and the first ReLU whose sign that decides takes
# the two apart for good.
run 0 "$train" "${plain[@]}" --epochs 1.6 --output runs/plain-1.6
goes_on ranks 0 2 --update allreduce --epochs 1.6
near_weights runs/plain-1.6 runs/plain-ranks 1e-6
goes_on batch 0 1 --batch-size 30
goes_on seed 1 1 --seed 2
mkdir few && (cd few && make_data 1000 60) || die "data"
goes_on size 1 1 --data few/data
goes_on agwu 2 2 --update agwu
# Another model of the same tensors. Checkpoints of before models were told apart say nothing.
sed 's/maxpool/avgpool/' tiny.yaml >average.yaml
goes_on model 0 1 --epochs 2 --model average.yaml
says '(what --model says differs)'
cp -r $from before-models
sed -i -E 's/"(model|input_height|input_width)": [0-9]+, *//g' before-models/rank-0.json
grep -q '"model"' before-models/rank-0.json && die "the state still names a model"
seal before-models
run 0 "$train" "${plain[@]}" --epochs 2 --model average.yaml --output runs/plain-before --resume before-models
grep -q 'is of another job' err && die "a checkpoint that does not say which model it is of is of another job"
from=$before goes_on from-agwu 1 1

# ---- many ranks, which have half of the batch where nobody gives it: a job that goes on keeps to what it had ----

many=(--data data --model tiny.yaml --threads 1 --epochs 1 --update sgwu --sync-every 1 --checkpoint-every 4)
keeps_batch() { # RUN BATCH RATE OPTION...: it goes on from there as the same job
    run 0 ranks 5 "$train" "${many[@]}" --output runs/many-on --force --resume "$1" "${@:4}"
    says "batch: $2 samples a step of this rank"
    says "that is $3 x 5 ranks"
    grep -q 'is of another job' err && die "another job with ${*:4}"
    grep -qx "batch-size: $2" runs/many-on/config.yaml && grep -qx "lr: $3" runs/many-on/config.yaml ||
        die "config.yaml has not what was trained with"
}
run 0 ranks 5 "$train" "${many[@]}" --output runs/many-half
run 0 ranks 5 "$train" "${many[@]}" --output runs/many-whole --lr 0.03
keeps_batch runs/many-half 32 0.005 --lr 0.005
keeps_batch runs/many-half 32 0.01 --update auto
keeps_batch runs/many-whole 64 0.02
run 0 ranks 5 "$train" "${many[@]}" --output runs/many-none --resume runs/many-half --lr-scale none
says "batch: 32 samples a step of this rank"
says "learning rate 0.01,"
grep -q 'is of another job' err && die "another job with --lr-scale none"
cp -r runs/many-half runs/many-auto
rm runs/many-auto/summary.json
run 0 ranks 5 "$train" "${many[@]}" --output runs/many-auto --resume auto --lr 0.005
says "batch: 32 samples a step of this rank"
grep -q 'is of another job' err && die "another job with --resume auto"
# Not where it is another job anyway.
run 0 ranks 5 "$train" --data data --model tiny.yaml --threads 1 --epochs 1 --update allreduce \
    --output runs/many-sum --resume runs/many-half
grep -qx "batch-size: 64" runs/many-sum/config.yaml || die "the batch of all ranks is that of one"
