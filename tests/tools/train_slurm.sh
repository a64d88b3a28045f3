#!/usr/bin/env bash
# The batch script for Slurm, beside stand-ins for its commands: how it starts ranks, and what it does about signals.
source "$(dirname "$0")/common.sh"
make_data
make_model
script=$(cd "$here/../.." && pwd)/tools/bpt.sbatch
unset "${!SLURM_@}" # of a job that this test may itself be in

# Stand-ins note down how they are called; both launchers are the real mpirun, of two ranks.
read -ra launcher <<<"${BPT_MPIRUN/#mpirun/$(command -v mpirun)}"
mkdir bin
ln -s "$train" bin/
cat >bin/srun <<END
#!/bin/bash
[ "\$*" != --mpi=list ] || { echo "\$SRUN_TYPES" >&2; exit; }
exec "$work/bin/launch" srun "\$@"
END
cat >bin/mpirun <<END
#!/bin/bash
exec "$work/bin/launch" mpirun "\$@"
END
cat >bin/launch <<END
#!/bin/bash
while [ "\$1" != bpt-train ]; do
    echo "\$1" >>"$work/launched"
    shift
done
exec ${launcher[*]@Q} -np 2 "\$@"
END
cat >bin/scontrol <<END
#!/bin/bash
echo "\$@" >>"$work/controlled"
exit "\${SCONTROL_STATUS:-0}"
END
chmod +x bin/{srun,mpirun,launch,scontrol}

job=(env "PATH=$work/bin:$PATH" SLURM_JOB_ID=7 "SRUN_TYPES=none pmi2 pmix pmix_v4")
training=("${common[@]}" --update agwu --lr 0.01 --eval-every 0 --calibrate 0.05 --epochs 3000 --sync-every 8)
launched() { # WORD...: so the ranks were started
    [ "$(xargs <launched)" = "$*" ] || die "ranks were started by \"$(xargs <launched)\" instead of \"$*\""
    rm launched
}
end_early() { # SIGNAL RUN COMMAND...: the signal comes while the script's job trains
    local signal=$1 run=$2
    shift 2
    start "$@" --output "$run"
    await_steps "$run"
    kill -s "$signal" "$pid"
    finish 75
    says "checkpoint saved"
}

# Shortly before its limit the job makes a checkpoint and is queued again.
end_early USR1 runs/job "${job[@]}" "$script" "${training[@]}"
launched srun --mpi=pmix --cpu-bind=none --wait=30
[ "$(cat controlled)" = "requeue 7" ] || die "not queued again: $(cat controlled)"
rm controlled
# It goes on from there, and when it has ended is not queued again.
run 0 "${job[@]}" "$script" "${training[@]}" --epochs 0.01 --output runs/job
says "nothing is left to train"
[ ! -e controlled ] || die "queued again after its end"
rm launched

# Who cancels a job does not want it queued again. Without PMIx mpirun starts the ranks.
end_early TERM runs/ended "${job[@]}" SRUN_TYPES=none "$script" "${training[@]}"
launched mpirun --map-by ppr:1:node --bind-to none
[ ! -e controlled ] || die "queued again after a cancellation"

# A queue that does not take it again.
end_early USR1 runs/refused "${job[@]}" SCONTROL_STATUS=1 "$script" "${training[@]}"
says "bpt.sbatch: not queued again; the same sbatch goes on"
rm launched controlled

# A failure when time is nearly up is no reason to try again.
rm bin/bpt-train
cat >bin/bpt-train <<END
#!/bin/bash
trap '' USR1
echo begun >"$work/begun.\$OMPI_COMM_WORLD_RANK"
sleep 1
exit 3
END
chmod +x bin/bpt-train
start "${job[@]}" "$script"
await begun.0 begun # both have the signal ignored by then
await begun.1 begun
kill -s USR1 "$pid"
finish 3
[ ! -e controlled ] || die "queued again after a failure"
rm launched
ln -sf "$train" bin/

# A job of several parts.
run 2 "${job[@]}" SLURM_HET_SIZE=3 "$script" --no-such-option
says 'unknown option "no-such-option"'
launched srun --mpi=pmix --cpu-bind=none --wait=30 --het-group=0-2
run 2 "${job[@]}" SLURM_HET_SIZE=3 SRUN_TYPES=none "$script" "${training[@]}" --output runs/parts
says "a job of 3 parts wants an srun with PMIx"

# What cannot be meant.
for option in "--resume runs/job" --resume=runs/job; do
    # shellcheck disable=SC2086 # two words
    run 2 "${job[@]}" "$script" "${training[@]}" --output runs/other $option
    says "--resume is given already"
done
rm bin/bpt-train
run 2 "${job[@]}" "$script" "${training[@]}" --output runs/other
says "no bpt-train in PATH"
[ ! -e launched ] || die "ranks were started all the same"
[ ! -e runs/other ] || die "a refused job made a run"
