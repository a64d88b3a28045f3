#!/usr/bin/env bash
# A dataset that is cut short while a program has it open: each says so and ends with status 3, all ranks of a job, and
# no program is ended by the system. A process is held still while its file is cut, so that it is sure to be under way.
source "$(dirname "$0")/common.sh"
make_data 20000 2000
make_model
cp -r data whole

restore() { # the dataset and its file's length
    rm -rf data
    cp -r whole data
}

cut() { # PID...: while they are held
    kill -STOP "$@" || die "ended before its dataset was cut"
    truncate -s 40960 data/data.mdb
    kill -CONT "$@"
}

start_held() { # COMMAND...: held once it has the file mapped; status 1: it ended before that
    rm -rf made
    start "$@"
    until grep -qs /data/data.mdb "/proc/$pid/maps" && kill -STOP "$pid" 2>/dev/null; do
        kill -0 "$pid" 2>/dev/null || return 1
    done
}

said_well() { # PROGRAM: it said what it was, once
    [ "$(grep -c "^$1: .*data.mdb was cut short while it was in use" err)" -eq 1 ] ||
        die "it is said more than once, or not by $1"
    says 'hint: restore the dataset from a copy, or ingest it again'
    if grep -qE 'Bus error|signal 7|AddressSanitizer|Assertion|Aborted' err out; then die "it crashed"; fi
    restore
}

ends_well() { # PROGRAM: that is $pid
    finish 3 60
    said_well "$1"
}

cut_while_running() { # PROGRAM COMMAND...: which may not have looked at the file's size yet when it is held: again
    local turn
    for turn in {1..20}; do
        start_held "${@:2}" || continue
        cut "$pid"
        finish 3 60
        if ! grep -q "is damaged: .* outside of the file" err; then
            said_well "$1"
            return
        fi
        restore
    done
    die "never cut in use in $turn turns: ${*:2}"
}

here_data=("${common[@]}")
here_data[1]=$work/data

# ---- one process ----

"$train" "${here_data[@]}" --epochs 1 --output first >out 2>err || die "bpt-train"
start "$train" "${here_data[@]}" --epochs 50 --output runs/one
await_steps runs/one
cut "$pid"
ends_well bpt-train
[ ! -e runs/one/model.safetensors ] || die "weights of a failed run"

cut_while_running bpt-eval "$eval" --data "$work/data" --split train --model tiny.yaml \
    --weights first/model.safetensors --threads 1

cut_while_running bpt-ingest "$ingest" export "$work/data" --split train --to made
cut_while_running bpt-ingest "$ingest" merge "$work/data" whole --split train --out made
[ ! -e made ] || die "something is left of a failed merge"

# ---- several ranks ----

start_ranks 2 "$train" "${here_data[@]}" --epochs 50 --output runs/two
await_steps runs/two
cut "$(rank_process 1)" "$(rank_process 2)"
ends_well bpt-train

# What a rank keeps of it.
start_ranks 2 "$train" "${here_data[@]}" --epochs 50 --data-mode scatter --scratch "$work/scratch" --output runs/scatter
await_steps runs/scatter
kept=$(rank_process 2)
kill -STOP "$kept"
truncate -s 40960 scratch/rank-1/samples.mdb
kill -CONT "$kept"
finish 3 60
grep -q "^bpt-train: .*/scratch/rank-1/samples.mdb .* while it was in use" err || die "it is not said what it was"
says 'what it held is sent again'
