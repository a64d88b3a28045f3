#!/usr/bin/env bash
# What may be laid over the rules that merge weights: it does something, a replay repeats it to the bit, and
# a stop leaves no trace where the update is synchronous.
source "$(dirname "$0")/common.sh"
make_data 400 60
make_model
# With batch norms, whose running statistics no term is for.
sed -e 's/^name: tiny/name: normal/' -e '/conv2/a\  - batchnorm: {name: bn}' tiny.yaml >normal.yaml
few=("${common[@]}" --epochs 3 --sync-every 2 --lr 0.002)
more=(--epochs 30 --checkpoint-every 8) # so long that there is a checkpoint, whoever is slow
steady=("${few[@]}" --update sgwu --partition even --eval-every 0)

differ() { # RUN RUN
    cmp -s "$1/model.safetensors" "$2/model.safetensors" && die "the weights of $1 and $2 are the same"
}

replayed() { # NAME RANKS OPTION...: a run with them, and its replay
    local name=$1 n=$2
    shift 2
    run 0 ranks "$n" "$train" "${few[@]}" --output "$name" "$@"
    python3 "$here/weights.py" finite "$name/model.safetensors" || die "weights of $name"
    run 0 "$train" --replay "$name"
    says "bit for bit"
}

altered_config() { # NAME KEY VALUE: the replay notices that the run was not made with it
    rm -rf other
    cp -r "$1" other
    sed -i "s/^$2: .*/$2: $3/" other/config.yaml
    fails_well 3 "$train" --replay other
    says "weights differ"
}

goes_on() { # NAME OPTION...: two ranks under sgwu, with a stop and without
    local name=$1
    shift
    run 0 ranks 2 "$train" "${steady[@]}" --checkpoint-every 8 --checkpoint-keep 100 --output "$name" "$@"
    run 0 ranks 2 "$train" "${steady[@]}" --checkpoint-every 8 --checkpoint-keep 100 --output "$name-again" "$@"
    same_weights "$name" "$name-again"
    cut_back "$name-again"
    run 0 ranks 2 "$train" "${steady[@]}" --checkpoint-every 8 --output "$name-again" --resume auto "$@"
    says "going on from $name-again/checkpoints/step-"
    grep -q 'is of another job' err && die "not the same job"
    same_weights "$name" "$name-again"
}

exchange_bytes() { # OPTION...: of the plan for four ranks, in floats of a weight
    run 0 ranks 4 "$train" "${few[@]}" --model lenet --dry-run --partition even "$@"
    sed -nE 's/^  exchange +([0-9]+) .*/\1/p' out
}

run 0 ranks 2 "$train" "${steady[@]}" --output plain
plan=$(exchange_bytes --update agwu)

# ---- momentum of all ----

replayed shared 3 --update agwu
says_of_log() { grep -q "$2" "$1/log.rank-0.txt" || die "log of $1: no \"$2\""; }
says_of_log shared 'momentum of all ranks, gain 1.73'
altered_config shared shared-momentum 0
variants && replayed shared-normal 2 --update agwu --shared-momentum 4 --nesterov false --max-staleness 1 --model normal.yaml
replayed apart 2 --update agwu --shared-momentum 0
grep -q 'momentum of all' apart/log.rank-0.txt && die "momentum is shared with --shared-momentum 0"
# Nothing of it where the rate is not multiplied, or a push counts by something else, too.
for without in "--lr-scale none" "--server-momentum 0.5" "--gamma lag" "--delay-compensation 1" "--momentum 0"; do
    variants || break
    # shellcheck disable=SC2086 # several words
    run 0 ranks 2 "$train" "${few[@]}" --update agwu --epochs 1 --output unshared --force $without
    grep -q 'momentum of all' unshared/log.rank-0.txt && die "momentum is shared with $without"
