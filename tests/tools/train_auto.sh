#!/usr/bin/env bash
# --update auto measures, says why it takes what it takes, and keeps to it when it goes on.
source "$(dirname "$0")/common.sh"
make_data 400 60
make_model

# What was taken goes by what was measured, and nobody knows what else the machine has to do meanwhile; so the choice is
# held against the figures that are said with it. That these lead to the right one is tested by tests/tools/test_update_choice.c.
taken() { # RUN: sets $taken
    local part
    read -r taken part < <(sed -n 's/.*--update auto: \([a-z]*\), since allreduce would come to \([0-9.]*\) .*/\1 \2/p' err)
    case $taken in
    allreduce) says 'which is at least 0.80: ' && python3 -c "assert $part >= 0.8" ;;
    agwu) says 'which is less than 0.80: ' && python3 -c "assert $part <= 0.8" ;;
    *) false ;;
    esac || die "\"$taken\" at $part"
    check_json "$1/summary.json" "d['update'] == '$taken'"
}

# Far more weights than work: allreduce would exchange for longer than it computes.
cat >weights.yaml <<'END'
name: weights
input: [1, 28, 28]
classes: 10
layers:
  - fc: {name: one, outputs: 2000}
  - fc: {name: two, outputs: 1000}
  - fc: {name: three, outputs: classes}
END
auto=("${common[@]}" --update auto --calibrate 0.1 --epochs 0.5)
run 0 ranks 2 "$train" "${auto[@]}" --model weights.yaml --batch-size 4 --lr 0.001 --epochs "$(length 0.5 0.1)" \
    --output runs/weights
[ "$(grep -c -- '--update auto' err)" -eq 1 ] || die "not said once"
says 'its steps would take '
taken runs/weights
if [ $taken = agwu ]; then
    run 0 "$train" --replay runs/weights
    says "bit for bit"
fi

# Much work for few weights: allreduce, unless something else slowed one of the ranks down while they were measured. It is what
# it would be if it had been asked for.
cat >work.yaml <<'END'
name: work
input: [1, 28, 28]
classes: 10
layers:
  - conv: {name: conv1, filters: 32, kernel: 3}
  - relu
  - conv: {name: conv2, filters: 32, kernel: 3}
  - relu
  - global_avgpool
  - fc: {name: out, outputs: classes}
END
heavy=("${auto[@]}" --model work.yaml --batch-size 40 --checkpoint-every 2)
run 0 ranks 2 "$train" "${heavy[@]}" --output runs/work
taken runs/work
run 0 ranks 2 "$train" "${heavy[@]}" --update allreduce --output runs/asked-for
[ "$taken" = agwu ] || same_weights runs/work runs/asked-for

# With each batch cut by speed unlike machines are no reason against it. Without a sample for each rank it cannot be.
run 0 ranks 2 "$train" "${heavy[@]}" --partition idpa --output runs/cut
says 'ms on the slowest rank, each batch cut by speed, and '
taken runs/cut
[ "$taken" = agwu ] || says 'each batch is cut by speed: samples by rank'
run 0 ranks 3 "$train" "${auto[@]}" --partition idpa --batch-size 2 --lr 0.001 --output runs/small
says '--update auto: agwu, since allreduce cannot share a batch of 2 by 3 ranks'
check_json runs/small/summary.json 'd["update"] == "agwu"'

# A job goes on as it was, and nothing is chosen for it.
cp -r runs/asked-for runs/on
cut_back runs/on
run 0 ranks 2 "$train" "${heavy[@]}" --output runs/on --resume auto
says 'going on from runs/on/checkpoints/'
grep -qE 'is of another job|--update auto:' err && die "it does not go on as it was"
check_json runs/on/summary.json 'd["update"] == "allreduce"'
same_weights runs/on runs/asked-for
for update in agwu sgwu easgd; do
    [ $update = sgwu ] || variants || continue
    run 0 ranks 2 "$train" "${heavy[@]}" --epochs 2 --update $update --partition even --output runs/$update
    cp -r runs/$update runs/on-$update
    cut_back runs/on-$update
    run 0 ranks 2 "$train" "${heavy[@]}" --epochs 2 --partition even --output runs/on-$update --resume auto
    says "going on from runs/on-$update/checkpoints/"
    grep -qE 'is of another job|--update auto:' err && die "it does not go on as it was"
    check_json runs/on-$update/summary.json "d['update'] == '$update'"
done
same_weights runs/sgwu runs/on-sgwu # the one of them that repeats itself
run 0 ranks 3 "$train" "${auto[@]}" --update sgwu --servers 1 --checkpoint-every 2 --output runs/served
cut_back runs/served
run 0 ranks 3 "$train" "${auto[@]}" --servers 1 --output runs/served --resume auto
grep -qE 'is of another job|--update auto:' err && die "it does not go on as it was"
check_json runs/served/summary.json 'd["update"] == "sgwu"'

# One rank has nothing to choose, and without measurements there is nothing to choose by.
run 0 "$train" "${auto[@]}" --output runs/one
check_json runs/one/summary.json 'd["update"] == "local"'
fails_well 2 ranks 2 "$train" "${auto[@]}" --calibrate 0 --output runs/none
says '--update auto goes by measurements'
for options in "--update auto" "--update allreduce --partition idpa"; do
    # shellcheck disable=SC2086 # several words
    fails_well 2 ranks 2 "$train" "${common[@]}" $options --tuned none.yaml --output runs/none
    says "and under $options it is not known before"
done

# Links between hosts are measured where shards go by them, and nowhere else.
apart=(env "LD_PRELOAD=$BPT_HELPERS/libapart_ranks.so" "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0")
for options in "--update agwu --partition idpa" "--update agwu --partition even" \
    "--update allreduce --partition idpa" "--update sgwu --calibrate 0"; do
    # shellcheck disable=SC2086 # several words
    run 0 ranks 2 "${apart[@]}" "$train" "${common[@]}" --epochs 0.5 $options --output runs/links --force
    n=$(grep -c 'its link carries' err)
    wanted=0
    [ "$options" != "--update agwu --partition idpa" ] || wanted=2
    [ "$n" -eq $wanted ] || die "$n links are measured under $options"
done
run 0 ranks 2 "$train" "${common[@]}" --epochs 0.5 --update agwu --partition idpa --output runs/links --force
! grep -q 'its link carries' err || die "a link is measured within a machine"
