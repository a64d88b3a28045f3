#!/usr/bin/env bash
# bpt-plan on a cluster that is described by hand: its tables, its JSON, the configuration that it writes, and what it
# refuses. plan_measure.sh measures one.
source "$(dirname "$0")/common.sh"

cat >cluster.yaml <<'END_OF_CLUSTER'
bpt-cluster: 1
latency-us: 100
nodes:
  - {name: new, count: 2, images-per-s: 8000, link-mbit: 1000, message-ns-per-kb: 400, copy-ms: 0.4, memory-gb: 8}
  - {name: old, count: 2, images-per-s: 2000, link-mbit: 1000, message-ns-per-kb: 1600, copy-ms: 1.6, memory-gb: 4}
  - {name: pi, images-per-s: 20, link-mbit: 100, message-ns-per-kb: 20000, copy-ms: 20, memory-gb: 1}
END_OF_CLUSTER
ask=("$plan" --model lenet --cluster cluster.yaml)

# ---- what it says ----
run 0 "${ask[@]}"
says 'lenet: 431080 weights, 1.7 MB; 50000 images an epoch' out
says 'take --update agwu --partition idpa' out
says 'leave out pi: it costs more than it brings' out
grep -Eq '^new +2 +8000\.0 +1000\.0 +8000\.0 ' out || die "the machine is another one"
grep -Eq '^allreduce, even .* 0\.0[0-9] .* slowest rank$' out || die "a rank that is slow limits nothing"
run 0 "${ask[@]}" --json
cp out plan.json
python3 - <<'END_OF_CHECK' || die "the JSON"
import json
plan = json.load(open("plan.json"))
assert [r["node"] for r in plan["ranks"]] == ["new", "new", "old", "old", "pi"], plan["ranks"]
assert plan["ranks"][4]["brings"] < 0 < plan["ranks"][2]["brings"] < plan["ranks"][0]["brings"]
assert [s["ranks"] for s in plan["sizes"]] == [1, 2, 4, 5]
assert [len(s["ways"]) for s in plan["sizes"]] == [1, 4, 4, 4]
assert abs(plan["sizes"][-1]["alone"] - 20020) < 1e-6
for way in plan["sizes"][-1]["ways"]:
    assert 0 < way["efficiency"] < 1 and way["memory_bytes"] > 1e6, way
    assert abs(way["epoch_s"] * way["images_per_s"] - 50000) < 1e-3, way
    assert way["batch_size"] == (64 if way["update"] == "allreduce" else 32), way  # as bpt-train does
    assert way["sent_bytes_per_s"] > 0 and way["links_are_full"] is False, way
    assert (way["steps_per_exchange"] > 1) == (way["update"] != "allreduce"), way
assert (plan["update"], plan["partition"]) == ("agwu", "idpa")
assert plan["weight_bytes"] == 4 * 431080 and plan["epoch_images"] == 50000
END_OF_CHECK
run 0 "${ask[@]}" --ranks 1
says 'take --update local' out
grep -q '^ first' out && die "one rank grows"
run 0 "${ask[@]}" --ranks 4 --batch-size 64 --json
grep -q '"batch_size": 32' out && die "a batch that was given is halved"
# Links that carry less than exchanges want.
sed 's/link-mbit: [0-9]*/link-mbit: 1/' cluster.yaml >full.yaml
run 0 "$plan" --model lenet --cluster full.yaml --ranks 4
says 'links are full: ranks exchange every ' out
run 0 "$plan" --model lenet --cluster full.yaml --ranks 4 --json
check_json out 'd["sizes"][-1]["ways"][0]["links_are_full"]'
# Equal machines with links that cost nothing: one trajectory.
printf '%s\n' 'bpt-cluster: 1' 'nodes: [{name: a, count: 2, images-per-s: 100}]' >equal.yaml
run 0 "$plan" --model lenet --cluster equal.yaml --images 1000
says 'take --update allreduce --partition' out
grep -q 'is faster' out && die "something is faster than all there is"
says '; 1000 images an epoch' out
grep -Eq '^allreduce, even +64 +200\.0 +1\.00 +5 ' out || die "an epoch takes another time: $(cat out)"

# Of many machines none is left out for being one of many; of slow ones and long names one reads as much.
printf '%s\n' 'bpt-cluster: 1' 'nodes: [{name: a, count: 200, images-per-s: 100}, {name: pi, images-per-s: 0.0021}]' >many.yaml
run 0 "$plan" --model lenet --cluster many.yaml
grep -q 'leave out a' out && die "one of many machines is left out"
says 'leave out pi: it brings next to nothing' out
grep -Eq '^pi +1 +0\.0021 ' out || die "a slow machine has no speed"
grep -Eq '^a +200 .* 0\.50 %$' out || die "one of many brings nothing"
{
    printf '%s\n' 'bpt-cluster: 1' 'nodes:' '  - {name: a, images-per-s: 1000}'
    for ((i = 0; i < 11; i++)); do echo "  - {name: pi$i, images-per-s: 0.01}"; done
} >pis.yaml
run 0 "$plan" --model lenet --cluster pis.yaml
[ "$(grep -c '^leave out pi' out)" -eq 8 ] || die "advice without end"
says 'and 3 more that bring as little' out
printf '%s\n' 'bpt-cluster: 1' 'nodes:' '  - {name: größe, images-per-s: 100}' \
    '  - {name: a-name-that-is-rather-long.of-a-host.example.org, images-per-s: 100}' >names.yaml