done
goes_on sgwu-shared --shared-momentum 2
run 0 ranks 2 "$train" "${steady[@]}" --shared-momentum 0 --output sgwu-apart
differ plain sgwu-apart
differ plain sgwu-shared
for with in "--server-momentum 0.5" "--gamma lag" "--delay-compensation 1"; do
    # shellcheck disable=SC2086 # several words
    fails_well 2 "$train" "${few[@]}" --update agwu --shared-momentum 2 $with --output x
    says "--shared-momentum does not go with ${with% [0-9]*}"
done
fails_well 2 "$train" "${few[@]}" --update agwu --shared-momentum 2 --placement fc1 --output x
says '--placement and --shared-momentum: layers that one rank computes have a momentum of their own'
fails_well 2 "$train" "${few[@]}" --update agwu --shared-momentum 2 --momentum 0 --output x
says '--shared-momentum needs a --momentum above 0'
fails_well 2 "$train" "${few[@]}" --update agwu --shared-momentum 0.5 --output x
says 'none of 0, a number from 1 to 100, and auto'

# ---- momentum of the server ----

replayed momentum 3 --update agwu --server-momentum 0.5
altered_config momentum server-momentum 0.25
replayed momentum-lag 2 --update agwu --server-momentum 0.8 --gamma lag --max-staleness 1 --model normal.yaml
goes_on sgwu-momentum --server-momentum 0.5
differ plain sgwu-momentum
[ -s "$(ls -d sgwu-momentum/checkpoints/step-* | head -n 1)/server.momentum.safetensors" ] || die "no velocity in a checkpoint"
goes_on sgwu-normal --server-momentum 0.5 --model normal.yaml
# Without the velocity it is another job, and says so; with another B it is not.
from=$(ls -d sgwu-momentum/checkpoints/step-* | head -n 1)
run 0 ranks 2 "$train" "${steady[@]}" --output without --resume "$from"
says "--server-momentum, 0 in one of the two, differs"
run 0 ranks 2 "$train" "${steady[@]}" --output other-momentum --resume "$from" --server-momentum 0.4
grep -q 'is of another job' err && die "another momentum makes another job"
differ sgwu-momentum other-momentum
# agwu goes on from where all had met.
run 0 ranks 2 "$train" "${few[@]}" "${more[@]}" --update agwu --server-momentum 0.5 --output async
cut_back async
run 0 ranks 2 "$train" "${few[@]}" "${more[@]}" --update agwu --server-momentum 0.5 --output async --resume auto
says "going on from async/checkpoints/step-"
# A quarter of a vector more on each of four ranks.
larger=$(exchange_bytes --update agwu --server-momentum 0.5)
python3 -c "import sys; n = ($larger - $plan) / ($plan / 3); sys.exit(not 0.24 < n < 0.26)" ||
    die "momentum takes $plan, then $larger bytes"
fails_well 2 "$train" "${few[@]}" --update agwu --server-momentum 1 --output x
says '--server-momentum'

# ---- delay compensation ----

replayed compensated 3 --update agwu --delay-compensation 10 --sync-every 1 --epochs 12
altered_config compensated delay-compensation 1
replayed compensated-normal 2 --update agwu --delay-compensation 2 --gamma none --model normal.yaml --momentum 0
replayed compensated-momentum 3 --update agwu --delay-compensation 2 --server-momentum 0.5 --max-staleness 1
run 0 ranks 2 "$train" "${few[@]}" "${more[@]}" --update agwu --delay-compensation 2 --output delayed
cut_back delayed
run 0 ranks 2 "$train" "${few[@]}" "${more[@]}" --update agwu --delay-compensation 2 --output delayed --resume auto
says "going on from delayed/checkpoints/step-"
grep -q 'is of another job' err && die "not the same job"
# What the three others were answered: three quarters of a vector on each of four ranks.
larger=$(exchange_bytes --update agwu --delay-compensation 2)
python3 -c "import sys; n = ($larger - $plan) / ($plan / 3); sys.exit(not 0.74 < n < 0.76)" ||
    die "compensation takes $plan, then $larger bytes"
