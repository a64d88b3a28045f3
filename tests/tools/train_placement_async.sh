#!/usr/bin/env bash
# --placement under agwu: one rank trains the last layers from the batches of all, as they come. The bytes are those of the
# formula, the job learns, goes on from a checkpoint and is replayed to the bit; what fails says so once.
source "$(dirname "$0")/common.sh"
make_data 2000 400

# Two layers with weights on each side, batch norm and dropout on both.
cat >parts.yaml <<'END'
name: parts
input: [1, 28, 28]
classes: 10
layers:
  - conv: {name: conv1, filters: 16, kernel: 5, stride: 2}
  - batchnorm: {name: norm1}
  - relu
  - dropout: {name: drop1, rate: 0.1}
  - conv: {name: conv2, filters: 16, kernel: 3}
  - relu
  - maxpool: {name: pool, kernel: 2}
  - fc: {name: fc1, outputs: 300}
  - batchnorm: {name: norm2}
  - relu
  - dropout: {name: drop2, rate: 0.4}
  - fc: {name: fc2, outputs: classes}
END
placed=(--data data --model parts.yaml --batch-size 20 --threads 1 --lr 0.02 --momentum 0.9 --update agwu --epochs 3
    --calibrate 0.01 --log-interval 0.1)

# 4 bytes a value there and back and 4 a label in every step, the weights up to the border twice in every push; running
# statistics are exchanged as weights are.
conv1=$((16 * 25 + 16 + 64)) conv2=$((16 * 144 + 16)) fc1=$((400 * 300 + 300 + 4 * 300))
exact_bytes() { # RUN BORDER
    local a p
    case $2 in
    conv2) a=2304 p=$conv1 ;;
    fc1) a=400 p=$((conv1 + conv2)) ;;
    fc2) a=300 p=$((conv1 + conv2 + fc1)) ;;
    esac
    local what
    for what in sent received; do
        check_json "$1/summary.json" \
            "sum(r['border_bytes_$what'] for r in d['ranks']) == sum(r['steps'] for r in d['ranks']) * 20 * (8 * $a + 4)" \
            "sum(r['payload_bytes_$what'] - r['border_bytes_$what'] for r in d['ranks']) == 8 * $p * sum(r['submissions'] for r in d['ranks'])"
    done
    # Labels go one way alone: a rank sends its own, and the host is sent those of all. Each push is answered with as much.
    local host
    host=$(basename "$1"/exchange/border.rank-*.jsonl .jsonl)
    host=${host#border.rank-}
    check_json "$1/summary.json" \
        "all(r['border_bytes_sent'] - r['border_bytes_received'] == 80 * (r['steps'] - (r['rank'] == $host) *
             sum(q['steps'] for q in d['ranks'])) for r in d['ranks'])" \
        "all(r['payload_bytes_sent'] - r['border_bytes_sent'] == r['payload_bytes_received'] - r['border_bytes_received']
             for r in d['ranks'])"
}

# Every border, on some number of ranks. An epoch takes longer than a rank is kept waiting for a core: where two are passed
# at once they have one evaluation.
mkdir more && (cd more && make_data "$(length 5000 3000)" 400) || die "data"
for case in "2 conv2" "3 fc1" "4 fc2"; do
    read -r n border <<<"$case"
    [ "$case" = "3 fc1" ] || variants || continue
    run 0 ranks "$n" "$train" "${placed[@]}" --data more/data --placement "$border" --output "runs/$border-$n"
    says "placement: layers from $border on"
    exact_bytes "runs/$border-$n" "$border"
    check_json "runs/$border-$n/summary.json" "d['test_accuracy'] > 0.6" "d['epochs'] >= 3" \
        'all(r["path_s"] == r["work_s"] == 0 for r in d["ranks"])'
    [ "$(grep -c '"event": "eval"' "runs/$border-$n/metrics.jsonl")" -ge 3 ] || die "no evaluation an epoch"
    run 0 "$train" --replay "runs/$border-$n"
    says "bit for bit"
done

