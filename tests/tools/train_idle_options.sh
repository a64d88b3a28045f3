#!/usr/bin/env bash
# Options that cannot do anything: refused on the command line, warned of in a configuration file
# (but not where a run wrote down a default), and warned of where the number of ranks decides.
source "$(dirname "$0")/common.sh"
make_data 200 50
make_model
good=("${common[@]}" --epochs 0.2 --output runs/x)

refused() { # SAYS OPTION...
    fails_well 2 "$train" "${good[@]}" "${@:2}"
    says "$1"
}
quiet() { # no warning
    grep -E 'not used|stays|without effect|not reached' err && die "warned without need"
}

# ---- on the command line ----

for update in allreduce local; do
    for option in "--sync-every 4" "--max-staleness 2" "--idpa-rounds 2" "--lr-scale none"; do
        # shellcheck disable=SC2086 # several words
        refused "${option% *} is not used by --update $update" --update $update $option
        says 'hint: leave it out, or choose --update agwu'
    done
done
refused '--max-staleness is not used by --update sgwu' --update sgwu --max-staleness 1
refused '--server-momentum is not used by --update allreduce' --update allreduce --server-momentum 0.5
refused '--server-momentum is not used by --update local' --update local --server-momentum 0.5
refused '--shared-momentum is not used by --update allreduce' --update allreduce --shared-momentum 2
refused '--shared-momentum is not used by --update easgd' --update easgd --shared-momentum 2
refused '--shared-momentum is not used by --optimizer adamw' --update agwu --optimizer adamw --shared-momentum 2
refused '--delay-compensation is not used by --update sgwu' --update sgwu --delay-compensation 1
refused '--delay-compensation is not used by --optimizer adamw' --update agwu --optimizer adamw --delay-compensation 1
says 'hint: leave it out, or choose --optimizer sgd'
refused '--idpa-rounds is not used by --partition even' --update agwu --partition even --idpa-rounds 2
refused '--partition idpa' --update local --partition idpa
refused '--trace-steps is not used without --trace' --trace-steps 1-3
says 'give --trace FILE'
refused '--milestones: 9 is not reached' --schedule multistep --milestones 0,9
refused '--milestones: 2 is not reached' --schedule multistep --milestones 1,2 --epochs 2
refused 'bpt-train: --milestones: epochs must grow' --schedule multistep --milestones 1,1 --epochs 2
says 'e.g. --milestones 4,6'
refused 'bpt-train: --milestones is missing' --schedule multistep
refused 'bpt-train: --trace-steps: "5-4" is no range of steps' --trace trace.json --trace-steps 5-4
fails_well 2 "$train" --model tiny.yaml
says 'bpt-train: --data is missing'
for option in model data output; do # as of "$variable" that is not set
    refused "bpt-train: --$option is missing" --$option ''
done
for option in resume trace tuned; do
    refused "bpt-train: --$option is missing" --$option ''
    says 'or leave it out'
done
fails_well 2 "$eval" --data data --model tiny.yaml --weights ''
says 'bpt-eval: --weights is missing'
[ ! -e runs ] || die "a refused start leaves a run folder"

bench=("$train" --model tiny.yaml --bench 1 --batch-size 4)
for option in "--output runs/x" --dry-run --force "--epochs 3" "--lr 0.1" "--schedule constant" "--update agwu" \
    "--sync-every 4" "--resume auto" "--checkpoint-every 3" "--log-interval 1" \
    "--test-split test" "--milestones 3"; do
    # shellcheck disable=SC2086 # several words
    fails_well 2 "${bench[@]}" $option
    says "${option% *} is not used by --bench"
    says 'hint: leave it out, or --bench'
done
for option in "--loader-threads 2" "--prefetch 3" "--augment flip" "--train-split train" "--order blocks" \
    "--order-block 30"; do
    also=()
    [ "$option" = "--order-block 30" ] && also=(--order blocks) # no other order has use for it
    # shellcheck disable=SC2086 # several words
    fails_well 2 "${bench[@]}" $option
    says "${option% *} is not used by --bench without --data"
    says 'hint: leave it out, or name a dataset with --data'
    # shellcheck disable=SC2086
    run 0 "${bench[@]}" --data data "${also[@]}" $option
    # shellcheck disable=SC2086
    run 0 "$train" --model tiny.yaml --dry-run "${also[@]}" $option
done
fails_well 2 "${bench[@]}" --beta1 0.8 # what it does use, it looks at as training does
says '--beta1 is not used by --optimizer sgd'
fails_well 2 "${bench[@]}" --nesterov true --momentum 0
says '--nesterov true needs a --momentum above 0'
run 0 "${bench[@]}" --optimizer adamw --beta1 0.8 --threads 1 --seed 3 --clip-norm 1 --policy fifo
fails_well 2 "$train" --replay runs/x --output runs/y
says '--output is not used by --replay'
fails_well 2 "$train" --replay runs/x --bench 3
says '--bench is not used by --replay'
fails_well 2 "$train" --replay runs/x --precision bf16
says '--precision is not used by --replay'
fails_well 2 "${bench[@]}" --data data --input-size 8 8
says 'holds raw images of 28x28 pixels (HxW), not 8x8'
says 'hint: leave out --input-size'
refused '--classes is not used with --data' --classes 3
says 'hint: the dataset decides it; without --data --bench and --dry-run take any'
refused '--classes is not used with --data' --dry-run --classes 3
refused '--trace is not used by --dry-run' --dry-run --trace trace.json

