#!/usr/bin/env bash
# An asynchronous run can be repeated bit for bit from its logs, and only from its own.
source "$(dirname "$0")/common.sh"
make_data
make_model

# With decay every push changes every weight, also where no gradient reaches it: of a push that brings nothing, it
# would make no difference what its log says.
run 0 ranks 3 "$train" "${common[@]}" --output run --update agwu --epochs 3 --sync-every 3 \
    --checkpoint-every 30 --augment crop=2,flip --weight-decay 0.001
python3 -c 'import json; [json.loads(line) for line in open("run/metrics.jsonl")]' || die "metrics.jsonl is no JSON"
run 0 "$train" --replay run --log-interval 0
says "bit for bit"
# Its progress is shown.
python3 - <<'END' || die "no progress"
import re
lines = re.findall(r"^step (\d+)/(\d+) epoch [\d.]+ loss [\d.]+ lr \S+ \d+ img/s eta \d\d:\d\d$", open("err").read(), re.M)
steps = [int(done) for done, _ in lines]
total = int(lines[0][1])
assert steps == sorted(steps) and 0 < steps[-1] <= total, lines
said, = re.findall(r"replaying (\d+) steps of 3 ranks, with \d+ pushes", open("err").read())
assert int(said) == total, (said, total) # in what the line of progress counts
END

# Kernels of other processors sum otherwise.
grep -q 'other kernels' err && die "it warns of its own kernels"
check_json run/summary.json 'all(r["kernels"].startswith("oneDNN ") for r in d["ranks"])'
cp -r run other
python3 - <<'END'
import json
d = json.load(open("run/summary.json"))
d["ranks"][1]["kernels"] = "oneDNN 1.0, instructions 0x1"
json.dump(d, open("other/summary.json", "w"))
END
run 0 "$train" --replay other
says "warn: rank 1 computed with other kernels (oneDNN 1.0, instructions 0x1) than this processor has (oneDNN "
[ "$(grep -c 'other kernels' err)" -eq 1 ] || die "it warns of more ranks"

# Shares that are smaller than a batch, as large as one, and with a bound on staleness.
mkdir small && (cd small && make_data 400 60) || die "data"
few=("${common[@]}" --data small/data --update agwu --epochs 5)
run 0 ranks 3 "$train" "${few[@]}" --output less --batch-size 100 --sync-every 2
run 0 "$train" --replay less
says "bit for bit"
run 0 ranks 2 "$train" "${few[@]}" --output equal --batch-size 200 --partition even --sync-every 1
run 0 "$train" --replay equal
says "bit for bit"
for gamma in lag none; do
    [ $gamma = lag ] || variants || continue
    run 0 ranks 3 "$train" "${few[@]}" --output $gamma --gamma $gamma --sync-every 1 --batch-size 40
    run 0 "$train" --replay $gamma
    says "bit for bit"
done
if variants; then # hundreds of steps, each as long as its exchange
    # With an interval that follows what exchanges cost: a model with more weights than work, long epochs.
    (mkdir long && cd long && make_data 4000 60) || die "data"
    printf 'name: wide\ninput: [1, 28, 28]\nclasses: 10\nlayers:\n  - fc: {name: one, outputs: 2000}\n  - fc: {name: two, outputs: classes}\n' \
        >wide.yaml
    run 0 ranks 2 "$train" "${common[@]}" --data long/data --model wide.yaml --update agwu --epochs 1 --batch-size 4 --lr 0.001 --output auto
    python3 - <<'END' || die "no interval of its own"
import json
pushes = [json.loads(line) for line in open("auto/exchange/steps.rank-0.jsonl") if "every" in line]
every = [p["every"] for p in pushes]
assert pushes[0]["pushed_at"] == 4 and every[-1] == 1, pushes
assert 20 in every and 20 < max(every) <= 31, pushes  # 20 at the highest rate, 16 exchanges in the run at least
END
    run 0 "$train" --replay auto
    says "bit for bit"
    # Few ranks that share their momentum go on for longer, and a replay knows.
    run 0 ranks 4 "$train" "${common[@]}" --data long/data --model wide.yaml --update agwu --epochs 0.5 --batch-size 2 --lr 0.001 --output shared
    python3 - <<'END' || die "no longer interval"
import json
every = [json.loads(line)["every"] for line in open("shared/exchange/steps.rank-0.jsonl") if "every" in line]
assert max(every) == 20, every  # 24 exchanges in an epoch at the highest rate; with momenta apart 15, 16 in the run
END
    run 0 "$train" --replay shared
    says "bit for bit"
    sed -i 's/^sync-every: .*/sync-every: 4/' auto/config.yaml
    fails_well 3 "$train" --replay auto
    says '"every"'
fi
run 0 ranks 3 "$train" "${few[@]}" --output bound --max-staleness 1 --sync-every 1
run 0 "$train" --replay bound
says "bit for bit"

