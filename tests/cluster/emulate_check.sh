#!/usr/bin/env bash
# bpt-train --check and --stall-timeout between hosts: by network, not by memory in common.
source "$(dirname "$0")/cluster.sh"
make_data 400 50
make_model

run 0 "$emulate" --hosts one,two,three -- "$mpirun" -np 3 "$train" --check --data data --output runs/x
says '3 ranks with Open MPI' out
for host in one two three; do
    grep -qE "^[0-9] +$host .* eth0 " out || die "not the row of $host with its interface"
done
[ ! -e runs ] || die "--check makes a run folder"

# Hosts of one name are two all the same: what goes between them takes a link.
run 0 "$emulate" --hosts one,two -- "$mpirun" -np 2 sh -c 'hostname same; exec "$@"' - "$train" --check --data data \
    --output runs/x --log-level debug
says 'messages to 1 of 2 ranks go through memory'
grep -qE '^1 +same ' out || die "the hosts have names of their own"
n=$(nproc)
run 0 "$emulate" --hosts one,two -- "$mpirun" -np 2 sh -c 'hostname same; exec "$@"' - "$train" "${common[@]}" \
    --threads 0 --update allreduce --epochs 0.2 --output runs/same
says "$n thread$([ "$n" -eq 1 ] || echo s) on this rank" # and not those of one host between two ranks

# A rank on another host freezes: rank 0 says so, and all ends.
cat >freeze <<'END'
"$@" &
until grep -qs '"event": "step"' runs/frozen/metrics.jsonl; do
    kill -0 $! || exit 1
    sleep 0.1
done
for process in $(pgrep -x bpt-train); do
    tr '\0' '\n' <"/proc/$process/environ" | grep -qx OMPI_COMM_WORLD_RANK=2 && kill -STOP "$process"
done
wait $!
END
run 1 "$emulate" --hosts one,two,three -- bash freeze "$mpirun" -np 3 "$train" "${common[@]}" --update sgwu \
    --epochs 1000000 --output runs/frozen --stall-timeout 3
[ "$(grep -cE '^bpt-train: ' err)" -eq 1 ] || die "not one error line"
says 'bpt-train: rank 0 on one has waited'
says 'for rank 2 on three (does not answer)'
