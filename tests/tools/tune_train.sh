#!/usr/bin/env bash
# bpt-tune ends within its budget and writes a file; bpt-train --tuned takes its values where nobody has
# given others, learns the same bits, and refuses a file that was made for anything else.
source "$(dirname "$0")/common.sh"
make_data 600 100
make_model

within() { # SECONDS COMMAND...: ends by itself, with 0. A machine that is busy, or sanitizers, may make the round
    # that is begun last a long one; that the budget is not heeded shows all the same
    local limit=$1 start=${EPOCHREALTIME/,/.} took # a comma in some languages
    shift
    run 0 "$@"
    took=$(python3 -c "print(${EPOCHREALTIME/,/.} - $start)")
    python3 -c "raise SystemExit(not $took < 2 * $limit + 10)" || die "$took s for a budget of $limit: $*"
}

uncut() { # a tuned file without cuts, which may be there on machines where they gain something
    local text
    text=$(sed '/^cuts:/,$d; /^rows:/d')
    printf '%s\nrows: %s\n' "$text" "$(grep -c '^ *- \[' <<<"$text")"
}

field() { # FILE KEY: value of a line "  KEY: 'VALUE'" or "  KEY: VALUE"
    sed -nE "s/^  $2: '?([^']*)'?\$/\1/p" "$1"
}

# ---- the file ----
within 8 "$tune" --data data --model tiny.yaml --batch-size 20 --out tiny.tuned.yaml --budget 8
says 'written to tiny.tuned.yaml' out
says 'default: threads' out
says 'best   :' out
grep -qE '^threads +|^policy +fifo' out || die "no table of what was tried"
grep -qE '^cuts +by costs +as usual ' out || die "nothing about cuts in the table"
for option in threads policy loader-threads prefetch; do
    [ -n "$(field tiny.tuned.yaml $option)" ] || die "no choice of $option"
done
[ "$(field tiny.tuned.yaml model)" = tiny ] || die "the file does not name its model"
grep -q "\['conv1', 'forward', [0-9]" tiny.tuned.yaml || die "no costs of tasks"
# Without a dataset nothing about loading is known.
for model in lenet resnet20; do
    [ $model = lenet ] || variants || continue
    within 6 "$tune" --model $model --batch-size 8 --budget 6 --out $model.yaml
    [ -n "$(field $model.yaml threads)" ] || die "$model: no choice"
    [ -z "$(field $model.yaml prefetch)" ] || die "$model: prefetch was not measured"
    run 0 "$train" --model $model --batch-size 8 --bench 2 --tuned $model.yaml
    says "tuned by $model.yaml: threads"
    fails_well 2 "$train" --model $model --batch-size 9 --bench 2 --tuned $model.yaml
done
[ "$(ls -I resnet20.yaml)" = "$(printf '%s\n' data err lenet.yaml out tiny.tuned.yaml tiny.yaml)" ] ||
    die "bpt-tune leaves something: $(ls)"

# ---- training with it ----
# tune_cuts.sh has files with cuts, which may change last bits.
one=(--data data --model tiny.yaml --batch-size 20 --epochs 1 --lr 0.05)
sed -e 's/^  threads: .*/  threads: 1/; s/^  policy: .*/  policy: fifo/' \
    -e 's/^  loader-threads: .*/  loader-threads: 2/; s/^  prefetch: .*/  prefetch: 7/' tiny.tuned.yaml | uncut >all.yaml
run 0 "$train" "${one[@]}" --output runs/plain
run 0 "$train" "${one[@]}" --output runs/tuned --tuned all.yaml
says 'tuned by all.yaml: threads 1, policy fifo, loader-threads 2, prefetch 7, costs of'
same_weights runs/plain runs/tuned
tuned_rank() { # THREADS POLICY LOADERS PREFETCH TUNED: what the first rank of the last run had
    check_json "$run/summary.json" "d['ranks'][0]['threads'] == $1" "d['ranks'][0]['policy'] == '$2'" \
        "d['ranks'][0]['loader_threads'] == $3" "d['ranks'][0]['prefetch'] == $4" \
        "d['ranks'][0]['tuned'] is $5"
}
run=runs/tuned tuned_rank 1 fifo 2 7 True
check_json runs/plain/summary.json "d['ranks'][0]['tuned'] is False"
# Many ranks have half of the batch where nobody gives it; a file is for the whole one.
grep -q "batch-size: '20'" all.yaml || die "the file names no batch"
sed "s/batch-size: '20'/batch-size: '64'/" all.yaml >of-64.yaml
run 0 env OMPI_COMM_WORLD_SIZE=5 OMPI_COMM_WORLD_RANK=0 OMPI_COMM_WORLD_LOCAL_SIZE=1 \
    "$train" --data data --model tiny.yaml --dry-run --tuned of-64.yaml
