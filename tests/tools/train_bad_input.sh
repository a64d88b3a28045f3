#!/usr/bin/env bash
# What users get wrong: each time the right exit status, one line that says what, a hint, no crash,
# and nothing of theirs lost.
source "$(dirname "$0")/common.sh"
make_data 400 100
make_model
good=("${common[@]}" --epochs 1)

# ---- options ----

fails_well 2 "$train" --model tiny.yaml --bench 1 --policy fiffo
says "the policies are critical-path, level, eft, fifo"
fails_well 2 "$train" "${good[@]}" --output runs/x --epoch 3
says 'unknown option "epoch"'
says 'did you mean "epochs"'
# As other programs have it: "order", "log-interval" and "sync-every" would be nearer.
for pair in workers=loader-threads val-interval=eval-every save-every=checkpoint-every; do
    fails_well 2 "$train" "${good[@]}" --output runs/x --${pair%=*} 3
    says "did you mean \"${pair#*=}\""
done
fails_well 2 "$train" -data data -model tiny.yaml --output runs/x
says 'unknown option "-data"'
says 'two dashes: --data'
fails_well 2 "$train" "${good[@]}" --output runs/x --batch-size 0
says 'batch-size'
fails_well 2 "$train" "${good[@]}" --output runs/x --batch-size ten
fails_well 2 "$train" "${good[@]}" --output runs/x --lr -1
fails_well 2 "$train" "${good[@]}" --output runs/x --lr nan
fails_well 2 "$train" "${good[@]}" --output runs/x --seed -1
says '-1 is out of range, it must be at least 0'
fails_well 2 "$train" "${good[@]}" --output runs/x --seed 9999999999999999
says '9999999999999999 is out of range, it must be at most 9e+15'
# Bounds beyond which steps, samples or a sum of what was before have no meaning, or no end.
for option in 'epochs 0' 'prefetch 1' 'loader-threads 0' 'threads 257' 'checkpoint-keep 0' 'order-block 0' \
    'held-out 0' 'held-out 0.51' 'momentum 1' 'server-momentum 1' 'beta1 1' 'elasticity 1' 'lr-step-size 0' \
    'adam-eps 0'; do
    # shellcheck disable=SC2086 # name and value
    fails_well 2 "$train" "${good[@]}" --output runs/x --$option
    says "${option#* } is out of range, it must be "
done
fails_well 2 "$train" "${good[@]}" --output runs/x --update agvu
says 'agwu'
fails_well 2 "$train" "${good[@]}" --output
fails_well 2 "$train" "${good[@]}"
says 'output'
fails_well 2 "$train" --data data --output runs/x
says 'model'
fails_well 2 "$train" --model lenet --output runs/x
says 'data'
fails_well 2 "$train" "${good[@]}" --output runs/x --schedule multistep
says '--milestones'
fails_well 2 "$train" "${good[@]}" --output runs/x --schedule multistep --milestones 3,2
fails_well 2 "$train" "${good[@]}" --output runs/x --update sgwu --max-staleness 1
fails_well 2 "$train" "${good[@]}" --output runs/x --update local --partition idpa
for every in 0 -1 1.5 8x nan ep; do
    fails_well 2 "$train" "${good[@]}" --output runs/x --sync-every $every
    says "--sync-every: \"$every\" is neither a number of steps nor of epochs"
done
for rounds in 0 65 2.5; do
    fails_well 2 "$train" "${good[@]}" --output runs/x --idpa-rounds $rounds
    says "--idpa-rounds: \"$rounds\" is neither a whole number from 1 to 64 nor auto"
done
fails_well 2 "$train" "${good[@]}" --output runs/x --augment crop=4,flop
says 'did you mean "flip"'
for list in crop crop=x flip=1 flip,,flip crop=400 rotate=181 resized-crop=0.5:0.2 jitter=0.1:0.1:0.1:0.1 erase=2; do
    fails_well 2 "$train" "${good[@]}" --output runs/x --augment $list
