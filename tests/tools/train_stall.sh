#!/usr/bin/env bash
# Ranks that hang: the others name them, and --stall-timeout ends the job with one message, status 1 and no
# process left.
source "$(dirname "$0")/common.sh"
make_data 400 50
make_model
host=$(hostname)

of_rank() { # N: process id of rank N of the job that is $pid
    local process
    for process in $(pgrep -P "$pid" -x bpt-train); do
        tr '\0' '\n' <"/proc/$process/environ" | grep -qx "OMPI_COMM_WORLD_RANK=$1" && echo "$process"
    done
}

is_gone() { # PID...: no such process, or a dead one that nobody has asked for yet
    local process
    for process; do
        case $(ps -o stat= -p "$process") in '' | Z*) ;; *) return 1 ;; esac
    done
}

ends_named() { # TEXT: the job ends with one error line, which has the text, and leaves nothing
    local left=100 processes
    processes=$(pgrep -P "$pid" -x bpt-train)
    finish 1 240
    [ "$(grep -cE '^bpt-train: ' err)" -eq 1 ] || die "not one error line"
    grep -E '^bpt-train: ' err | grep -qF -- "$1" || die "\"$1\" is not in the error"
    grep -E '^bpt-train: ' err | grep -qF -- "longer than --stall-timeout" || die "it does not say why"
    grep -q '^hint: ' err || die "no hint"
    # shellcheck disable=SC2086 # several words
    until is_gone $processes; do
        [ $((left--)) -gt 0 ] || die "processes are left: $processes"
        sleep 0.1
    done
}

# ---- a rank that is frozen ----

long=("${common[@]}" --epochs 1000000 --eval-every 0)
frozen() { # UPDATE RANK WHERE TIMEOUT: rank RANK of three is stopped while it trains
    start_ranks 3 "$train" "${long[@]}" --update "$1" --output "runs/$1-$2" --stall-warning 1 --stall-timeout "$4"
    await_steps "runs/$1-$2"
    kill -STOP "$(of_rank "$2")"
    ends_named "for rank $2 on $host (does not answer)"
    says "$3"
}
# Who does not answer is given five seconds: there is a warning before. They are given once.
frozen agwu 1 'at an exchange of weights' 8
grep -qE "^bpt-train: .* has waited ([89]|10) s" err || die "it has waited for longer than it was told"
grep -E '^r0 .* warn: ' err | grep -qF "for rank 1 on $host (does not answer)" || die "no warning"
frozen agwu 0 'at an exchange of weights' 3 # the coordinator
frozen sgwu 2 'at an exchange of weights' 3
frozen allreduce 1 'at the sum of gradients' 3

# ---- a job that is stopped as a whole, and a rank for a moment ----

# Time in which nothing runs is no waiting; and without limits nothing is said.
start_ranks 2 "$train" "${long[@]}" --update sgwu --output runs/paused --stall-timeout 4
await_steps runs/paused
ranks=$(pgrep -P "$pid" -x bpt-train)
# shellcheck disable=SC2086 # several words
kill -STOP $ranks
sleep 6
# shellcheck disable=SC2086 # several words
kill -CONT $ranks
sleep 1
kill -s USR1 "$pid"
finish 75
grep -q 'has waited' err && die "a pause counts as waiting"

start_ranks 2 "$train" "${long[@]}" --update sgwu --output runs/silent --stall-warning 0
await_steps runs/silent
frozen=$(of_rank 1)
kill -STOP "$frozen"
sleep 3
kill -CONT "$frozen"
kill -s USR1 "$pid"
finish 75
grep -q 'has waited' err && die "--stall-warning 0 warns"

# ---- a file system that hangs ----

# A pipe that nobody reads is one: whoever opens it waits. The thread that hangs there holds the log's lock.
hang_at_log() { # RUN RANK
    rm -f "$1/log.rank-$2.txt" && mkfifo "$1/log.rank-$2.txt" || die "no pipe"
}
short=("${common[@]}" --epochs 1)
kept=("${short[@]}" --checkpoint-every 2) # what goes on from one keeps its logs
run 0 ranks 2 "$train" "${kept[@]}" --update sgwu --output runs/hung
cut_back runs/hung
hang_at_log runs/hung 1
start_ranks 2 "$train" "${kept[@]}" --update sgwu --output runs/hung --resume auto --stall-timeout 3
ends_named "rank 0 on $host has waited"
says "for rank 1 on $host (waiting for the run folder for"

run 0 "$train" "${kept[@]}" --output runs/hung-alone
cut_back runs/hung-alone
hang_at_log runs/hung-alone 0
start "$train" "${kept[@]}" --output runs/hung-alone --resume auto --stall-warning 1 --stall-timeout 3
finish 1
[ "$(grep -cE '^bpt-train: ' err)" -eq 1 ] || die "not one error line"
says "bpt-train: rank 0 on $host has waited"
grep -qE "warn: rank 0 on $host has waited [0-9]+ s for the run folder" err || die "no warning"

# ---- a rank that does not start ----

mkfifo never
cat >late <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && read -r line <never
exec "$@"
END
chmod +x late
start_ranks 2 ./late "$train" "${short[@]}" --output runs/late --stall-warning 1 --stall-timeout 3
finish 1
[ "$(grep -cE '^bpt-train: ' err)" -eq 1 ] || die "not one error line"
grep -qE 'warn: rank 0: MPI has not connected the 2 ranks after [0-9]+ s' err || die "no warning"
says 'btl_tcp_if_include'
[ ! -e runs/late ] || die "a start that hung leaves a run folder"

# The one that would speak for all is the one that is missing.
sed 's/= 1 /= 0 /' late >first-late
chmod +x first-late
start_ranks 2 ./first-late "$train" "${short[@]}" --output runs/late --stall-warning 1 --stall-timeout 3
finish 1
[ "$(grep -cE '^bpt-train: ' err)" -eq 1 ] || die "not one error line"
n=$(grep -cE 'warn: rank 1: MPI has not connected the 2 ranks after [0-9]+ s' err)
[ "$n" -ge 1 ] && [ "$n" -le 4 ] || die "$n warnings where the time has doubled three times" # also until its turn

# A check has no checkpoint to go on from.
start_ranks 2 ./late "$train" --check --data data --output runs/late --stall-timeout 3
finish 1
[ "$(grep -cE '^bpt-train: ' err)" -eq 1 ] || die "not one error line"
says 'btl_tcp_if_include'
grep -qF -- '--resume' err && die "a check is said to go on"
true