run 0 "$plan" --model lenet --cluster names.yaml
python3 - <<'END_OF_CHECK' || die "columns are askew: $(cat out)"
import re
rows = open("out", encoding="utf-8").read().split("\n")[2:6]
assert len({re.search(r" (ranks|1|2)  ", row).end() for row in rows}) == 1
END_OF_CHECK

# ---- the configuration ----
run 0 "${ask[@]}" --ranks 4 --out plan.yaml
says 'Made by bpt-plan' plan.yaml
run 0 "$train" --config plan.yaml --dry-run
grep -q '^update: agwu' out || die "bpt-train does not take the plan"
fails_well 2 "${ask[@]}" --out plan.yaml
says 'plan.yaml is there already' err
run 0 "${ask[@]}" --ranks 1 --batch-size 16 --out plan.yaml --force
run 0 "$train" --config plan.yaml --dry-run
grep -q '^update: local' out && grep -q '^batch-size: 16' out || die "bpt-train does not take the plan of one rank"
echo 'update: agwu' >mine.yaml
fails_well 2 "${ask[@]}" --out mine.yaml --force
[ "$(cat mine.yaml)" = 'update: agwu' ] || die "another's file is replaced"
fails_well 1 "${ask[@]}" --out nowhere/plan.yaml
# What steps were measured with is trained with.
run 0 "${ask[@]}" --precision bf16-emulated --optimizer adamw --epochs 2.5 --out plan.yaml --force
run 0 "$train" --config plan.yaml --dry-run
grep -q '^precision: bf16-emulated' out && grep -q '^optimizer: adamw' out && grep -q '^epochs: 2.5' out || die "trained is with something else"
# Only a plan gives way to a plan.
sed '1i # Made by bpt-plan on some day' cluster.yaml >made.yaml
cp made.yaml kept.yaml
for same in made.yaml ./made.yaml; do
    fails_well 2 "$plan" --model lenet --cluster made.yaml --out "$same" --force
done
cmp made.yaml kept.yaml || die "a cluster is replaced by a plan"
: >empty.yaml
run 0 "${ask[@]}" --out empty.yaml --force
says 'update: agwu' empty.yaml
mkfifo pipe
for other in pipe . /dev/null; do
    fails_well 2 "${ask[@]}" --out "$other" --force
    says "$other is there already, and no plan" err
done
fails_well 2 "${ask[@]}" --out ''
[ -e plan.yaml ] || die "a plan is gone"

# ---- fewer ranks ----
# Merging fits no memory of all; two machines alone do more than all of them by sums.
sed 's/memory-gb: [0-9]*/memory-gb: 0.0205/; s/name: new, count: 2,/&/' cluster.yaml |
    sed '/name: new/s/memory-gb: [0-9.]*/memory-gb: 8/' >unlike.yaml
run 0 "$plan" --model lenet --cluster unlike.yaml
says 'take --update allreduce' out
says 'fewer do more: --ranks 2 and --update agwu --partition idpa: 1568' out
run 0 "$plan" --model lenet --cluster unlike.yaml --json
check_json out 'd["fewer_ranks"] == 2' 'd["update"] == "allreduce"'
run 0 "$plan" --model lenet --cluster unlike.yaml --ranks 2 --json
check_json out '"fewer_ranks" not in d' 'd["update"] == "agwu"'
sed '/name: new/!s/memory-gb: [0-9.]*/memory-gb: 0.001/' unlike.yaml >small.yaml
fails_well 2 "$plan" --model lenet --cluster small.yaml
says 'fewer fit: --ranks 2 and --update agwu' out

# ---- a run beside it ----
mkdir run
ran() { # UPDATE PARTITION SERVERS RANKS SAMPLES SECONDS [BORDER-BYTES [MODEL]]: a summary of that
    local rank="{\"eval_s\": 2, \"border_bytes_sent\": ${7:-0}}" i
    local ranks=$rank
    for ((i = 1; i < $4; i++)); do ranks+=", $rank"; done
    echo "{\"model\": \"${8:-lenet}\", \"update\": \"$1\", \"partition\": \"$2\", \"servers\": $3, \"samples\": $5, \"seconds\": $6," \
        "\"ranks\": [$ranks]}" >run/summary.json
}
ran agwu idpa 0 2 100000 12
run 0 "${ask[@]}" --compare run --json
check_json out 'd["compared"]["images_per_s"] == 10000' 'd["compared"]["ranks"] == 2' \
    'd["compared"]["foretold"] == d["sizes"][1]["ways"][0]["images_per_s"]'