# The weights of both parts are in one file.
run 0 "$eval" --data more/data --split test --model parts.yaml --weights runs/fc1-3/model.safetensors --json
python3 - <<'END' || die "bpt-eval does not see what the run has seen"
import json
said, summary = json.load(open("out")), json.load(open("runs/fc1-3/summary.json"))
assert abs(said["accuracy"] - summary["test_accuracy"]) < 1e-12, (said, summary)
END

# With delay compensation, pushes at every step and a bound on how far a rank may be ahead; with another optimiser.
others=("${placed[@]}" --momentum 0 --epochs 1 --placement fc1 --sync-every 1 --max-staleness 2)
run 0 ranks 3 "$train" "${others[@]}" --delay-compensation 0.04 --output runs/compensated
run 0 "$train" --replay runs/compensated
says "bit for bit"
run 0 ranks 2 "$train" --data data --model parts.yaml --batch-size 20 --threads 1 --lr 0.001 --optimizer adamw --update agwu \
    --epochs 1 --placement fc1 --calibrate 0.01 --output runs/adamw
run 0 "$train" --replay runs/adamw
says "bit for bit"

# A log that was changed is not taken for the real one.
log=$(basename runs/fc1-3/exchange/border.rank-*.jsonl)
altered() { # EXPRESSION: a script of sed for the log
    rm -rf other
    cp -r runs/fc1-3 other
    sed -i "$1" "other/exchange/$log"
    cmp -s "runs/fc1-3/exchange/$log" "other/exchange/$log" && die "nothing is changed by $1"
    fails_well 3 "$train" --replay other
    says "other/exchange/$log, line"
}
altered '40s/"step": /"step": 1/'
altered '40s/"worker": ./"worker": 3/'
altered '40s/"rate": 0/"rate": 1/'
altered '40s/}/, "seq": 1}/'
altered '1s/fc1/conv7/'
rm -rf other
cp -r runs/fc1-3 other
sed -i '$d' "other/exchange/$log"
fails_well 3 "$train" --replay other
says "the logs do not fit together"

# A job goes on with the host's state of the tail's optimiser and its count of updates, and the bytes are counted on.
once=("${placed[@]}" --placement fc1 --checkpoint-every 20)
run 0 ranks 3 "$train" "${once[@]}" --output runs/on
cut_back runs/on
cat >state.py <<'END'
import glob, json, struct
folder = sorted(glob.glob("runs/on/checkpoints/step-*"))[-1]
ranks = [json.load(open(f"{folder}/rank-{r}.json")) for r in range(3)]
host = ranks[0]["placement_host"]
assert all(r["placement"] == "fc1" and r["placement_host"] == host for r in ranks)
steps = sum(r["steps"] for r in ranks)
assert [r["placement_updates"] for r in ranks] == [steps if i == host else 0 for i in range(3)], ranks
assert all(r["optimizer_updates"] == r["steps"] for r in ranks)
def any_of(rank, name):
    data = open(f"{folder}/rank-{rank}.momentum.safetensors", "rb").read()
    (size,) = struct.unpack("<Q", data[:8])
    begin, end = json.loads(data[8 : 8 + size])[name]["data_offsets"]
    return any(data[8 + size + begin : 8 + size + end])
for r in range(3):
    assert any_of(r, "conv1.weight")
    assert any_of(r, "fc1.weight") == (r == host), r
END
python3 state.py || die "the state of the tail is not in the checkpoint"
run 0 ranks 3 "$train" "${once[@]}" --output runs/on --resume auto
says "going on from runs/on/checkpoints/step-"
[ "$(ls runs/on/checkpoints | wc -l)" -ge 2 ] && python3 state.py || die "it is not gone on with"
exact_bytes runs/on fc1
check_json runs/on/summary.json "d['test_accuracy'] > 0.6" "d['epochs'] >= 3"
fails_well 2 "$train" --replay runs/on
says "it was resumed"

