#!/usr/bin/env bash
# The run's folder: one job at a time writes there, what is refused changes nothing and leaves
# nothing, a finished run stays as it is, and a stop before the first step is a stop.
source "$(dirname "$0")/common.sh"
make_data 400 100
make_model
good=("${common[@]}" --epochs 1)

sums() { # FOLDER: all that is in it
    (cd "$1" && find . -type f -exec cksum {} + | sort)
}

on() { # N COMMAND...: on so many ranks. One needs no mpirun, which takes two seconds over a rank that fails
    if [ "$1" -eq 1 ]; then "${@:2}"; else ranks "$@"; fi
}

# ---- a live run is nobody else's ----

for n in 1 2; do
    live=runs/live-$n
    # Nothing is written between start and stop: a change is somebody else's.
    quiet=("${common[@]}" --log-interval 1000 --eval-every 0 --output $live)
    if [ $n -eq 1 ]; then
        start "$train" "${quiet[@]}" --epochs 100000
        rank=$pid
        holder="process $pid on $(uname -n)"
    else
        quiet+=(--update allreduce)
        start_ranks $n "$train" "${quiet[@]}" --epochs 100000
        holder="on $(uname -n)" # which of them is rank 0 is mpirun's to know
    fi
    await $live/metrics.jsonl '"event": "start"'
    [ $n -eq 1 ] || rank=$(rank_process 1)
    before=$(sums $live)
    for ranks in 1 2; do
        for way in "--resume auto" --force; do
            # shellcheck disable=SC2086 # several words
            fails_well 2 on $ranks "$train" "${good[@]}" --output $live $way
            says "another bpt-train writes to the run folder $live"
            says "$holder"
        done
    done
    [ "$(sums $live)" = "$before" ] || die "a refused job changed a live run"
    kill -s TERM "$rank"
    finish 75
    [ ! -e $live/run.lock ] || die "the lock file is left"
    [ "$(find $live -name DONE | wc -l)" -eq 1 ] || die "the live run has no checkpoint"
    run 0 on $n "$train" "${quiet[@]}" --epochs 2 --resume auto
    [ ! -e $live/run.lock ] || die "the lock file is left"
done

# Ranks on hosts that do not share the folder, played by two working folders and a relative path.
# What is not seen is waited for, for seconds: the two cases at once.
apart=("$train" "${common[@]}" --data "$work/data" --model "$work/tiny.yaml" --epochs 1 --output runs/apart)
two_hosts() ( # FOLDER SAYS: which has the two working folders, there/runs filled
    work=$work/$1
    cd "$work" && mkdir -p here/runs || exit
    export OMPI_MCA_orte_tmpdir_base=$work # two mpiruns that make its folder at the same moment fail
    fails_well 2 ranks 2 "${unlike[@]}" env -C "$work/here" "${apart[@]}" --others env -C "$work/there" "${apart[@]}"
    says "$2"
    says 'file system that all machines share'
    [ ! -e here/runs/apart ] || die "a refused start leaves $(find here)"
)
mkdir -p unseen/there/runs unlike/there/runs/apart
echo "process 1 on elsewhere since long ago" >unlike/there/runs/apart/run.lock # a killed run's lock
two_hosts unseen 'the run folder runs/apart is not seen on this host' &
unseen=$!
two_hosts unlike "the run folder runs/apart on this host is not rank 0's" || exit 1
wait $unseen || exit 1
rm -r unseen unlike
# A rank that does not see the folder chooses between force in a file and --resume as rank 0 does.
echo 'force: true' >force.yaml
mkdir -p there
run 0 "$train" "${common[@]}" --epochs 1 --checkpoint-every 10 --output here/runs/apart
apart+=(--config "$work/force.yaml" --resume runs/apart)
fails_well 2 ranks 2 "${unlike[@]}" env -C "$work/here" "${apart[@]}" --others env -C "$work/there" "${apart[@]}"
says 'the run folder runs/apart is not seen on this host'