done
says 'it is written erase=PROBABILITY:FROM:TO:RATIO'
fails_well 2 "$train" "${good[@]}" --dry-run --augment crop=28
fails_well 2 "$train" --model tiny.yaml --dry-run --augment crop=28
says "wants images of at least 29x29, not 28x28"
fails_well 2 "$train" "${good[@]}" --output runs/x stray
says 'unexpected argument "stray"'
fails_well 2 "$eval" stray
fails_well 2 "$eval" --help=3
says '--help takes no value'
fails_well 2 "$train" "${good[@]}" --output runs/x --classes 3
# config.yaml could not be read again.
fails_well 2 "$train" "${good[@]}" --data $'d\xe9' --output runs/x
says 'is no UTF-8: no configuration file could have it'
ln -s data $'u\u2028\ufffe'
run 0 "$train" "${good[@]}" --data $'u\u2028\ufffe' --epochs 0.1 --output made/unusual
run 0 "$train" --config made/unusual/config.yaml --output made/unusual --force
# Nothing passes a batch norm over one value.
sed 's/^  - fc: .*/  - fc: {outputs: 12}\n  - batchnorm: {name: norm}\n  - fc: {outputs: classes}/' tiny.yaml >single.yaml
fails_well 2 "$train" "${good[@]}" --model single.yaml --batch-size 1 --output runs/x
says 'batch norm norm has one value a channel'
fails_well 2 ranks 2 "$train" "${good[@]}" --model single.yaml --batch-size 3 --update allreduce --output runs/x
says 'that of all ranks'
fails_well 2 "$train" --model single.yaml --batch-size 1 --bench 1
says 'batch norm norm has one value a channel'
run 0 "$train" --model single.yaml --batch-size 2 --bench 1
fails_well 2 "$train" --model single.yaml --batch-size 1 --dry-run
says 'batch norm norm has one value a channel'
fails_well 2 ranks 2 "$train" "${good[@]}" --model single.yaml --batch-size 3 --update allreduce --output runs/x --dry-run
says 'that of all ranks'
run 0 "$train" --model single.yaml --batch-size 2 --dry-run
for n in 1 2; do
    run 2 ranks $n "$train" "${good[@]}" --model single.yaml --batch-size $((2 * n - 1)) --update allreduce \
        --output runs/x --check
    says "error: rank 0 on $(hostname): batch norm norm has one value a channel" out
done
run 0 "$train" "${good[@]}" --model single.yaml --batch-size 2 --epochs 0.1 --output made/single
# A model's name does not steer the terminal.
sed 's/^name: tiny/name: "a\\e[31mb"/' tiny.yaml >steering.yaml
run 0 "$train" "${good[@]}" --model steering.yaml --epochs 0.1 --output made/steering
says ': a?[31mb: '
says ': a?[31mb: ' made/steering/log.rank-0.txt
printf 'batch-size: 20\nlearning-rate: 3\n' >config.yaml
fails_well 2 "$train" --config config.yaml --output runs/x
says 'config.yaml:2'
for line in 'sync-every: -4' 'policy: none' 'augment: crop=1,mixing' 'trace-steps: 3-2' 'idpa-rounds: 0' 'step-limit: -1'; do
    printf '\n%s\n' "$line" >config.yaml
    fails_well 2 "$train" --config config.yaml --output runs/x
    says 'config.yaml:2: '
done
fails_well 2 "$train" --config nowhere.yaml --output runs/x

# ---- model and data ----

fails_well 2 "$train" "${good[@]}" --output runs/x --model lenett
says 'lenet'
says 'vgg-small'
fails_well 2 "$train" "${good[@]}" --output runs/x --model nowhere.yaml
sed 's/kernel: 5/kernel: {/' tiny.yaml >broken.yaml
fails_well 2 "$train" "${good[@]}" --output runs/x --model broken.yaml
grep -qE 'broken\.yaml:[0-9]+' err || die "no file and line"
sed 's/filters: 8/filter: 8/' tiny.yaml >broken.yaml
fails_well 2 "$train" "${good[@]}" --output runs/x --model broken.yaml
says 'broken.yaml:5'
says 'filters'
sed 's/kernel: 5/kernel: 50/' tiny.yaml >broken.yaml
fails_well 2 "$train" "${good[@]}" --output runs/x --model broken.yaml
says 'conv1'
fails_well 3 "$train" "${good[@]}" --output runs/x --data nowhere
fails_well 3 "$train" "${good[@]}" --output runs/x --data tiny.yaml
mkdir empty
fails_well 3 "$train" "${good[@]}" --output runs/x --data empty
fails_well 3 "$train" "${good[@]}" --output runs/x --train-split training
says 'train'
fails_well 3 "$train" "${good[@]}" --output runs/x --test-split validation
says 'test'
fails_well 2 "$train" "${good[@]}" --output runs/x --batch-size 401
says 'split "train" has 400'
says '--batch-size 400 or less'
[ ! -e runs ] || die "a failed start leaves a run folder: $(find runs)"

