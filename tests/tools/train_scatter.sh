#!/usr/bin/env bash
# --data-mode scatter: ranks that do not have the dataset train as if they had it, and are sent each sample once.
source "$(dirname "$0")/common.sh"
make_data
make_model
source "$here/scatter_help.sh"

# ---- the same as with the dataset everywhere ----

for update in sgwu allreduce; do
    same=(--update $update --partition even --epochs 3)
    run 0 ranks 3 "$train" "${common[@]}" "${same[@]}" --output shared-$update
    run 0 ranks 3 ./apart "$train" "${scattered[@]}" "${same[@]}" --scratch "$work/$update" --output "$work/$update-run"
    same_weights shared-$update $update-run
    python3 - shared-$update $update-run <<'END_OF_COMPARE' || die "evaluations differ under $update"
import json, sys
def evals(run):
    return [(e["step"], e["loss"], e["accuracy"]) for e in map(json.loads, open(run + "/metrics.jsonl")) if e["event"] == "eval"]
assert evals(sys.argv[1]) == evals(sys.argv[2]) and len(evals(sys.argv[1])) > 1, (evals(sys.argv[1]), evals(sys.argv[2]))
END_OF_COMPARE
done
says 'the dataset is rank 0'
given=$(python3 -c '
import json
sent = json.load(open("allreduce-run/summary.json"))["ranks"][0]
print("%d samples, %.1f MB" % (sent["data_samples_sent"], 1e-6 * sent["data_bytes_sent"]))')
grep -qE 'info: rank 0 has given out [1-9][0-9]* samples, [0-9.]+ MB$' err && says "rank 0 has given out $given" ||
    die "it does not say what was given out"
check_given sgwu-run 'received == held + test' 'found == 0'
# Three epochs of one order for all: each its part of the first, and what is new to it in the others.
check_given allreduce-run '100 * batch + test < received <= all + test' 'found == 0'
for r in 1 2; do
    [ ! -e "apart-$r/data" ] || die "rank $r has seen the dataset"
done
check_json shared-sgwu/summary.json 'd["data_mode"] == "shared"' 'all(r["data_samples_sent"] == 0 for r in d["ranks"])'

# ---- in rounds, while training goes on ----

for n in 2 4; do
    [ $n = 2 ] || variants || continue
    rounds=$((6 - n)) # a round waits for all ranks, and of four on few cores one may get next to nothing done
    for epochs in "$(length 20 12)" 60 200; do # a rank that other work holds up needs more to have its rounds too
        run 0 ranks $n ./apart "$train" "${scattered[@]}" --update agwu --rebalance 0 --sync-every 4 --epochs $epochs \
            --lr 0.01 --idpa-rounds $rounds --scratch "$work/agwu-$n-$epochs" --output "$work/agwu-run-$n" --force
        grep -q "\"round\": $rounds" agwu-run-$n/metrics.jsonl && break
    done
    check_given agwu-run-$n 'received == held + test' 'found == 0'
    grep -q "\"round\": $rounds" agwu-run-$n/metrics.jsonl || die "not all is given out"
done
# The run can be replayed where the dataset is.
run 0 "$train" --replay agwu-run-2
says "bit for bit"

# Samples that move, since ranks become slow, are sent to who did not have them, and to nobody twice.
moves=(--update agwu --idpa-rounds 2 --rebalance 0.000001 --sync-every 4 --lr 0.01)
for epochs in 100 300 900; do # speeds are known after two seconds
    rm -rf moved
    start_ranks 3 ./apart "$train" "${scattered[@]}" "${moves[@]}" --epochs $epochs --scratch "$work/moved-$epochs" \
        --output "$work/moved"
    await_steps moved
    for n in 2 3; do
        hinder "$(rank_process $n)" &
        started+=($!)
    done
    finish 0 400
    grep -q '"round": 3' moved/metrics.jsonl && break # of the rounds before, the last is 2
    [ $epochs -lt 900 ] || die "no samples have moved"
done
check_given moved 'received <= all + test' 'received > 0' 'found == 0'
run 0 "$train" --replay moved
says "bit for bit"

# ---- what is there is not sent again ----

run 0 ranks 3 ./apart "$train" "${scattered[@]}" --update sgwu --partition even --epochs 3 --scratch "$work/sgwu" \
    --output "$work/again"
check_given again 'received == 0' 'found == held + test'
same_weights again sgwu-run
# By another number of ranks, with other shares: what is new alone.
run 0 ranks 2 ./apart "$train" "${scattered[@]}" --update sgwu --partition even --epochs 1 --scratch "$work/sgwu" \
    --output "$work/fewer"
check_given fewer '0 < received < held + test' 'held + test <= received + found <= all + 500'

# ---- other ways to start ----

run 0 ranks 3 ./apart "$train" "${scattered[@]}" --update auto --epochs 1 --output "$work/auto"
run 0 ranks 3 ./apart "$train" "${scattered[@]}" --update allreduce --partition idpa --epochs 1 --output "$work/cut"
run 0 ranks 2 ./apart "$train" "${scattered[@]}" --update sgwu --test-split train --epochs 1 --scratch "$work/one-split" \
    --output "$work/one-split-run"
run 0 "$train" "${scattered[@]}" --epochs 0.2 --scratch "$work/alone" --output "$work/alone-run"
says '--data-mode scatter: without effect on 1 rank'
[ ! -e alone ] || die "a rank by itself makes scratch"
check_json alone-run/summary.json 'd["data_mode"] == "shared"'

# ---- a look before ----

run 0 ranks 3 ./apart "$train" "${scattered[@]}" --output "$work/checked" --check
says ': 0 errors' out
[ "$(grep -c ' GB free .* GB free$' out)" -eq 2 ] || die "not two ranks with scratch"
[ "$(grep -cE ' [0-9a-f]{16} ' out)" -eq 1 ] || die "not one rank with the dataset"
[ ! -e checked ] || die "--check makes a run folder"
run 0 ranks 3 ./apart "$train" "${scattered[@]}" --scratch "$work/nowhere/yet" --check
[ ! -e nowhere ] || die "--check makes scratch"
run 2 ranks 2 ./apart "$train" "${scattered[@]}" --scratch "$work/apart" --check # a program
says "error: rank 1 on $(hostname): cannot write to $work/apart: Not a directory" out
"$ingest" glyphs --out other --split train --count 300 --seed 7 >out 2>err &&
    "$ingest" glyphs --out other --split test --count 60 >out 2>err || die "bpt-ingest glyphs"
run 2 ranks 3 ./apart "$train" "${scattered[@]}" --data other --scratch "$work/sgwu" --check
says "error: rank 1 on $(hostname): scratch folder $work/sgwu/rank-1 holds images of another dataset" out
says "error: rank 2" out
run 2 ranks 2 ./apart "$train" "${scattered[@]}" --data nowhere --check
says 'hint: rank 0 has to have the dataset' out
