#!/usr/bin/env bash
# Processes that were started together and do not find each other: refused once, and nothing is written.
source "$(dirname "$0")/common.sh"
make_data 100 20
make_model
good=("${common[@]}" --epochs 1)

refused() { # TEXT: the files err.0 and err.1 hold one refusal, and there is no run folder
    cat err.0 err.1 >err
    [ "$(grep -cE '^bpt-train: ' err)" -eq 1 ] || die "not one error line"
    says "$1"
    says 'each is a job of its own'
    says 'hint: start it with the mpirun'
    [ ! -e runs ] || die "a split world wrote to the run folder"
}

# As two processes of a launcher whose protocol this MPI does not speak.
together() { # RANK-VARIABLE COMMAND...
    local rank status=() pids=()
    for rank in 0 1; do
        env "$1=$rank" "${@:2}" >"out.$rank" 2>"err.$rank" </dev/null &
        pids+=($!)
    done
    for rank in 0 1; do
        wait "${pids[$rank]}"
        status+=($?)
    done
    [ "${status[*]}" = "2 2" ] || die "exit statuses ${status[*]} instead of 2 2"
}
together PMI_RANK env PMI_SIZE=2 "$train" "${good[@]}" --output runs/x
refused "a launcher by PMI (MPICH's mpiexec, srun) started 2 processes"
together SLURM_PROCID env SLURM_STEP_NUM_TASKS=2 "$train" "${good[@]}" --output runs/x
refused 'srun started 2 processes'
together PMI_RANK env PMI_SIZE=2 "$train" --check --data data
refused 'started 2 processes'

# A true one: mpirun starts two, and what they would find each other by is lost on the way.
cat >lost <<'END'
#!/bin/sh
exec 2>>"err.$OMPI_COMM_WORLD_RANK"
for name in $(env | sed -n 's/^\(PMIX_[A-Z0-9_]*\|OMPI_MCA_[a-z0-9_]*\|OPAL_[A-Z_]*\)=.*/\1/p'); do
    unset "$name"
done
exec "$@"
END
chmod +x lost
rm -f err.0 err.1
run 2 ranks 2 ./lost "$train" "${good[@]}" --output runs/x
refused "Open MPI's mpirun started 2 processes"

# What is no split world: a job of one in a batch script of many tasks, and what needs no other rank.
run 0 env SLURM_NTASKS=2 SLURM_PROCID=0 "$train" "${good[@]}" --output runs/batch
run 0 env PMI_SIZE=2 PMI_RANK=0 "$train" --model tiny.yaml --bench 1 --batch-size 4 --threads 1
run 0 ranks 1 "$train" "${good[@]}" --output runs/one