says "with 64 samples a step" out
grep -qx 'threads: 1' runs/tuned/config.yaml && grep -qx 'policy: "fifo"' runs/tuned/config.yaml &&
    grep -qx 'tuned: "all.yaml"' runs/tuned/config.yaml || die "config.yaml is not what was run"
grep -q 'tuned by all.yaml' runs/tuned/log.rank-0.txt || die "the log does not say it"
# What is given is kept, on the command line and in a configuration file; its defaults are nobody's wish.
run 0 "$train" "${one[@]}" --output runs/given --tuned all.yaml --threads 2 --policy critical-path
says 'given, and kept: threads 2, policy critical-path'
run=runs/given tuned_rank 2 critical-path 2 7 True
printf 'prefetch: 5\npolicy: level\nloader-threads: 1\n' >c.yaml
run 0 "$train" "${one[@]}" --config c.yaml --output runs/config --tuned all.yaml
run=runs/config tuned_rank 1 level 2 5 True
# The run's own configuration repeats it.
run 0 "$train" --config runs/tuned/config.yaml --output runs/again
run=runs/again tuned_rank 1 fifo 2 7 True
same_weights runs/plain runs/again
run 0 "$train" "${one[@]}" --dry-run --tuned all.yaml
says 'prefetch: 7' out

# A bench takes what has to do with loading where it loads.
bench=("$train" --model tiny.yaml --batch-size 20 --bench 2 --tuned all.yaml)
run 0 "${bench[@]}" --data data
says 'tuned by all.yaml: threads 1, policy fifo, loader-threads 2, prefetch 7, costs of'
run 0 "${bench[@]}" --data data --loader-threads 1
says 'tuned by all.yaml: threads 1, policy fifo, prefetch 7, costs of'
says 'given, and kept: loader-threads 1'
run 0 "${bench[@]}"
says 'tuned by all.yaml: threads 1, policy fifo, costs of'

# ---- refusals ----
fields=$(sed -n '/^key:/,/^$/s/^  \([a-z-]*\): .*/\1/p' all.yaml)
[ "$(wc -w <<<"$fields")" -ge 12 ] || die "the key has lost fields: $fields"
for name in $fields; do
    sed "s/^  $name: '/&X/" all.yaml >other.yaml
    cmp -s all.yaml other.yaml && die "the file has no line of $name to change"
    fails_well 2 "$train" "${one[@]}" --output runs/other --tuned other.yaml
    says "other.yaml was tuned for $name \"X$(field all.yaml "$name")\", that of this run is \"$(field all.yaml "$name")\""
    says 'hint: run bpt-tune again'
    fails_well 2 "$train" "${one[@]}" --dry-run --tuned other.yaml
    [ ! -e runs/other ] || die "a refused run leaves a folder"
done
fails_well 2 "$train" --data data --model lenet --batch-size 20 --output runs/other --tuned all.yaml
says 'was tuned for model "tiny", that of this run is "lenet"'
fails_well 2 "$train" "${one[@]}" --optimizer adamw --output runs/other --tuned all.yaml
says 'with --optimizer adamw'
fails_well 2 "$train" "${one[@]}" --output runs/other --tuned nowhere.yaml
says nowhere.yaml
fails_well 2 "$train" "${one[@]}" --output runs/other --tuned tiny.yaml
for edit in 's/^  threads: .*/  threads: 0/' 's/^  policy: .*/  policy: nosuch/' "s/, [0-9]*\]$/, -1]/"; do
    sed "$edit" all.yaml >other.yaml
    fails_well 2 "$train" "${one[@]}" --output runs/other --tuned other.yaml
    grep -qE 'other\.yaml:[0-9]+: ' err || die "no line: $edit"
    says 'hint: such files are made by bpt-tune'