# A killed run holds nobody back. Who goes on replaces what it kept of its ranks, of which there may be fewer now, and
# removes what it has left half-written.
start "$train" "${common[@]}" --epochs 100000 --checkpoint-every 10 --output runs/killed
await runs/killed/log.rank-0.txt "info: checkpoint "
kill -s KILL "$pid"
wait "$pid" 2>/dev/null
[ -e runs/killed/run.lock ] || die "it was not locked"
touch runs/killed/{gpu,tuned}.rank-{7,0.old}.yaml
halves=(config.yaml model.yaml summary.json model.safetensors gpu.rank-0.yaml exchange/shards.json)
others=(summary.json.tmp-mine summary.json.tmp- notes.tmp-1 exchange/notes.tmp-1)
touch "${others[@]/#/runs/killed/}"
for half in "${halves[@]}"; do
    touch "runs/killed/$half.tmp-4711"
done
mkdir runs/killed/checkpoints.tmp-1
before=$(ls runs/killed/checkpoints/*/DONE)
mkdir runs/killed/checkpoints/{step-99999990,step-99999999.part,best} # where no new one will be
touch runs/killed/checkpoints/{step-99999990,step-99999999.part}/rank-0.json
run 0 "$train" "${common[@]}" --epochs 2 --output runs/killed --resume auto
says "going on from runs/killed/checkpoints/"
[ "$(cd runs/killed && echo {gpu,tuned}.rank-*)" = "gpu.rank-0.old.yaml tuned.rank-0.old.yaml" ] ||
    die "left: $(ls runs/killed)"
[ ! -e runs/killed/run.lock ] || die "the lock file is left"
[ -e runs/killed/checkpoints/best ] || die "a folder of the user's is gone"
[ "$(ls runs/killed/checkpoints/*/DONE)" = "$before" ] || die "other checkpoints than $before: $(ls runs/killed/checkpoints)"
[ "$(find runs/killed/checkpoints -name 'step-*' | wc -l)" -eq "$(wc -l <<<"$before")" ] ||
    die "checkpoints that are not whole stay: $(ls runs/killed/checkpoints)"
[ -z "$(find runs/killed -name '*.tmp-4711')" ] || die "left: $(find runs/killed -name '*.tmp-*')"
for other in "${others[@]}" checkpoints.tmp-1; do
    [ -e "runs/killed/$other" ] || die "$other of the user's is gone"
done
# Without a checkpoint nothing of it is left, of ranks that there are no more too; what somebody keeps there is his.
run 0 ranks 2 "$train" "${good[@]}" --output runs/attempt
rm runs/attempt/summary.json
cp runs/attempt/log.rank-0.txt runs/attempt/log.rank-0.old.txt
run 0 "$train" "${good[@]}" --output runs/attempt --resume auto
[ "$(cd runs/attempt && echo log.*)" = "log.rank-0.old.txt log.rank-0.txt" ] || die "left: $(ls runs/attempt)"
grep -q ' 2 ranks, update ' runs/attempt/log.rank-0.old.txt || die "another message"
grep -q ' 2 ranks, update ' runs/attempt/log.rank-0.txt && die "the log begins with the attempt before"
[ "$(grep -c '"event": "start"' runs/attempt/metrics.jsonl)" -eq 1 ] || die "events of the attempt before"
[ -z "$(ls runs/attempt/exchange)" ] || die "an exchange of the attempt before: $(ls runs/attempt/exchange)"
for way in --force "--resume auto"; do # killed as it began to write
    mkdir -p runs/early/{checkpoints,exchange} && touch runs/early/run.lock runs/early/config.yaml.tmp-1
    # shellcheck disable=SC2086 # several words
    run 0 "$train" "${good[@]}" --output runs/early $way
    rm -r runs/early