fails_well 3 "$eval" --data data --model tiny.yaml --weights nowhere.safetensors
fails_well 3 "$eval" --data data --model tiny.yaml --weights tiny.yaml
fails_well 3 "$eval" --data data --model tiny.yaml --weights data # what is no file at all
says 'not a regular file'
for option in --model=/dev/null --config=data; do
    fails_well 2 "$train" "${good[@]}" --output runs/x $option
    says 'not a regular file'
done
says "such as the config.yaml of a run's folder"
fails_well 2 "$train" --config nowhere.yaml
says 'cannot open nowhere.yaml: No such file'
says "such as the config.yaml of a run's folder"
mkfifo pipe.yaml # that nobody writes to
for option in --model=pipe.yaml --config=pipe.yaml --tuned=pipe.yaml; do
    fails_well 2 timeout -s KILL 60 "$train" "${good[@]}" --output runs/x $option
    says 'not a regular file'
done
fails_well 3 timeout -s KILL 60 "$eval" --data data --model tiny.yaml --weights pipe.yaml
says 'not a regular file'
mkdir piped && mkfifo piped/data.mdb
fails_well 3 timeout -s KILL 60 "$eval" --data piped --model tiny.yaml --weights pipe.yaml
says 'piped/data.mdb: not a regular file'
fails_well 3 timeout -s KILL 60 "$ingest" glyphs --out piped --split train --count 10
says 'piped/data.mdb: not a regular file'
[ -p piped/data.mdb ] || die "what is no dataset is gone"
fails_well 2 "$eval" --data data --model tiny.yaml
fails_well 2 "$eval" --data data --model tiny.yaml --weights x --jsn

# ---- the run folder ----

run 0 "$train" "${good[@]}" --output runs/one
sum=$(find runs/one -type f -exec cksum {} + | sort)
fails_well 2 "$train" "${good[@]}" --output runs/one
says '--force'
says '--resume auto'
fails_well 2 "$train" "${good[@]}" --output runs/one --model lenett --force
fails_well 3 "$train" "${good[@]}" --output runs/one --data nowhere --force
fails_well 3 "$train" "${good[@]}" --output runs/one --resume runs/two --force
[ "$(find runs/one -type f -exec cksum {} + | sort)" = "$sum" ] || die "a refused run changed one"
mkdir mine && echo precious >mine/file
fails_well 2 "$train" "${good[@]}" --output mine --force
[ "$(cat mine/file)" = precious ] || die "--force removed what is no run"
# A configuration may be a copy among other things; and people keep notes where their runs are.
cp -r runs/one kept && mkdir kept/thesis && echo precious | tee kept/notes.txt >kept/thesis/chapter
touch kept/summary.json.tmp-1 kept/log.rank-7.txt
run 0 "$train" "${good[@]}" --output kept --force
[ "$(cat kept/notes.txt kept/thesis/chapter)" = $'precious\nprecious' ] || die "--force removed what is not the run's"
[ ! -e kept/summary.json.tmp-1 ] && [ ! -e kept/log.rank-7.txt ] || die "--force left some of the old run"
same_weights runs/one kept
fails_well 3 "$train" "${good[@]}" --output runs/new --resume runs/one
says 'no whole checkpoint'
says "a run makes them every ten minutes, with --checkpoint-every or on a signal"
fails_well 3 "$train" "${good[@]}" --output runs/new --resume nowhere
[ ! -e runs/new ] || die "a refused --resume leaves a run folder"
run 0 "$train" "${good[@]}" --output runs/auto --resume auto # nothing there: starts
same_weights runs/one runs/auto
run 0 "$train" "${good[@]}" --output runs/auto --force
fails_well 1 "$train" "${good[@]}" --output tiny.yaml/run
says 'tiny.yaml'
fails_well 2 "$train" "${good[@]}" --output tiny.yaml
if [ "$(id -u)" -eq 0 ]; then
    # Root may write anywhere; somebody else asks.
    chmod 755 . && mkdir shut && chmod 755 shut && cp -r data open-data && chmod -R a+rX open-data
    if command -v setpriv >/dev/null && setpriv --reuid=65534 --clear-groups "$train" --version >/dev/null 2>&1; then
        fails_well 1 setpriv --reuid=65534 --clear-groups "$train" "${good[@]}" --data open-data \
            --output shut/run
        says 'shut/run'
    fi