# ---- in a file ----

cat >config.yaml <<'END'
sync-every: 4
max-staleness: 2
beta1: 0.8
beta2: 0.9
power: 1
trace-steps: 3-4
milestones: [1, 2]
END
run 0 "$train" --config config.yaml "${good[@]}" --update allreduce
says 'sync-every, max-staleness in the configuration are not used by --update allreduce'
says 'beta1, beta2 in the configuration are not used by --optimizer sgd'
says 'milestones in the configuration is not used by --schedule cosine'
says 'trace-steps in the configuration is not used without --trace'
grep -q 'power' err && die "warned of a default"
run 0 "$train" --config runs/x/config.yaml --force
says 'sync-every, max-staleness in the configuration'
run 0 "$train" --config config.yaml "${good[@]}" --force --schedule multistep --update agwu
says 'milestones in the configuration: 2 is not reached, training ends at epoch 0.2'
run 0 "$train" --config runs/x/config.yaml --bench 1
says 'in the configuration are not used by --bench'
[ "$(grep -c 'not used by --bench' err)" -eq 1 ] || die "not one line for one reason"

run 0 "$train" --config config.yaml "${good[@]}" --force --update allreduce --log-level error
quiet

printf 'input-size: [40, 44]\nclasses: 7\ntrace: trace.json\n' >config.yaml # as --bench takes them
for mode in "--dry-run" "--bench 1" "--output runs/shape --epochs 0.2"; do
    # shellcheck disable=SC2086 # several words
    fails_well 2 "$train" --config config.yaml --data data --model tiny.yaml --threads 1 $mode
    says 'holds raw images of 28x28 pixels (HxW), not 40x44'
    run 0 "$train" --config config.yaml --data data --model tiny.yaml --threads 1 --input-size 28x28 $mode
    says 'classes in the configuration is not used with --data'
done
run 0 "$train" --config config.yaml --model lenet --bench 1 --batch-size 4 --threads 1
quiet
run 0 "$train" --config config.yaml --model lenet --dry-run
says 'trace in the configuration is not used by --dry-run'
says '1x40x44' out

# What is kept for later runs is not of this one.
for kept in "--data-mode scatter --scratch runs/new" "--data-mode scatter --scratch runs/new/scratch" "--stage runs/new" \
    "--stage ./runs//new/stage" "--stage $PWD/runs/new/stage"; do
    # shellcheck disable=SC2086 # several words
    fails_well 2 ranks 2 "$train" "${good[@]}" --output runs/new/ $kept
    says 'lies in the folder of --output'
    [ ! -e runs/new ] || die "a folder after $kept"
done
mkdir few && (cd few && make_data 3 20) || die "data"
fails_well 2 ranks 4 "$train" "${good[@]}" --update allreduce --data few/data --batch-size 64 --output runs/new
says 'hint: use fewer ranks'

# It changes nothing, and is no reason to refuse what does.
warned() { # LINES-OF-FILE OPTION-OF-IT BY OPTION...
    printf "$1" >config.yaml
    run 0 "$train" --config config.yaml "${good[@]}" --force "${@:4}"
    says "$2 in the configuration $([[ "$2" = *,* ]] && echo are || echo is) not used by $3"
}
warned 'shared-momentum: 2\nmomentum: 0\n' shared-momentum '--update allreduce' --update allreduce
warned 'delay-compensation: 1\n' delay-compensation '--optimizer adamw' --update agwu --optimizer adamw
grep -q 'delay compensation with' err && die "what is not used is in force"
warned 'nesterov: true\n' nesterov '--optimizer lars' --optimizer lars
grep -q "Nesterov's" err && die "what is not used is in force"
warned 'placement: fc1\n' placement '--update sgwu' --update sgwu --clip-norm 1
warned 'placement: fc1\nservers: 1\n' servers '--update allreduce' --update allreduce
warned 'placement: fc1\nserver-momentum: 0.5\nquality: held-out\n' 'server-momentum, quality' '--update allreduce' \
    --update allreduce
warned 'quality: held-out\n' quality '--update allreduce' --update allreduce --data-mode scatter --scratch "$work/scratch"
warned 'placement: nosuch\n' placement '--update sgwu' --update sgwu
printf 'placement: fc1\n' >config.yaml
run 0 ranks 2 "$train" --config config.yaml "${good[@]}" --force --update sgwu --servers 1
says 'placement in the configuration is not used by --update sgwu'
fails_well 2 "$train" --config config.yaml "${good[@]}" --force --update agwu --clip-norm 1
says '--placement and --clip-norm'
printf 'partition: idpa\n' >config.yaml
run 0 "$train" --config config.yaml "${good[@]}" --force --update local
says '--partition idpa: without effect on 1 rank, where --update is local'

