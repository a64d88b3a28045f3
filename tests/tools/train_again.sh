#!/usr/bin/env bash
# The script of docs/runs.md that begins a job again: it goes on after a rank was killed, and leaves alone what is done,
# what was told to stop, and what would only fail once more.
source "$(dirname "$0")/common.sh"
make_data 400 50
make_model
mv data fashion

# As it stands there, but for the mpirun that it finds: one that counts, and has a small network trained.
sed -n "/^trap 'exit 130' INT/,/^\`\`\`$/p" "$here/../../docs/runs.md" | grep -v '^```$' >again
[ "$(wc -l <again)" -ge 8 ] || die "docs/runs.md has no such script"
mkdir bin
cat >bin/mpirun <<'END'
#!/usr/bin/env bash
PATH=${PATH#*:}
[ "${*:1:5}" = "-np 2 --bind-to none bpt-train" ] || exit 99
echo >>tries
# shellcheck disable=SC2086 # several words
exec $BPT_MPIRUN -np 2 "$train" "${@:6}" --model tiny.yaml --batch-size 20 --threads 1 --calibrate 0.05 \
    --log-interval 0.5 --eval-every 0 --checkpoint-every 20 $EXTRA
END
printf '#!/bin/sh\nexit 0\n' >bin/sleep
chmod +x bin/*
export train BPT_MPIRUN

again() { # OPTIONS: begins the script, for a job with these options more; $pid
    : >tries
    EXTRA=$1 start env PATH="$PWD/bin:$PATH" bash again
}

rank_of_script() { # N: as rank_process
    local script=$pid pid
    pid=$(pgrep -P "$script")
    rank_process "$1"
}

tried() { # N: so many jobs were begun
    [ "$(wc -l <tries)" -eq "$1" ] || die "$(wc -l <tries) jobs instead of $1"
}

# ---- a rank is killed ----

epochs=$(length 300 100)
again "--epochs $epochs"
await err 'info: checkpoint runs/long/checkpoints/step-'
kill -s KILL "$(rank_of_script 2)"
finish 0
tried 2
says 'info: going on from runs/long/checkpoints/step-'
[ -s runs/long/summary.json ] || die "it did not come to its end"

# ---- what is not begun again ----

again "--epochs $epochs" # what is done
finish 0
tried 1
says 'runs/long is finished already'
rm -r runs
again '--no-such-option'
finish 2
tried 1
again '--epochs 1000000'
await_steps runs/long
kill -s USR1 "$(rank_of_script 1)"
finish 75
tried 1
