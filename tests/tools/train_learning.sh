#!/usr/bin/env bash
# Optimisers, schedules, clipping and smoothed labels as a user asks for them: repeated bit by bit,
# resumed bit by bit, on one rank and on several; and options that do not go together.
source "$(dirname "$0")/common.sh"
make_data
make_model
adamw=(--optimizer adamw --lr 0.002)
lars=(--optimizer lars --lr 2)

# ---- going on from a checkpoint, as if it had never stopped ----

# Beyond the end of an epoch, which is at step 100 of one rank and 50 of each of two.
span=(--epochs 1.2 --checkpoint-every 40 --checkpoint-keep 9)
resumes() { # NAME FILES COMMAND...: twice, the second time from a checkpoint; FILES of state a rank
    local name=runs/$1 files=$2
    shift 2
    run 0 "$@" "${span[@]}" --output "$name"
    cp -r "$name" "$name-again"
    cut_back "$name-again"
    [ "$(find "$name-again/checkpoints" -name 'rank-0.*.safetensors' -printf '%f ')" = "$files" ] ||
        die "$name: state is not in $files"
    run 0 "$@" "${span[@]}" --output "$name-again" --resume auto
    says "going on from $name-again/checkpoints/step-000000"
    grep -q 'is of another job' err && die "$name: not the same job"
    same_weights "$name" "$name-again"
}

for n in 1 2; do
    for options in adamw lars; do
        declare -n optimizer=$options
        files="rank-0.momentum.safetensors "
        [ $options = adamw ] && files="rank-0.exp_avg.safetensors rank-0.exp_avg_sq.safetensors "
        for update in local "sgwu --partition even" allreduce; do
            [ $n = 2 ] && [ "$update" = local ] && continue
            [[ "$n $options $update" =~ ^(1 adamw local|2 lars sgwu) ]] || variants || continue
            # shellcheck disable=SC2086 # several words
            resumes "$options-${update%% *}-$n" "$files" ranks $n "$train" "${common[@]}" \
                "${optimizer[@]}" --update $update
        done
    done
done
resumes plain "" "$train" "${common[@]}" --momentum 0
resumes nesterov "rank-0.momentum.safetensors " "$train" "${common[@]}" --nesterov true \
    --clip-norm 0.5 --label-smoothing 0.1 --schedule onecycle
resumes augmented "rank-0.momentum.safetensors " "$train" "${common[@]}" --augment flip,crop=3
cmp -s runs/plain/model.safetensors runs/nesterov/model.safetensors && die "options change nothing"

# The state of another optimiser is no use: the weights go on, and it is said.
for options in "--optimizer lars" "--optimizer sgd --momentum 0" "--optimizer sgd"; do
    rm -rf runs/other
    # shellcheck disable=SC2086 # several words
    run 0 "$train" "${common[@]}" $options --lr 0.01 "${span[@]}" --output runs/other \
        --resume runs/adamw-local-1
    says "--optimizer differs"
    says "the optimiser's state"
done
run 0 "$train" "${common[@]}" "${span[@]}" --output runs/still --resume runs/plain
says "--momentum, 0 in one of the two, differs"

# ---- a network that learns nothing ----

run 0 "$train" "${common[@]}" --lr 1e-9 --epochs 3 --output runs/nothing
[ "$(grep -c 'no better than guessing' err)" -eq 1 ] || die "not one word of a network that learns nothing"
run 0 "$train" "${common[@]}" --lr 1e-9 --epochs 1 --output runs/begun
grep -q 'no better than guessing' err && die "the rate is blamed before it is there"
run 0 "$train" "${common[@]}" --lr 1e-9 --epochs 3 --batch-size 200 --output runs/few
grep -q 'no better than guessing' err && die "the rate is blamed for what a few steps cannot learn"
run 0 "$train" "${common[@]}" --epochs 3 --output runs/something
grep -q 'no better than guessing' err && die "a network that learns is called a guesser"
# What a network knows by heart it is certain of, also where it errs: the loss is above that of guessing.
mkdir few && (cd few && make_data 100 200) || die "data"
run 0 "$train" "${common[@]}" --data few/data --lr 0.01 --schedule constant --epochs 50 --output runs/by-heart
check_json runs/by-heart/summary.json 'd["test_accuracy"] > 0.25' # which is no guess
grep -q 'no better than guessing' err && die "a network that is certain is called a guesser"

# ---- an asynchronous run can be repeated ----

for options in "${adamw[*]} --schedule onecycle --label-smoothing 0.1" \
    "${lars[*]} --clip-norm 0.2 --schedule polynomial --power 2" \
    "--nesterov true --lr 0.01 --schedule multistep --milestones 1,2 --lr-step-factor 0.5" \
    "--step-limit 0.005"; do
    [[ "$options" = *adamw* ]] || variants || continue
    rm -rf runs/agwu
    # shellcheck disable=SC2086 # several words
    run 0 ranks 3 "$train" "${common[@]}" $options --output runs/agwu --update agwu --epochs 3 \
        --sync-every 3
    run 0 "$train" --replay runs/agwu
    says "bit for bit"
    check_json runs/agwu/summary.json 'd["test_accuracy"] > 0.2'