# What a run wrote down is no cause of warnings for the same run again.
run 0 "$train" "${good[@]}" --force --trace trace.json --trace-steps 1-2
quiet
run 0 "$train" --config runs/x/config.yaml --force
quiet
for update in auto agwu sgwu allreduce; do
    run 0 "$train" --data data --model tiny.yaml --threads 1 --update $update --output runs/$update
    run 0 "$train" --config runs/$update/config.yaml --output runs/$update-again
    quiet
done

# ---- by the number of ranks ----

run 0 "$train" "${good[@]}" --force --sync-every 4 --idpa-rounds 2
says '--sync-every, --idpa-rounds: without effect on 1 rank, where --update is local'
run 0 "$train" "${good[@]}" --force --partition idpa
says '--partition idpa: without effect on 1 rank, where --update is local'
check_json runs/x/summary.json 'd["partition"] == "even"'
run 0 ranks 2 "$train" "${good[@]}" --force --partition idpa
grep -q 'without effect' err && die "warned of what has an effect"
check_json runs/x/summary.json 'd["partition"] == "idpa"'
run 0 "$train" --config runs/x/config.yaml --output runs/from-two # as it came from two ranks
says '--partition idpa: without effect on 1 rank'
run 0 "$train" "${good[@]}" --dry-run --partition idpa --force
says '--partition idpa: without effect on 1 rank'
run 0 "$train" "${good[@]}" --force --update agwu --max-staleness 1 --sync-every 4 --calibrate 0.05
says '--calibrate, --max-staleness: without effect on 1 rank, where --update is agwu'
run 0 ranks 2 "$train" "${good[@]}" --force --sync-every 1 --max-staleness 1 --idpa-rounds 1
grep -q 'without effect' err && die "warned of what has an effect"

run 0 "$train" "${good[@]}" --force --server-momentum 0.5
says '--server-momentum: without effect on 1 rank, where --update is local'
run 0 "$train" "${good[@]}" --force --quality held-out
says '--quality: without effect on 1 rank, where --update is local'
run 0 "$train" "${good[@]}" --force --update agwu --delay-compensation 1 --server-momentum 0.5
says '--delay-compensation: without effect on 1 rank, where --update is agwu'

# What counts is how many train. How fast the one is it does measure.
run 0 ranks 2 "$train" "${good[@]}" --force --servers 1 --quality held-out --held-out 0.3 --max-staleness 0 \
    --gamma lag --calibrate 0.05 --server-momentum 0.5
says '--gamma, --max-staleness, --quality, --held-out: without effect on 1 rank that trains, where --update is agwu'
run 0 ranks 3 "$train" "${good[@]}" --force --servers 1 --quality held-out --held-out 0.3 --max-staleness 0 --gamma lag
grep -q 'without effect' err && die "warned of what has an effect"
run 0 "$train" "${good[@]}" --force --quality held-out --held-out 0.3
says '--quality, --held-out: without effect on 1 rank, where --update is local'

# ---- a rate, decay or warm-up that was for another optimiser or schedule ----

run 0 "$train" --data data --model tiny.yaml --threads 1 --epochs 0.2 --output runs/sgd
run 0 "$train" --config runs/sgd/config.yaml --optimizer adamw --schedule onecycle --output runs/changed
says 'lr stays 0.02: the configuration has it, for --optimizer sgd; the default of adamw is 0.001'
says 'weight-decay stays 0.0005: the configuration has it, for --optimizer sgd; the default of adamw is 0.01'
says 'warmup-epochs stays 0.1: the configuration has it, for --schedule cosine; the default of onecycle is 0'
says 'lr: 0.02' runs/changed/config.yaml
run 0 "$train" --config runs/sgd/config.yaml --optimizer adamw --lr 0.002 --weight-decay 0.1 --output runs/given
quiet
run 0 "$train" --config runs/sgd/config.yaml --optimizer sgd --schedule cosine --output runs/same
quiet
run 0 "$train" --config runs/changed/config.yaml --output runs/changed-again
quiet
printf 'optimizer: adamw\n' >other.yaml # a later file is as the command line there, and an earlier one is not
run 0 "$train" --config runs/sgd/config.yaml --config other.yaml --output runs/layered
says 'lr stays 0.02: the configuration has it, for --optimizer sgd; the default of adamw is 0.001'
grep -qx 'optimizer: "*adamw"*' runs/layered/config.yaml || die "the later file does not count"
run 0 "$train" --config other.yaml --config runs/sgd/config.yaml --output runs/layered-again
quiet
grep -qx 'optimizer: "*sgd"*' runs/layered-again/config.yaml || die "the later file does not count"
printf 'lr: 0.5\n' >config.yaml # what it was for is not said: the default
run 0 "$train" --config config.yaml --data data --model tiny.yaml --threads 1 --epochs 0.2 --optimizer lars \
    --output runs/plain
says 'lr stays 0.5: the configuration has it, for --optimizer sgd; the default of lars is 2'