# From another folder the dataset's path leads nowhere: said, not crashed over.
mkdir elsewhere
(cd elsewhere && fails_well 3 "$train" --replay "$work/run" && says 'hint: say where the dataset is now: --data') || exit 1
# And so do that of the model, of which the run has kept a copy, and that of its first weights.
run 0 ranks 2 "$train" "${few[@]}" --output warm --init-weights run/model.safetensors
here_is=(--data "$work/small/data")
(cd elsewhere && fails_well 2 "$train" --replay "$work/warm" "${here_is[@]}" &&
    says "hint: it counts from where the run was started; a copy was kept: --model $work/warm/model.yaml" &&
    here_is+=(--model "$work/warm/model.yaml") && fails_well 3 "$train" --replay "$work/warm" "${here_is[@]}" &&
    says 'hint: say where what the run began with is now: --init-weights' &&
    run 0 "$train" --replay "$work/warm" "${here_is[@]}" --init-weights "$work/run/model.safetensors") || exit 1

# A built-in model is found from everywhere; what is wrong with images of another size is said.
run 0 ranks 2 "$train" "${few[@]}" --model lenet --epochs 1 --output built-in
run 0 "$ingest" export small/data --split train --to pngs --format png
run 0 "$ingest" folder pngs --out tiny-images --split train --resize 4 4
fails_well 2 "$train" --replay built-in --data tiny-images
says 'hint: the input of the model is 1x4x4'
run 0 "$ingest" folder pngs --out other-images --split other
fails_well 3 "$train" --replay built-in --data other-images
says 'hint: the run is of another dataset: --data DATASET names it'

# Nor is one rule's log another's.
sed -i 's/^gamma: lag/gamma: none/' lag/config.yaml
fails_well 3 "$train" --replay lag
says '"gamma" is'

alter() { # FILE FIELD EXPRESSION: of its value v, on the middle line that has the field; $line
    line=$(python3 "$here/alter.py" "$@") || die "could not change $1"
}

altered() { # FILE FIELD EXPRESSION [STATUS]: a run with one value changed is not taken for the real one
    rm -rf other
    cp -r run other
    alter "other/exchange/$1" "$2" "$3"
    fails_well "${4:-3}" "$train" --replay other
}

located() { # as altered; file and line are named
    altered "$@"
    says "other/exchange/$1, line $line: "
}

named() { # as altered; file, line and field are named
    located "$@"
    says "\"$2\""
}

for by in +1 -1; do
    [ $by = +1 ] || variants || continue
    named updates.rank-1.jsonl shard "v$by"
    named updates.rank-0.jsonl version "v$by" 2 # as in a resumed run, which cannot be replayed
    named updates.rank-2.jsonl seq "v$by"
    named updates.rank-0.jsonl base "v$by"
    named updates.rank-1.jsonl gamma "v${by}e-9"
    named updates.rank-2.jsonl staleness "v$by"
    named updates.rank-0.jsonl lead "v$by"
    named steps.rank-0.jsonl pass "v$by" 2
    altered steps.rank-1.jsonl pushed_at "v$by" # it no longer fits landed_at, or the next push is no meeting
    next=$(awk -v at="$line" 'NR > at && /"pushed_at"/ {print NR; exit}' other/exchange/steps.rank-1.jsonl)
    grep -qE "other/exchange/steps.rank-1.jsonl, line ($line|${next:-$line}): " err ||
        die "not the place of what was changed"
    named steps.rank-1.jsonl every "v$by"
    named steps.rank-0.jsonl progress "v${by}*20"
    named steps.rank-1.jsonl round "v$by"
    named steps.rank-2.jsonl held "[v[0]$by] + v[1:]"
    altered updates.rank-0.jsonl worker "(v$by)%3" # after a meeting only later lines show it
done
# An answer may take long, but the next push follows it.
altered steps.rank-2.jsonl landed_at "v - 10"
altered steps.rank-2.jsonl landed_at "v + 10"
named steps.rank-2.jsonl landed_at "0"
# As many samples in all: where no other rank has met the round, a later one shows it.
altered steps.rank-1.jsonl held "[v[0] + 1, v[1] - 1, v[2]]"
named steps.rank-1.jsonl held "v[1:]"
named steps.rank-0.jsonl rounds "v + 4"
named updates.rank-1.jsonl worker "3"
named updates.rank-1.jsonl q "-v"
named updates.rank-1.jsonl q "v + 1" # ranks were not judged
located steps.rank-2.jsonl met "not v"
# Other types, and fields that nobody knows.
for field in shard version worker seq base gamma q staleness lead; do
    [ $field = gamma ] || variants || continue
    named updates.rank-1.jsonl $field "str(v)"
done
for field in pass rounds pushed_at landed_at every progress round held met; do
    [ $field = held ] || variants || continue
    named steps.rank-1.jsonl $field "str(v)"
done
named steps.rank-1.jsonl held "[str(n) for n in v]"
for file in updates.rank-2 steps.rank-0; do
    rm -rf other && cp -r run other
    sed -i '2s/}/, "more": 0}/' other/exchange/$file.jsonl
    fails_well 3 "$train" --replay other
    says "$file.jsonl, line 2: "