else
    mkdir -m 555 shut
    fails_well 1 "$train" "${good[@]}" --output shut/run
fi

# ---- several ranks ----

fails_well 2 ranks 3 "$train" "${good[@]}" --output runs/x --update allreduce --batch-size 2
says '2 samples'
for update in agwu sgwu; do # a batch is that of one rank
    fails_well 2 ranks 2 "$train" "${good[@]}" --output runs/x --update $update --batch-size 201
    says 'a step of 2 ranks takes 402 samples'
    says '--batch-size 200 or less'
done
run 0 ranks 2 "$train" "${good[@]}" --output runs/all-agwu --update agwu --batch-size 200
run 0 ranks 2 "$train" "${good[@]}" --output runs/all-sum --update allreduce --batch-size 400
fails_well 2 ranks 2 "$train" "${good[@]}" --output runs/x --update allreduce --batch-size 401
says '--batch-size 400 or less'
fails_well 2 ranks 2 "$train" "${good[@]}" --output runs/x --update local
says 'agwu'
fails_well 3 ranks 3 "$train" "${good[@]}" --output runs/x --data nowhere
[ ! -e runs/x ] || die "a failed start leaves a run folder"

# ---- numbers that blow up ----

for n in 1 2; do
    launch=(ranks $n)
    [ $n -gt 1 ] || launch=() # mpirun takes two seconds over a rank that fails
    for update in agwu sgwu allreduce; do
        fails_well 4 "${launch[@]}" "$train" "${good[@]}" --output runs/blown-$update-$n --lr 1e6 \
            --warmup-epochs 0 --epochs 20 --update $update
        grep -qE '^bpt-train: (rank 1 on [^ ]+: )?step [0-9]+ .*(conv|fc|loss)' err || die "no step and layer"
        says '--lr'
        [[ "$update" = agwu && $n -gt 1 ]] && says 'lower --shared-momentum or --lr'
        [ ! -e runs/blown-$update-$n/model.safetensors ] || die "weights of a blown run"
    done
done
fails_well 4 "$train" "${good[@]}" --output runs/blown --lr 1e6 --warmup-epochs 0
says 'step'
fails_well 4 ranks 2 "$train" "${good[@]}" --output runs/blown-terms --lr 1e6 --warmup-epochs 0 --epochs 20 \
    --update agwu --server-momentum 0.9 --delay-compensation 0.04
says 'lower --server-momentum or --delay-compensation or --lr'
# One linear layer bears any weight: decay alone takes it beyond all numbers, in an update.
printf 'name: flat\ninput: [1, 28, 28]\nclasses: 10\nlayers:\n  - fc: {name: fc1, outputs: classes}\n' >flat.yaml
for update in local allreduce; do
    fails_well 4 "$train" "${good[@]}" --model flat.yaml --output runs/burst-$update --lr 1e11 \
        --warmup-epochs 0 --schedule constant --momentum 0 --weight-decay 1 --update $update
    grep -qE '^bpt-train: step 4 \(epoch .*rank 0\): a weight .*fc1' err || die "no step and layer"
    says '--clip-norm'
done
# Weights that one huge step has left are numbers, and what an evaluation makes of them is none.
printf 'name: deep\ninput: [1, 28, 28]\nclasses: 10\nlayers:\n' >deep.yaml
printf '  - fc: {outputs: 10}\n%.0s' 1 2 3 4 5 >>deep.yaml
fails_well 4 "$train" "${good[@]}" --model deep.yaml --output runs/judged --lr 1e12 --warmup-epochs 0 --momentum 0 --batch-size 400
grep -qE '^bpt-train: evaluation after step 1 \(epoch 1\.00, rank 0\): .*layer fc' err || die "no evaluation and layer"
says '--lr'

# ---- a bound rank ----

if [ "$(nproc)" -ge 2 ] && mpirun --bind-to core -np 1 true 2>/dev/null; then
    run 0 mpirun --bind-to core -np 1 "$train" "${good[@]}" --output runs/bound --threads 2
    says '--bind-to none'
    says 'bound to 1 core'