done
mkdir -p runs/early/checkpoints/step-00000010 # which a killed start does not leave
fails_well 2 "$train" "${good[@]}" --output runs/early --force
says 'runs/early is not a run folder: left as it is'
says '--resume runs/early if'
long=runs/$(printf '%0220d' 0)/$(printf '%0220d' 0) # a part of it would be another path
mkdir -p $long/checkpoints/step-00000010
fails_well 2 "$train" "${good[@]}" --output $long --force
says '--resume RUN if there are checkpoints in it'

# Where somebody removes the lock file, the next one is another job's: who ends leaves it alone.
two=("$train" "${common[@]}" --log-interval 1000 --eval-every 0 --epochs 100000 --output runs/two --resume auto)
start "${two[@]}"
await runs/two/metrics.jsonl '"event": "start"'
first=$pid
rm runs/two/run.lock
start "${two[@]}"
await runs/two/run.lock "process $pid on"
kill -s TERM "$first"
wait "$first"
[ $? -eq 75 ] || die "the first of two was not stopped"
[ -e runs/two/run.lock ] || die "one job removes the lock file of another"
fails_well 2 "${two[@]}"
kill -s TERM "$pid"
finish 75

# ---- what is refused leaves nothing, and changes nothing ----

refused() { # FOLDER COMMAND...: status 2 or 3, and there is no folder
    local folder=$1
    shift
    "$@" >out 2>err </dev/null
    case $? in 1 | 2 | 3) ;; *) die "it was not refused: $*" ;; esac
    grep -q '^hint: ' err || die "no hint: $*"
    [ ! -e "$folder" ] || die "left: $(find "$folder")"
}

name_too_long=$(printf 'x%.0s' {1..300})
run 0 "$train" "${good[@]}" --output runs/old --checkpoint-every 10
cp -r runs/old runs/broken
printf x >>runs/broken/checkpoints/step-00000010/model.safetensors
rm -rf runs/broken/checkpoints/step-00000020 runs/broken/checkpoints/step-0000001[1-9]
cp -r runs/old runs/foreign # weights of another model
for n in 1 2; do
    both=(on $n "$train" "${good[@]}")
    refused new "${both[@]}" --output new/deep/run --trace nowhere/x.json
    for long in new/deep/$name_too_long new/$name_too_long/run; do
        refused new "${both[@]}" --output "$long"
    done
    refused new "${both[@]}" --output new/deep/run --resume runs/broken
    refused new "${both[@]}" --output new/deep/run --resume runs/foreign --model lenet
    mkdir new
    refused new/run "${both[@]}" --output new/run --trace nowhere/x.json
    [ -d new ] || die "it removed what it did not make"
    rmdir new
    # With --force the old run is what could be lost.
    before=$(sums runs/old)
    refused nothing "${both[@]}" --output runs/old --force --trace nowhere/x.json
    refused nothing "${both[@]}" --output runs/old --force --resume runs/broken
    refused nothing "${both[@]}" --output runs/old --resume runs/old --trace nowhere/x.json
    [ "$(sums runs/old)" = "$before" ] || die "what was refused changed runs/old"
done
mkdir few && (cd few && make_data 100 10) || die "data"
before=$(sums runs/old)
refused nothing ranks 2 "$train" "${good[@]}" --output runs/old --force --data few/data --idpa-rounds 64
says 'leave some of 2 ranks without any'
[ "$(sums runs/old)" = "$before" ] || die "what was refused changed runs/old"
# The trace may lie in the folder that is made.
run 0 "$train" "${good[@]}" --output new/run --trace new/run/trace.json --trace-steps 1-2
[ -s new/run/trace.json ] || die "no trace"
# What runs make is replaced, of ranks that there are no more too; what somebody keeps there is his.
touch new/run/log.rank-7.txt new/run/log.rank-0.old.txt new/run/log.rank-.txt new/run/gpu.rank-{7,0.old}.yaml
run 0 "$train" "${good[@]}" --output new/run --force --trace new/run/trace.json
[ "$(cd new/run && echo log.*)" = "log.rank-.txt log.rank-0.old.txt log.rank-0.txt" ] || die "left: $(ls new/run)"
[ "$(cd new/run && echo gpu.*)" = gpu.rank-0.old.yaml ] || die "left: $(ls new/run)"
run 0 "$train" "${good[@]}" --output new/plain
same_weights new/run new/plain