done
# Somebody has changed the network, and not its name.
mkdir edited
sed 's/filters: 8, kernel: 5/filters: 7, kernel: 5/' tiny.yaml >edited/tiny.yaml
fails_well 2 "$train" "${one[@]}" --model edited/tiny.yaml --output runs/other --tuned all.yaml
says 'was tuned for layers'
# A replay has no use for it.
fails_well 2 "$train" --replay runs/plain --tuned all.yaml
says '--tuned is not used by --replay'

# ---- ranks ----
# Each of two ranks that share two cores has one; a batch of allreduce is shared too.
host=$(uname -n)
cores=$(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2], sep=",")')
two() { # COMMAND...: on two ranks that may use these
    # shellcheck disable=SC2086 # several words
    taskset -c "$cores" $BPT_MPIRUN -np 2 "$@"
}
run 0 taskset -c "${cores%,*}" "$tune" --data data --model tiny.yaml --batch-size 20 --budget 4 --out %h.yaml
[ "$(grep -c "^$host: " out)" -gt 3 ] && [ "$(grep -cv "^$host: " out)" -eq 0 ] || die "hosts that tune at once are not told apart"
sed -e 's/^  policy: .*/  policy: fifo/; s/^  loader-threads: .*/  loader-threads: 2/; s/^  prefetch: .*/  prefetch: 7/' \
    "$host.yaml" | uncut >host.yaml
mv host.yaml "$host.yaml"
[ "$(field "$host.yaml" cores)" = 1 ] || die "no file of the host, or of other cores: $(ls)"
run 0 two "$train" "${one[@]}" --update allreduce --batch-size 40 --output runs/two --tuned %h.yaml
check_json runs/two/summary.json "all(r['tuned'] and r['threads'] == 1 for r in d['ranks'])"
for line in 'tuned: "%h.yaml"' 'threads: 0' 'policy: "critical-path"' 'loader-threads: 1' 'prefetch: 4'; do
    grep -qx "$line" runs/two/config.yaml || die "config.yaml has the values of one host: no $line"
done
run 0 two "$train" "${one[@]}" --update allreduce --batch-size 40 --output runs/two-plain
same_weights runs/two runs/two-plain
fails_well 2 two "$train" "${one[@]}" --update allreduce --batch-size 20 --output runs/other --tuned %h.yaml
says "was tuned for batch-size \"20\", that of this run on $host is \"10\""
# A look before says the same of each rank, and nothing of a file that is right.
run 0 two "$train" "${one[@]}" --update allreduce --batch-size 40 --output runs/other --tuned %h.yaml --check
run 2 two "$train" "${one[@]}" --update allreduce --batch-size 20 --output runs/other --tuned %h.yaml --check
[ "$(grep -c "^error: rank [01] on $host: .* was tuned for batch-size \"20\", that of this run is \"10\"" out)" -eq 2 ] ||
    die "a look before does not find that the file is for another batch"
if [ "$cores" != "${cores%,*}" ]; then
    run 2 taskset -c "$cores" "$train" "${one[@]}" --output runs/other --tuned "$host.yaml" --check
    says 'was tuned for cores "1", that of this run is "2"' out
fi
# Many ranks have half of the batch where nobody gives it, but all the whole one where one of them is tuned.
sed "s/batch-size: '20'/batch-size: '64'/" "$host.yaml" >of-64.yaml
some=("$train" --data data --model tiny.yaml --epochs 1 --threads 1 --output runs/some)
# shellcheck disable=SC2086 # several words
run 0 taskset -c "${cores%,*}" $BPT_MPIRUN -np 5 "${unlike[@]}" "${some[@]}" --tuned of-64.yaml --others "${some[@]}"
says "batch: 64 samples a step of this rank"
# A host without a file of its own.
fails_well 2 "$train" "${one[@]}" --output runs/other --tuned runs/%h.yaml
says "runs/$host.yaml"