fi
# Bound by nothing that mpirun could undo.
if [ "$(nproc)" -ge 2 ] && cpu=$(taskset -cp $$ 2>/dev/null); then
    cpu=${cpu##*: }
    run 0 taskset -c "${cpu%%[-,]*}" "$train" "${good[@]}" --output runs/bound-alone --threads 2
    says 'is bound to 1 core and wants 2 threads: what started it allows no more'
    run 0 taskset -c "${cpu%%[-,]*}" "$train" --check --data data
    says 'is bound to one core' out
    grep -q mpirun out err && die "it asks for what mpirun is not there to give"
fi
# More threads than the host has processors: nothing is bound, and mpirun could not help.
processors=$(getconf _NPROCESSORS_ONLN)
if [ "$(env -u OMP_NUM_THREADS nproc)" -eq "$processors" ]; then
    run 0 "$train" "${good[@]}" --output runs/many --threads $((processors + 1))
    says "to run $((processors + 1)) threads, and the host has"
    grep -qE 'mpirun|bound' err && die "it asks for what mpirun is not there to give"
fi

# ---- what cannot be written ----

fails_well 1 bash -c 'ulimit -f 8 && exec "$@"' limited "$train" "${good[@]}" --output runs/limited
says 'model.safetensors'
says 'File too large'
says 'ulimit -f'
fails_well 1 bash -c 'ulimit -f 4 && exec "$@"' limited "$train" "${common[@]}" --epochs 100 --output runs/lines
says 'cannot write runs/lines/metrics.jsonl: File too large'
start "$train" "${common[@]}" --epochs 100000 --log-interval 1000 --output runs/taken
await runs/taken/metrics.jsonl '"event": "start"'
mv runs/taken runs/away && touch runs/taken
kill -s TERM "$pid"
finish 1
says 'the run folder runs/taken is gone'

# ---- a full disk ----

if [ "$(id -u)" -eq 0 ] && mkdir disk && mount -t tmpfs -o size=6m none disk 2>/dev/null; then
    trap 'umount "$work/disk"; clean_up' EXIT
    # lenet: 1.7 MB of weights, as much momentum. One checkpoint and the weights fit, a second does not.
    big=(--data data --model lenet --batch-size 20 --threads 1 --lr 0.001 --epochs 1)
    fails_well 1 "$train" "${big[@]}" --output disk/run --checkpoint-every 5
    says 'checkpoint not saved'
    says 'space'
    [ "$(ls disk/run/checkpoints)" = step-00000005 ] || die "left: $(ls disk/run/checkpoints)"
    run 0 "$train" "${big[@]}" --output elsewhere --resume disk/run
    run 0 "$train" "${big[@]}" --output never-full
    same_weights elsewhere never-full
fi

# A disk that is full when a run goes on and writes who hosts which weights: nothing is lost.
if [ "$(id -u)" -eq 0 ] && mkdir logs && mount -t tmpfs -o size=1m none logs 2>/dev/null; then
    trap 'umount "$work/logs" "$work/disk" 2>/dev/null; clean_up' EXIT
    shared=("${common[@]}" --update agwu --sync-every 4 --lr 0.01 --output cut)
    # shellcheck disable=SC2086 # several words
    stop_early cut USR1 $BPT_MPIRUN -np 2 "$train" "${shared[@]}" --epochs 1000
    cp -r cut/exchange/. logs
    mount --move logs cut/exchange 2>/dev/null || mount --bind logs cut/exchange || die "no mount"
    trap 'umount "$work/cut/exchange" "$work/logs" "$work/disk" 2>/dev/null; clean_up' EXIT
    head -c 2m /dev/zero >cut/exchange/fill 2>/dev/null # to the last byte
    before=$(cksum cut/exchange/shards.json)
    fails_well 1 ranks 2 "$train" "${shared[@]}" --epochs 1000 --resume auto
    says 'bpt-train: cannot write cut/exchange/shards.json'
    says 'o space left on device'
    [ "$(cksum cut/exchange/shards.json)" = "$before" ] || die "the shards that were there are gone"
    [ "$(ls cut/exchange | grep -c tmp)" -eq 0 ] || die "half a file: $(ls cut/exchange)"
    [ ! -e cut/model.safetensors ] || die "weights of a failed run"
    rm cut/exchange/fill
    start_ranks 2 "$train" "${shared[@]}" --epochs 1000 --resume auto
    await err 'going on from cut/checkpoints/'
    await_steps cut
    kill -s USR1 "$pid"
    finish 75
fi