# ---- a finished run stays as it is ----

# What the command line says of force and resume counts before what a file says; else each excludes the other.
echo 'force: true' >force.yaml
echo 'resume: auto' >resume.yaml
run 0 "$train" "${good[@]}" --epochs 2 --checkpoint-every 10 --output runs/either
cut_back runs/either
run 0 "$train" "${good[@]}" --epochs 2 --config force.yaml --output runs/either --resume auto
says 'going on from runs/either'
says 'force in the configuration is not used beside --resume'
run 0 "$train" "${good[@]}" --epochs 1 --config resume.yaml --output runs/either --force
says 'resume in the configuration is not used beside --force'
[ -z "$(ls runs/either/checkpoints)" ] || die "it is not replaced"
# Nor does it clash with what is given beside the other; a name that leads out of the folder is of another.
echo 'resume: ./runs//either/checkpoints' >resume.yaml
run 0 "$train" "${good[@]}" --config resume.yaml --output runs/either/ --force --init-weights runs/old/model.safetensors
says 'resume in the configuration is not used beside --force'
echo 'resume: runs/either/../old' >resume.yaml
run 0 "$train" "${good[@]}" --epochs 7 --config resume.yaml --output runs/either --force
says 'going on from runs/either/../old'
echo 'resume: auto' >resume.yaml
fails_well 2 "$train" "${good[@]}" --config force.yaml --config resume.yaml --output runs/either
says '--force would remove runs/either, which --resume goes on from'
before=$(sums runs/old)
for n in 1 2; do
    run 0 on $n "$train" "${common[@]}" --epochs 7 --lr 0.3 --output runs/old --resume auto
    says "runs/old is finished already; another --output with --resume runs/old trains on"
    [ "$(sums runs/old)" = "$before" ] || die "a finished run was changed"
done
mv new/plain "new/my run"
run 0 "$train" "${good[@]}" --output "new/my run" --resume auto
says "another --output with --init-weights 'new/my run/model.safetensors' trains on" # it has no checkpoint

# Who goes on in its folder has no summary until it ends, and the final weights of before. Messages follow those before.
cp -r runs/old runs/goes-on
start "$train" "${common[@]}" --epochs 100000 --output runs/goes-on --resume runs/goes-on
await runs/goes-on/log.rank-0.txt 'going on from '
[ ! -e runs/goes-on/summary.json ] || die "the summary is that of the run before"
cmp -s runs/old/model.safetensors runs/goes-on/model.safetensors || die "the weights of before are gone"
kill -s KILL "$pid"
wait "$pid" 2>/dev/null
grep -q 'checkpoint .*step-00000010 ' runs/goes-on/log.rank-0.txt || die "the messages before are gone"

# ---- a folder that goes away: noticed at the next evaluation ----

start "$train" "${common[@]}" --eval-every 1 --epochs 3000 --output runs/gone
await_steps runs/gone
mv runs/gone runs/elsewhere
finish 1 30
says "the run folder runs/gone is gone: it was removed or moved"

# ---- a stop before the first step ----