done
# How the weights were cut.
for begin in '[0, 16]' '[0, 32, 16]' '[16, 32, 48]' '[0, 17, 32]' '[0, 16, 10000000]' '[0, 16, "32"]' '[0, 16, 32, 48]'; do
    rm -rf other && cp -r run other
    echo "{\"begin\": $begin}" >other/exchange/shards.json
    fails_well 3 "$train" --replay other
    says "other/exchange/shards.json"
done
rm other/exchange/shards.json
fails_well 3 "$train" --replay other
says "other/exchange/shards.json"
# Lines that are missing at the end.
for file in steps.rank-1 updates.rank-2; do
    rm -rf other && cp -r run other
    sed -i '$d' other/exchange/$file.jsonl
    fails_well 3 "$train" --replay other
    says "other/exchange/$file.jsonl ends after line "
done
# The last pass is missing, or there is one more than the steps have begun.
passes() { # EXPRESSION: lines of a log of steps, by those of the run and the number of its last that is a pass
    rm -rf other && cp -r run other
    python3 - other/exchange/steps.rank-1.jsonl "$1" <<'END' || die "no other passes"
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
last = max(i for i, line in enumerate(lines) if "pass" in line)
print(*map(json.dumps, eval(sys.argv[2])), sep="\n", file=open(sys.argv[1], "w"))
END
    fails_well 3 "$train" --replay other
}
passes 'lines[:last] + lines[last + 1:]'
says "other/exchange/steps.rank-1.jsonl ends after line "
says ": pass "
passes 'lines + [lines[last] | {"pass": lines[last]["pass"] + 1}]'
says "other/exchange/steps.rank-1.jsonl, line $(wc -l <other/exchange/steps.rank-1.jsonl): \"pass\" is "
# A push that only a host has written down, behind a meeting: the last may follow another one.
rm -rf other && cp -r run other
python3 - other/exchange/updates.rank-0.jsonl <<'END'
import json, sys
lines = [json.loads(line) for line in open(sys.argv[1])]
of_worker = [line for line in lines if line["worker"] == 1]
more = of_worker[-1] | {"version": lines[-1]["version"] + 1, "seq": of_worker[-1]["seq"] + 1}
print(json.dumps(more), file=open(sys.argv[1], "a"))
END
fails_well 3 "$train" --replay other
says "other/exchange/steps.rank-1.jsonl ends after line "
# A configuration that was not that of the run.
for wrong in "sync-every: 4" "batch-size: 10"; do
    rm -rf other
    cp -r run other
    sed -i "s/^${wrong%: *}: .*/$wrong/" other/config.yaml
    fails_well 3 "$train" --replay other
done
# Options are those of the run, but for where its data and model lie and what is said.
for option in "--sync-every 3" "--batch-size 10" "--optimizer sgd" "--seed 1" "--epochs 3" "--lr 0.05" "--weight-decay 0" \
    "--momentum 0.9" "--augment flip" "--train-split test" "--clip-norm 1" "--label-smoothing 0.1" "--partition even" \
    "--trace-steps 1-2"; do
    [ "$option" = "--seed 1" ] || variants || continue
    # shellcheck disable=SC2086 # several words
    fails_well 2 "$train" --replay run $option
    says "${option% *} is not used by --replay"
done
cp -r data moved
cp tiny.yaml renamed.yaml
run 0 "$train" --replay run --data moved --model renamed.yaml --log-interval 1 --log-level debug
says "bit for bit"
# So it is in a configuration file, of which nothing else counts; the command line wins over it.
printf 'replay: run\ndata: moved\nmodel: renamed.yaml\nlog-level: debug\nbatch-size: 10\nlr: 7\n' >replay.yaml
run 0 "$train" --config replay.yaml
says "bit for bit"
says "debug: " # the level
says "lr, batch-size in the configuration are not used by --replay"
echo 'data: nowhere' >nowhere.yaml
fails_well 3 "$train" --replay run --config nowhere.yaml
says "nowhere"
run 0 "$train" --config nowhere.yaml --replay run --data moved
says "bit for bit"
run 0 "$train" --config less/config.yaml --replay less
says "bit for bit"
run 0 "$train" --replay=run --
says "bit for bit"
fails_well 2 "$train" --config replay.yaml --replay ''
says "--replay is missing"

rm -rf other
cp -r run other
head -c $(($(stat -c %s run/exchange/steps.rank-1.jsonl) / 2)) run/exchange/steps.rank-1.jsonl \
    >other/exchange/steps.rank-1.jsonl
fails_well 3 "$train" --replay other
rm other/exchange/updates.rank-1.jsonl
fails_well 3 "$train" --replay other

# What its configuration says is looked at like any other.
rm -rf other
cp -r run other
sed -i 's/^augment: .*/augment: "crop=2,flop"/' other/config.yaml
fails_well 2 "$train" --replay other
says 'there is no augmentation "flop"'

for key in model data; do
    sed "/^$key: /d" run/config.yaml >other/config.yaml
    fails_well 2 "$train" --replay other
    says "other/config.yaml names no $key"
done

# Other ways of updating leave no such logs.
run 0 "$train" "${common[@]}" --output local --epochs 0.1
fails_well 2 "$train" --replay local
fails_well 2 "$train" --replay nowhere
says 'a replay needs the folder of an agwu or easgd run'