run 0 "${ask[@]}" --compare run
says 'run: agwu on 2 ranks did 10000.0 images/s; foretold are 15683.9, 57 % more' out
ran local even 0 1 100000 7
run 0 "${ask[@]}" --compare run
says 'run: local on 1 rank did 20000.0 images/s; foretold are 8000.0, 60 % less' out
for other in 'easgd idpa 0 2 100 12' 'agwu even 0 2 100 12' 'agwu idpa 1 2 100 12' 'agwu idpa 0 2 100 12 8' \
    'agwu idpa 0 2 100 12 0 vgg16' 'agwu idpa 0 3 100 12'; do
    # shellcheck disable=SC2086 # several words
    ran $other
    fails_well 2 "${ask[@]}" --compare run
done
says 'run had 3 ranks, of which nothing is foretold' err
for other in 'agwu idpa 0 2 0 12' 'agwu idpa 0 2 100 2' 'agwu idpa 0 2 "many" 12'; do
    # shellcheck disable=SC2086 # several words
    ran $other
    fails_well 3 "${ask[@]}" --compare run
done
for other in '' '{' '{}' '{"model": "lenet", "update": "agwu", "partition": "idpa", "servers": 0, "samples": 1, "seconds": 1, "ranks": []}'; do
    echo "$other" >run/summary.json
    fails_well 3 "${ask[@]}" --compare run
done
ran agwu idpa 0 2 100000 12
sed -i 's/"servers": 0,/& "frozen_bytes": 0,/' run/summary.json
run 0 "${ask[@]}" --compare run
sed -i 's/"frozen_bytes": 0/"frozen_bytes": 960/' run/summary.json
fails_well 2 "${ask[@]}" --compare run
says 'run had frozen layers, of which nothing is foretold'
ran agwu idpa 0 2 100000 12
sed -i 's/"eval_s": 2/"eval_s": -2/' run/summary.json
fails_well 3 "${ask[@]}" --compare run
fails_well 3 "${ask[@]}" --compare nowhere

# ---- memory ----
sed 's/memory-gb: [0-9]*/memory-gb: 0.001/' cluster.yaml >small.yaml
fails_well 2 "$plan" --model lenet --cluster small.yaml --out none.yaml
says 'no way of learning together fits the memory of 5 ranks' err
least=$(sed -n 's/^no way fits: a rank takes \([0-9.]*\) MB at least, new has 1.0;.*/\1/p' out)
[ "$(grep -c " memory$" out)" -eq 4 ] && [ "$(awk '/ memory$/ { print $(NF - 1) }' out | sort -n | head -n 1)" = "$least" ] ||
    die "another least memory: $(cat out)"
run 2 "$plan" --model lenet --cluster small.yaml --json
check_json out '"update" not in d' 'd["sizes"][-1]["ways"][0]["limit"] == "memory"'
[ -e none.yaml ] || [ -L none.yaml ] && die "a plan of nothing is written"
sed '/name: old/s/memory-gb: 4/memory-gb: 0.02/' cluster.yaml >unlike.yaml # merging takes more, summing does not
run 0 "$plan" --model lenet --cluster unlike.yaml
says '  memory' out
says 'take --update allreduce' out

# ---- what it refuses ----
fails_well 2 "$plan" --model lenet
says '--cluster is missing' err
fails_well 2 "$plan" --cluster cluster.yaml
says '--model is missing' err
fails_well 2 "$plan" --model lenet --cluster none.yaml
fails_well 2 "$plan" --model nonet --cluster cluster.yaml
fails_well 2 "${ask[@]}" --ranks 6
says 'cluster.yaml has 5' err
for idle in '--seconds 3' '--device cpu' '--threads 2' '--train-split train'; do
    # shellcheck disable=SC2086 # two words
    fails_well 2 "${ask[@]}" $idle
    says "${idle% *} is not used" err
done
fails_well 2 "${ask[@]}" --batch-size 0
fails_well 2 "${ask[@]}" --batch-size 64 --images 63
says 'a step of 5 ranks takes more samples than the 63 of an epoch' err
run 0 "${ask[@]}" --batch-size 64 --images 64
grep -q '^agwu' out && die "bpt-train would refuse that"
cat >normed.yaml <<'END_OF_MODEL'
name: normed
input: [1, 4, 4]
classes: 4
layers:
  - conv: {filters: 4, kernel: 4}
  - batchnorm: {name: bn1}
  - fc: {outputs: classes}
END_OF_MODEL
fails_well 2 "$plan" --model normed.yaml --cluster cluster.yaml --batch-size 1
says '--batch-size 1: batch norm ' err
fails_well 2 "$plan"
{
    sed '/^nodes:/,$d' cluster.yaml
    printf '%s\n' 'model: {name: resnet20, identity: "0123456789abcdef", precision: fp32, optimizer: sgd}'
    sed -n '/^nodes:/,$p' cluster.yaml
} >other.yaml
fails_well 2 "$plan" --model lenet --cluster other.yaml
says 'other.yaml was measured with model resnet20, this is lenet' err
fails_well 2 "$plan" --model resnet20 --cluster other.yaml
says 'other.yaml was measured with layers 0123456789abcdef, this is' err
exit 0