late() { # FILE COMMAND...: what one rank does once the file is there
    until [ -e "$1" ]; do sleep 0.05; done
    shift && exec "$@"
}
export -f late
mask() { # PROCESS WHICH: the signals that it catches (Cgt) or ignores (Ign)
    echo $((0x$(sed -n "s/^Sig$2:\t*//p" "/proc/$1/status")))
}
# Until it is bpt-train and catches its four signals, but for SIGINT where bash has it ignored in the background; UCX
# catches SIGHUP before.
catches() { # PROCESS
    local left=2000 four=$((0x4203)) # 20 s; SIGHUP, SIGINT, SIGUSR1, SIGTERM
    until [ "$(cat "/proc/$1/comm" 2>/dev/null)" = bpt-train ] &&
        [ $((($(mask "$1" Cgt) | ($(mask "$1" Ign) & 2)) & four)) -eq $four ]; do
        [ $((left--)) -gt 0 ] || die "it catches no signals"
        sleep 0.01
    done
}
# The first rank waits for the second one in MPI_Init: it is told to stop there.
for signal in TERM USR1 INT; do
    for way in "" "--resume auto"; do
        # shellcheck disable=SC2206 # several words
        job=("$train" "${good[@]}" --output runs/soon --update sgwu $way)
        rm -f go
        start_ranks 2 "${unlike[@]}" "${job[@]}" --others bash -c 'late "$@"' late go "${job[@]}"
        until first=$(rank_process 1) && [ -n "$first" ]; do sleep 0.05; done
        catches "$first"
        kill -s $signal "$first"
        touch go
        finish 75
        says "stopped before the first step, nothing is changed"
        says "hint: give the same command again"
        [ "$(grep -c '^bpt-train: ' err)" -eq 1 ] || die "not one line that says it stopped"
        [ ! -e runs/soon ] || die "it leaves $(find runs/soon)"
    done
done
# From the first moment at which signals are caught on: 75, and the same command goes on.
for wait in 0 0.05 0.1 0.2 0.4; do
    start "$train" "${good[@]}" --epochs 100000 --output runs/moment --resume auto
    catches "$pid"
    sleep $wait
    kill -s TERM "$pid"
    finish 75
done
# Started by a shell that has SIGINT ignored for it, in the background of a script, it leaves it so.
start "$train" "${good[@]}" --epochs 100000 --output runs/moment --resume auto
catches "$pid"
[ $(($(mask "$pid" Ign) & 2)) -ne 0 ] || die "SIGINT was ignored, and is not any more"
kill -s INT "$pid"
kill -s INT "$pid" # caught, a second one would end it
kill -s TERM "$pid"
finish 75
hundred=("$train" "${good[@]}" --epochs 100 --eval-every 0) # at least a third of a second
run 0 "${hundred[@]}" --output runs/hundred
rm -rf runs/moment
start "${hundred[@]}" --output runs/moment --resume auto
catches "$pid"
kill -s TERM "$pid"
finish 75
run 0 "${hundred[@]}" --output runs/moment --resume auto
same_weights runs/hundred runs/moment

# What has nothing to save ends by the signal, as it is used to.
start "$train" --model tiny.yaml --bench 1000000 --threads 1
await out '"step": 2'
kill -s TERM "$pid"
finish 143

# ---- a folder that goes away ----

removed() { # FOLDER: where a file came while it went, another time
    until rm -rf "$1"; do :; done
}
# The last is most likely at a checkpoint just then.
for case in '50 removed runs/away' '50 mv runs/away runs/moved' '1 mv runs/away runs/again'; do
    start "$train" "${common[@]}" --epochs 100000 --checkpoint-every "${case%% *}" --output runs/away
    await_steps runs/away
    ${case#* }
    finish 1
    says 'the run folder runs/away is gone'
    [ ! -e runs/away ] || die "it makes $(find runs/away) anew"
done

# ---- weights that --force would take away ----

run 0 "$train" "${common[@]}" --epochs 0.1 --output runs/own
sum=$(sha256sum <runs/own/model.safetensors)
fails_well 2 "$train" "${common[@]}" --epochs 0.1 --output runs/own --force --init-weights runs/own/model.safetensors
says '--force would remove runs/own/model.safetensors'
[ "$sum" = "$(sha256sum <runs/own/model.safetensors)" ] || die "they are gone"
run 0 "$train" "${common[@]}" --epochs 0.1 --output runs/next --force --init-weights runs/own/model.safetensors