# ---- what bpt-tune refuses, before it measures anything ----
cp all.yaml kept.yaml
fails_well 2 "$tune" --model lenet --out kept.yaml
says 'kept.yaml is there already'
cmp -s all.yaml kept.yaml || die "a refused bpt-tune has changed the file"
# Nor what somebody puts there while it measures; and it says what of a configuration has no effect.
printf 'classes: 5\n' >beside.yaml
start "$tune" --config beside.yaml --data data --model tiny.yaml --batch-size 20 --budget 2 --out race.yaml
await err 'classes in the configuration is not used with --data'
echo mine >race.yaml # it looks for one at once, and then measures
finish 2
says 'race.yaml is there already'
[ "$(cat race.yaml)" = mine ] || die "a file that came meanwhile is replaced"
fails_well 1 "$tune" --model lenet --out nowhere/x.yaml
fails_well 2 "$tune" --model lenet
fails_well 2 "$tune" --out x.yaml
fails_well 2 "$tune" --model nosuch --out x.yaml
fails_well 3 "$tune" --model lenet --data nowhere --out x.yaml
fails_well 3 "$tune" --model lenet --data data --train-split nosuch --out x.yaml
fails_well 2 "$tune" --model lenet --data data --classes 10 --out x.yaml
fails_well 2 "$tune" --model lenet --train-split train --out x.yaml
fails_well 2 "$tune" --model lenet --budget 0 --out x.yaml
fails_well 2 "$tune" --model tiny.yaml --data data --batch-size 601 --out x.yaml
says 'hint: give --batch-size 600 or less'
fails_well 2 "$tune" --model lenet --precision tf32 --out x.yaml
says 'hint: use fp32; bpt-train and bpt-eval'
# Only what bpt-tune has made gives way to --force, and what is empty.
cp -r data folder
mkfifo pipe.yaml
ln -s nowhere link.yaml
printf 'tuned: "all.yaml"\nthreads: 1\n' >run.yaml # like the configuration of a run
for mine in tiny.yaml run.yaml data/data.mdb folder pipe.yaml link.yaml; do
    before=$(ls -ldi $mine)
    fails_well 2 "$tune" --model lenet --batch-size 8 --budget 1 --force --out $mine
    says "$mine exists already and is no file of bpt-tune"
    [ "$(ls -ldi $mine)" = "$before" ] || die "a file of bpt-tune took the place of $mine"
done
sed 's/^tuned: .*/tuned: 1/' all.yaml >old.yaml
: >empty.yaml
for ours in old.yaml empty.yaml; do
    run 0 "$tune" --model lenet --batch-size 8 --budget 1 --force --out $ours
    [ -n "$(field $ours threads)" ] || die "$ours is not replaced"
done
# What cannot be written is heard of before the first step.
fails_well 1 "$tune" --model lenet --out "$(printf 'x%.0s' {1..250})"
[ ! -s out ] || die "measured in vain"
fails_well 2 "$tune" --model vgg16 --batch-size 65536 --out x.yaml
says 'as are compared, need'
[ ! -e x.yaml ] || die "a refused bpt-tune leaves a file"
# A disk that is full in the end takes the file, and not what was measured.
fails_well 1 bash -c 'set -o pipefail; (ulimit -f 1; exec "$@") | cat' limited "$tune" --data data --model tiny.yaml \
    --batch-size 20 --budget 1 --out x.yaml
says 'default: threads' out
says 'File too large'
[ -z "$(ls -A | grep x.yaml)" ] || die "half a file: $(ls -A)"
# Stopped: status 1, and the old file stays.
for signal in TERM INT; do
    : >err # of the one before
    (trap - INT; exec "$tune" --model lenet --batch-size 8 --budget 60 --force --out kept.yaml) >out 2>err </dev/null &
    pid=$!
    started+=("$pid")
    await err ': round ' # of whichever comparison it is at when it first says so
    kill -$signal $pid
    finish 1 30
    says 'nothing is written'
    cmp -s all.yaml kept.yaml || die "SIG$signal: the file has changed"
done
ls | grep -q tmp && die "a temporary file is left: $(ls)"
run 0 "$tune" --model lenet --batch-size 8 --budget 1 --force --out kept.yaml
cmp -s all.yaml kept.yaml && die "--force has replaced nothing"
exit 0
