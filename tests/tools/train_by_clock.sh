#!/usr/bin/env bash
# Checkpoints that nobody asks for: they come with time, change nothing, and are gone on from.
source "$(dirname "$0")/common.sh"
make_data
make_model
often=("${common[@]}" --eval-every 0 --checkpoint-minutes 0.002 --checkpoint-keep 99)
epochs=$(length 12 6)
made() { # RUN: how many
    find "$1/checkpoints" -name DONE | wc -l
}
by_time() { # RUN COMMAND...: so long that one comes before the end does
    local run=$1 turn
    for turn in 1 2 3 4 5; do
        run 0 "${@:2}" --epochs "$epochs" --output "$run"
        [ "$(made "$run")" -eq 0 ] || return 0
        rm -r "$run"
        epochs=$((2 * epochs))
    done
    die "no checkpoint by time: ${*:2}"
}

# On one rank and under allreduce the result is that without, and that of a run which goes on from one.
for n in 1 2; do
    by_time runs/often$n ranks $n "$train" "${often[@]}" --update $([ $n -eq 1 ] && echo local || echo allreduce)
    update=$(python3 -c 'import json; print(json.load(open("runs/often'$n'/summary.json"))["update"])')
    run 0 ranks $n "$train" "${often[@]}" --update "$update" --epochs "$epochs" --checkpoint-minutes 0 --output runs/never$n
    [ "$(made runs/never$n)" -eq 0 ] || die "a checkpoint that nobody wants"
    same_weights runs/often$n runs/never$n
    cut_back runs/often$n
    run 0 ranks $n "$train" "${often[@]}" --update "$update" --epochs "$epochs" --output runs/often$n --resume auto
    says 'going on from runs/often'$n'/checkpoints/step-'
    same_weights runs/often$n runs/never$n
done
grep -qx 'checkpoint-minutes: 0.002' runs/often1/config.yaml || die "not in config.yaml"

# Where time is not up, those by steps come alone.
run 0 "$train" "${often[@]}" --epochs 2 --checkpoint-minutes 10 --checkpoint-every 50 --output runs/steps
[ "$(ls runs/steps/checkpoints | xargs)" = "$(seq -f 'step-%08g' 50 50 150 | xargs)" ] ||
    die "checkpoints of $(ls runs/steps/checkpoints | xargs)"

# Under agwu with servers: at an exchange, and replayed.
by_time runs/served ranks 3 "$train" "${often[@]}" --update agwu --servers 1 --lr 0.01
run 0 "$train" --replay runs/served
says 'bit for bit'
