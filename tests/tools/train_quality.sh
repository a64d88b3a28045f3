#!/usr/bin/env bash
# Pushes that count by how good their ranks are on images that no rank trains on.
source "$(dirname "$0")/common.sh"
make_data 1000 100
make_model
judged=("${common[@]}" --epochs 2 --sync-every 2 --lr 0.01 --quality held-out --held-out 0.1)

# Under agwu: qualities are logged as shares, whose mean is about 1, and a replay needs no judge.
run 0 ranks 3 "$train" "${judged[@]}" --update agwu --output async --augment crop=2,flip --idpa-rounds 2 --epochs 10
says "900 training and 100 test images"
says "100 training images are held out"
check_json async/summary.json '10 <= d["epochs"]' \
    'all(0 < r["quality_s"] < d["seconds"] for r in d["ranks"])'
python3 - <<'END' || die "qualities or counts"
import json
events = list(map(json.loads, open("async/metrics.jsonl")))
assert events[0]["train_samples"] == 900, events[0]
for rank in range(3):
    q = [json.loads(line)["q"] for line in open(f"async/exchange/updates.rank-{rank}.jsonl")]
    assert all(0 < x <= 3 for x in q) and len(set(q)) > 3, q
    assert 0.7 < sum(q) / len(q) < 1.3, q
held = [sum(e["held"]) for e in events if e["event"] == "shares"]
assert held[-1] == 900, held
END
run 0 "$train" --replay async
says "bit for bit"
altered() { # SED-EXPRESSION SAYS: of the configuration
    rm -rf other
    cp -r async other
    sed -i "$1" other/config.yaml
    fails_well 3 "$train" --replay other
    says "$2"
}
altered 's/^held-out: .*/held-out: 0.2/' 'other/exchange/'
altered 's/^seed: .*/seed: 2/' 'weights differ'
rm -rf other
cp -r async other
for rank in 0 1 2; do # a rank may host nothing
    python3 "$here/alter.py" other/exchange/updates.rank-$rank.jsonl q "v * 0.99" >/dev/null || die "alter"
done
fails_well 3 "$train" --replay other
says "weights differ"
python3 "$here/alter.py" other/exchange/updates.rank-1.jsonl q "3.5" >/dev/null || die "alter"
fails_well 3 "$train" --replay other
says '"q" is 3.5: not a share'

# Under sgwu it repeats, and a stop leaves no trace.
steady=("${judged[@]}" --update sgwu --partition even --eval-every 0 --checkpoint-keep 100)
for name in sync sync-again; do
    run 0 ranks 2 "$train" "${steady[@]}" --checkpoint-every 8 --output $name
done
same_weights sync sync-again
cut_back sync-again
first=$(ls -d sync-again/checkpoints/step-*)
check_json "$first/rank-1.json" 'd["held_out"] == 100' 'd["quality"]["taken"] >= 4' '0 < d["quality"]["mean"] < 1'
cp -r "$first" kept
run 0 ranks 2 "$train" "${steady[@]}" --output sync-again --resume auto
says "going on from"
grep -q 'is of another job' err && die "not the same job"
same_weights sync sync-again
run 0 ranks 2 "$train" "${steady[@]}" --held-out 0.05 --output other-part --resume kept
says "(--quality or --held-out differs)"
# It does something: the weights of a round follow the qualities.
python3 - <<'END' || die "sgwu has no qualities"
import json
q = [json.loads(line)["q"] for line in open("sync/exchange/updates.rank-0.jsonl")]
assert all(0 < x < 1 for x in q) and len(set(q)) > 3, q
gamma = [json.loads(line)["gamma"] for line in open("sync/exchange/updates.rank-0.jsonl")]
for i in range(0, len(q), 2):
    assert abs(gamma[i] - q[i] / (q[i] + q[i + 1])) < 1e-12, (i, gamma, q)
END

# The memory of one more batch, and of the list of records.
plan() { # OPTION...: batches and order of samples, in bytes
    run 0 ranks 2 "$train" "${common[@]}" --update agwu --dry-run "$@"
    awk '/^  (batches|order of samples) / { sum += $(NF - 2) } END { print sum }' out
}
before=$(plan)
after=$(plan --quality held-out --held-out 0.1)
image=$((28 * 28 * 4 + 12))
[ $((after - before)) -eq $((20 * image + 1000 * 4 - 100 * 8)) ] || die "$before bytes without, $after with"

# A run that goes on knows how good the weights of others were: no push counts as if alone.
known=("${judged[@]}" --update agwu --epochs 30 --eval-every 0 --output known) # so long that there is a checkpoint
run 0 ranks 2 "$train" "${known[@]}" --checkpoint-every 8
cut_back known
newest=$(ls -d known/checkpoints/step-* | tail -n 1)
check_json "$newest/rank-1.json" 'len(d["exchange"]["quality"]) == 2' \
    'all(q > 0 for q in d["exchange"]["quality"])'
# Two ranks that are equally good, as they may be in the end, count as if alone too: the checkpoint is given a quality that
# neither has.
sed -i -E 's/("quality": )\[[^]]*\]/\1[0.377, 0.377]/' "$newest"/rank-[01].json
check_json "$newest/rank-1.json" 'd["exchange"]["quality"] == [0.377, 0.377]'
seal "$newest"
run 0 ranks 2 "$train" "${known[@]}" --resume auto
for n in 0 1; do
    python3 - known/exchange/updates.rank-$n.jsonl <<'END' || die "a push counted as if alone"
import json, sys
updates = [json.loads(line) for line in open(sys.argv[1])]
again = [b for a, b in zip([{"version": 0}] + updates, updates) if b["version"] != a["version"] + 1]
first = (again or updates)[0]
assert first["version"] > 1 and first["q"] != 1, first
END
done

# Servers judge nothing, and there is nothing of it that they would go on with.
served=("${judged[@]}" --update agwu --servers 1 --epochs 30 --eval-every 0 --output served)
run 0 ranks 3 "$train" "${served[@]}" --checkpoint-every 8
cut_back served
run 0 ranks 3 "$train" "${served[@]}" --resume auto
says "going on from served/checkpoints/step-"
grep -q 'is of another job' err && die "not the same job"

# What does not go with it.
for update in easgd allreduce local; do
    fails_well 2 "$train" "${common[@]}" --output x --update $update --quality held-out
    says "--quality is not used by --update $update"
done
fails_well 2 "$train" "${common[@]}" --output x --update agwu --held-out 0.1
says "--held-out is not used by --quality off"
says "choose --quality held-out"
fails_well 2 "$train" "${judged[@]}" --output x --held-out 0.6
for n in 1 2; do # each rank judges, and would need the images
    fails_well 2 ranks $n "$train" "${judged[@]}" --output x --update agwu --data-mode scatter --scratch "$work/scratch"
    says "bpt-train: --quality held-out wants the dataset on every rank"
    [ ! -e x ] && [ ! -e scratch ] || die "what is refused leaves something: $(ls)"
done
run 0 "$train" "${judged[@]}" --update agwu --output alone --epochs 0.2
says "--quality, --held-out: without effect on 1 rank"
check_json alone/summary.json 'd["ranks"][0]["quality_s"] == 0'
