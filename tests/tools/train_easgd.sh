#!/usr/bin/env bash
# Elastic averaging: it learns, goes on after a stop, and can be repeated from its logs.
source "$(dirname "$0")/common.sh"
make_data
make_model
elastic=("${common[@]}" --update easgd --lr 0.01 --sync-every 2)

# So many images that an epoch takes longer than a rank is kept waiting for a core: a run ends as late as that.
mkdir more && (cd more && make_data 8000 500) || die "data"
n_epochs=$(length 6 3)
for n in 1 3; do
    run 0 ranks $n "$train" "${elastic[@]}" --data more/data --epochs $n_epochs --eval-every 2 --output run-$n
    says "update easgd"
    check_json run-$n/summary.json 'd["update"] == "easgd"' 'd["test_accuracy"] > 0.3' "$n_epochs <= d['epochs'] < $n_epochs + 1" \
        'd["partition"] == "idpa"' \
        'sum(d["staleness"]) == len(d["ranks"]) * sum(r["submissions"] for r in d["ranks"])' \
        'sum(r["payload_bytes_sent"] for r in d["ranks"]) == 2 * d["weight_bytes"] * sum(r["submissions"] for r in d["ranks"])'
    python3 "$here/weights.py" finite run-$n/model.safetensors || die "weights on $n ranks"
    run 0 "$train" --replay run-$n
    says "bit for bit"
done
# The model is the centre, of which rank 0 tells the accuracy on the way. Elasticity is 0.9 / ranks unless given.
python3 - <<'END' || die "gamma or evaluations"
import json
gammas = {json.loads(line)["gamma"] for line in open("run-3/exchange/updates.rank-1.jsonl")}
assert len(gammas) == 1 and abs(gammas.pop() - 0.3) < 1e-12, gammas
evals = [e["epoch"] for e in map(json.loads, open("run-3/metrics.jsonl")) if e["event"] == "eval"]
assert len(evals) >= 2, evals
END
run 0 "$eval" --data more/data --model tiny.yaml --weights run-3/model.safetensors --json
check_json out "abs(d['accuracy'] - $(python3 -c "
import json; print(json.load(open('run-3/summary.json'))['test_accuracy'])")) < 1e-9"

# With a bound, an optimiser that has more state, statistics of batches, and images that are changed.
sed -e 's/^name: tiny/name: normal/' -e '/conv2/a\  - batchnorm: {name: bn}' tiny.yaml >normal.yaml
run 0 ranks 3 "$train" "${elastic[@]}" --epochs 1 --output bound --elasticity 0.5 --max-staleness 1 --model normal.yaml \
    --optimizer adamw --lr 0.001 --augment crop=2,flip
run 0 "$train" --replay bound
says "bit for bit"
sed -i 's/^elasticity: .*/elasticity: 0.25/' bound/config.yaml
fails_well 3 "$train" --replay bound
says '"gamma" is 0.5, by what happened before it is 0.25'

# A stop: all go on from the centre.
stop=("${elastic[@]}" --data more/data --epochs 2)
run 0 ranks 2 "$train" "${stop[@]}" --checkpoint-every 100 --output stopped
cut_back stopped
from=$(ls -d stopped/checkpoints/step-*)
cp -r "$from" kept
run 0 ranks 2 "$train" "${stop[@]}" --output stopped --resume auto
says "going on from stopped/checkpoints/step-"
grep -q 'is of another job' err && die "not the same job"
check_json stopped/summary.json '2 <= d["epochs"] < 2.5' 'd["test_accuracy"] > 0.15'
run 0 ranks 2 "$train" "${stop[@]}" --update agwu --output on-agwu --resume kept
says "(--update differs)"

# What does not go with it.
for option in "--gamma lag" "--server-momentum 0.5" "--delay-compensation 1"; do
    # shellcheck disable=SC2086 # several words
    fails_well 2 "$train" "${elastic[@]}" --output x $option
    says "${option% *} is not used by --update easgd"
done
for update in agwu sgwu allreduce; do
    fails_well 2 "$train" "${common[@]}" --output x --update $update --elasticity 0.1
    says "--elasticity is not used by --update $update"
    says "choose --update easgd"
done
fails_well 2 "$train" "${elastic[@]}" --output x --elasticity 1