done

# ---- a rate that one rank takes, times eight ----

# Each with its own momentum: that of all is less noisy, and blows up later.
apart=(--seed 2 --update sgwu --partition even --epochs 3 --shared-momentum 0)
if variants; then
    for limit in 0 auto; do
        run 0 ranks 8 "$train" "${common[@]}" "${apart[@]}" --step-limit $limit --output runs/eight-$limit
    done
    run 0 "$train" "${common[@]}" --epochs 3 --output runs/one-auto
    check_json runs/one-auto/summary.json 'd["test_accuracy"] > 0.5'
    check_json runs/eight-0/summary.json 'd["test_accuracy"] < 0.2'
    check_json runs/eight-auto/summary.json 'd["test_accuracy"] > 0.25'
    # One rank's is not limited, and what auto says is what its number says.
    run 0 "$train" "${common[@]}" --epochs 3 --step-limit 0 --output runs/one-0
    same_weights runs/one-auto runs/one-0
    run 0 ranks 8 "$train" "${common[@]}" "${apart[@]}" --step-limit 0.01 --output runs/eight-0.01
    same_weights runs/eight-auto runs/eight-0.01
fi

# ---- what ranks that merge weights have where nobody says otherwise ----

defaults() { # RANKS BATCH NESTEROV OPTION...: batch of a rank, and whether it is Nesterov's momentum
    local n=$1 batch=$2 nesterov=$3
    shift 3
    run 0 ranks "$n" "$train" --data data --model tiny.yaml --epochs 0.2 --threads 1 --output runs/merged --force "$@"
    says "batch: $batch samples a step of this rank"
    if [ "$nesterov" = yes ]; then
        says "optimizer sgd, Nesterov's momentum, learning rate"
    else
        grep -q "Nesterov" err && die "$n ranks with $*: Nesterov's momentum"
        true
    fi
}
defaults 5 32 yes
says "that is 0.01 x 5 ranks"
grep -qx 'batch-size: 32' runs/merged/config.yaml && grep -qx 'lr: 0.01' runs/merged/config.yaml ||
    die "config.yaml has not what was trained with"
says "half of the batch at half of the rate"
# Such a configuration is what runs had before there was a choice.
sed 's/^nesterov: auto$/nesterov: false/' runs/merged/config.yaml >before.yaml
grep -qx 'nesterov: false' before.yaml || die "no such line"
defaults 5 32 no --config before.yaml
says "that is 0.01 x 5 ranks"
defaults 5 64 yes --lr 0.02
defaults 5 32 yes --batch-size 32
says "that is 0.02 x 5 ranks"
defaults 5 64 no --lr-scale none
defaults 2 64 yes
defaults 2 64 no --nesterov false
defaults 2 32 no --update allreduce
defaults 1 64 no

# ---- threads, ranks ----

bounded=(--lr 0.01 --batch-size 50 --epochs 0.5 --warmup-epochs 0.1 --clip-norm 0.5)
for threads in 1 3; do
    for options in adamw lars; do
        declare -n optimizer=$options
        run 0 "$train" "${common[@]}" "${bounded[@]}" "${optimizer[@]}" --threads $threads \
            --output runs/$options-threads-$threads
    done
done
same_weights runs/adamw-threads-1 runs/adamw-threads-3
same_weights runs/lars-threads-1 runs/lars-threads-3

# allreduce clips the sum of all ranks: the trajectory of one.
run 0 "$train" "${common[@]}" "${bounded[@]}" --output runs/bounded
run 0 "$train" "${common[@]}" "${bounded[@]}" --clip-norm 0 --output runs/unbounded
python3 "$here/weights.py" near runs/bounded/model.safetensors runs/unbounded/model.safetensors 1e-2 \
    >/dev/null 2>&1 && die "the bound is never reached"
for n in 2 3; do
    run 0 ranks $n "$train" "${common[@]}" "${bounded[@]}" --output runs/bounded-$n --update allreduce
    near_weights runs/bounded runs/bounded-$n 1e-5
done
run 0 ranks 2 "$train" "${common[@]}" "${bounded[@]}" "${lars[@]}" --output runs/lars-sum --update allreduce
near_weights runs/lars-threads-1 runs/lars-sum 1e-5

# ---- what is reported ----