# Where a signal ends it, and as another job.
# shellcheck disable=SC2086 # several words
stop_early runs/stopped USR1 $BPT_MPIRUN -np 2 "$train" "${placed[@]}" --placement fc1 --epochs 100000 --eval-every 0
run 0 ranks 2 "$train" "${placed[@]}" --placement off --output runs/whole --resume runs/stopped
says "is of another job"

# By measurement, and where --update is one as well.
run 0 ranks 2 "$train" "${placed[@]}" --model lenet --epochs 0.5 --placement auto --output runs/chosen
says "--placement auto: "
sed '/norm/d' parts.yaml >plain.yaml
run 0 ranks 2 "$train" "${placed[@]}" --model plain.yaml --update auto --momentum 0 --epochs 1 --placement fc1 --output runs/auto
says "placement: layers from fc1 on"
# It may come to allreduce, where no batch norm may be at the host: said before anything is measured.
fails_well 2 ranks 2 "$train" "${placed[@]}" --update auto --momentum 0 --placement fc1 --output runs/none
says "batch norm norm2 would have the statistics of all ranks"

# What the host cannot compute ends the job, and is said once, by a rank whose batch it was.
fails_well 4 ranks 3 "$train" "${placed[@]}" --model plain.yaml --placement fc1 --lr 1e12 --warmup-epochs 0 --output runs/wild
says "is not a finite number"

# A host that hangs is named; without measurements that is rank 0.
start_ranks 3 "$train" "${placed[@]}" --placement fc1 --calibrate 0 --epochs 1000000 --eval-every 0 --stall-timeout 3 --output runs/hung
await_steps runs/hung
for process in $(pgrep -P "$pid" -x bpt-train); do
    tr '\0' '\n' <"/proc/$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=0" && kill -STOP "$process"
done
finish 1 240
grep -E '^bpt-train: rank [12] ' err | grep -qF "at the layers on rank 0 for rank 0 on $(hostname) (does not answer)" ||
    die "the host is not named"

# The plan of memory is of the parts.
run 0 ranks 4 "$train" --model vgg16 --batch-size 2 --update agwu --threads 1 --placement fc6 --dry-run
python3 - <<'END' || die "the plans of the parts are wrong"
import re
def rows(text):
    return {name.strip(): int(n) for name, n in re.findall(r"^  (\S.*?) +(\d+) +[\d.]+ MB$", text, re.M)}
text = open("out").read()
rank, host = map(rows, text.split("memory of ")[1:])
head, tail, border = 14714688, 123642856, 25088
assert 4 * head <= rank["parameters"] < 4.1 * head, rank
assert 4 * (head + tail) <= host["parameters"] < 4.1 * (head + tail), host
assert "batches of all ranks" not in rank and host["batches of all ranks"] == 4 * 2 * (4 * border + 4), host
assert 4 * head < rank["exchange"] < 4 * 4.5 * head, rank
assert rank["network to evaluate"] > 4 * (head + tail), rank
before = int(re.search(r"^before, while speeds are measured .*: (\d+) bytes", text, re.M)[1])
assert before > 4 * 5 * (head + tail), before
for plan in rank, host:
    assert plan["total"] == sum(n for name, n in plan.items() if name != "total"), plan
END

# What cannot be.
fails_well 2 ranks 2 "$train" "${placed[@]}" --placement fc1 --update sgwu --output runs/none
says "--placement is not used by --update sgwu"
fails_well 2 ranks 2 "$train" "${placed[@]}" --placement fc1 --update easgd --output runs/none
says "--placement is not used by --update easgd"
fails_well 2 ranks 2 "$train" "${placed[@]}" --placement fc1 --server-momentum 0.5 --output runs/none
says "pushed by nobody"
fails_well 2 ranks 2 "$train" "${placed[@]}" --placement fc1 --quality held-out --output runs/none
says "no rank has all the weights"
fails_well 2 ranks 2 "$train" "${placed[@]}" --placement conv7 --output runs/none
says 'bpt-train: --placement conv7: model parts has no layer called "conv7"'
[ ! -e runs/none ] || die "a refused run leaves a folder"