# Training reports the smoothed loss, which cannot be below that of a target of 0.55 and 9 times
# 0.05; evaluations have plain cross-entropy.
run 0 "$train" "${common[@]}" --log-interval 0 --label-smoothing 0.5 --epochs 6 --output runs/smooth --eval-every 0
run 0 "$eval" --data data --model tiny.yaml --weights runs/smooth/model.safetensors --json
check_json out 'math.isclose(d["loss"], json.load(open("runs/smooth/summary.json"))["test_loss"], rel_tol=1e-5)'
python3 - <<'END' || die "losses of training with smoothed labels"
import json, math
least = -0.55 * math.log(0.55) - 9 * 0.05 * math.log(0.05)
steps = [e for e in map(json.loads, open("runs/smooth/metrics.jsonl")) if e["event"] == "step"]
assert steps and all(e["loss"] >= least for e in steps), steps
END

# The rates of a run are those of its schedule.
for options in "constant" "step --lr-step-size 1 --lr-step-factor 0.5" "multistep --milestones 2,4" \
    "cosine" "onecycle --pct-start 0.4 --div-factor 10 --final-div-factor 100" "polynomial --power 2"; do
    [[ "$options" = onecycle* ]] || variants || continue
    rm -rf runs/rates
    # shellcheck disable=SC2086 # several words
    run 0 "$train" "${common[@]}" --log-interval 0 --lr 0.02 --epochs 6 --warmup-epochs 0 --output runs/rates \
        --eval-every 0 --schedule $options
    python3 - "${options%% *}" <<'END' || die "rates of --schedule $options"
import json, math, sys
T = 600
def cosine(a, b, part): return b + (a - b) * (1 + math.cos(math.pi * part)) / 2
def onecycle(t):
    top = 0.4 * T - 1
    return cosine(0.1, 1, t / top) if t <= top else cosine(1, 0.001, (t - top) / (T - 1 - top))
factor = {
    "constant": lambda t: 1,
    "step": lambda t: 0.5 ** (t // 100),
    "multistep": lambda t: 0.1 ** (t // 200),
    "cosine": lambda t: cosine(1, 0, t / T),
    "onecycle": onecycle,
    "polynomial": lambda t: (1 - t / T) ** 2,
}[sys.argv[1]]
steps = [e for e in map(json.loads, open("runs/rates/metrics.jsonl")) if e["event"] == "step"]
assert [e["step"] for e in steps] == list(range(1, T + 1))
for e in steps:
    if e["step"] < T:
        assert math.isclose(e["lr"], 0.02 * factor(e["step"]), rel_tol=1e-6), (e, factor(e["step"]))
END
done

# ---- options that do not go together ----

good=("${common[@]}" --epochs 0.1)
refused() { # SAYS OPTION...
    fails_well 2 "$train" "${good[@]}" --output runs/x "${@:2}"
    says "$1"
}
refused '--beta1 is not used by --optimizer sgd' --beta1 0.8
says '--optimizer adamw'
refused '--momentum is not used by --optimizer adamw' --optimizer adamw --momentum 0.9
refused '--nesterov is not used by --optimizer lars' --optimizer lars --nesterov true
refused '--lars-eta is not used' --lars-eta 0.1
refused '--adam-eps is not used' --adam-eps 1e-6
refused '--step-limit is not used by --optimizer adamw' --optimizer adamw --step-limit 0.1
refused '--step-limit: "much" is neither a number' --step-limit much
refused '--nesterov true needs' --nesterov true --momentum 0
refused '--milestones is not used by --schedule cosine' --milestones 3
refused '--lr-step-size is not used by --schedule multistep' --schedule multistep --lr-step-size 3
refused '--lr-step-factor is not used by --schedule onecycle' --schedule onecycle --lr-step-factor 0.5
refused '--power is not used' --power 2
refused '--pct-start is not used' --pct-start 0.2
refused 'adamw' --optimizer adam
refused 'out of range' --optimizer adamw --beta2 1
refused 'out of range' --clip-norm -1
refused 'out of range' --label-smoothing 1.5
refused 'out of range' --schedule onecycle --pct-start 1
[ ! -e runs/x ] || die "a refused start leaves a run folder"

# In a file they are warned of, but not where a run wrote them down with their defaults.
printf 'momentum: 0.8\npower: 1\n' >config.yaml
run 0 "$train" --config config.yaml "${good[@]}" --optimizer adamw --output runs/warned
says 'momentum in the configuration is not used by --optimizer adamw'
grep -q 'power in the configuration' err && die "warned of a default"
# What was not given suits the optimiser and the schedule; the run's own file says it all.
run 0 "$train" --data data --model tiny.yaml --threads 1 --epochs 0.1 --optimizer adamw \
    --schedule onecycle --output runs/defaults
for line in 'lr: 0.001' 'weight-decay: 0.01' 'warmup-epochs: 0' 'beta2: 0.999'; do
    says "$line" runs/defaults/config.yaml
done
run 0 "$train" --config runs/defaults/config.yaml --output runs/defaults-again
grep -q 'not used' err && die "a run's own configuration is warned of"
same_weights runs/defaults runs/defaults-again
