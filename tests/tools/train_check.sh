#!/usr/bin/env bash
# bpt-train --check: what it shows, and that it finds each fault that is planted; it changes nothing.
source "$(dirname "$0")/common.sh"
make_data 200 50
make_model
host=$(hostname)

untouched() {
    [ ! -e runs ] || die "--check makes a run folder"
    [ -z "$(find . -name '.bpt-check*')" ] || die "--check leaves $(find . -name '.bpt-check*')"
}
one_error() { # TEXT: status 2 and this error, no other
    says "$1" out
    [ "$(grep -c '^error: ' out)" -eq 1 ] || die "not one error"
    [ "$(grep -cE '^bpt-train: --check has found 1 error$' err)" -eq 1 ] || die "not one verdict"
    grep -q '^hint: ' err || die "no hint"
    untouched
}

# ---- nothing wrong ----

run 0 "$train" --check
says 'rank  host' out
says '1 rank with Open MPI' out
for n in 1 3; do
    run 0 ranks $n "$train" --check --data data --output runs/x/y
    [ "$(grep -cE "^[0-9]+ +$host " out)" -eq $n ] || die "not a row for each of $n ranks"
    [ "$(grep -oE ' [0-9a-f]{16} ' out | sort -u | wc -l)" -eq 1 ] || die "not one dataset"
    says ': 0 errors' out
    says ' GB free' out
    untouched
done
# A whole command of training, with --check added to it.
run 0 ranks 2 "$train" "${common[@]}" --output runs/x --update sgwu --sync-every 3 --trace trace.json --check
untouched
[ ! -e trace.json ] || die "--check traces"

# ---- a rank that never comes ----

mkfifo never
printf '#!/bin/sh\n[ "$OMPI_COMM_WORLD_RANK" = 1 ] && read -r line <never\nexec "$@"\n' >late
chmod +x late
start_ranks 2 ./late "$train" --check --data data
await err 'warn: rank 0: MPI has not connected the 2 ranks after '
after=$(sed -nE 's/.* connected the 2 ranks after ([0-9]+) s.*/\1/p' err | head -n 1)
[ "$after" -lt 60 ] || die "it says so after $after s, as a training would"
kill "$pid"
await_exit

# ---- networks ----

# A connection that the process has from its start; with Open MPI 5 it has one to mpirun's server, which is no network.
python3 - "$train" <<'END' || die "the connection is not counted as it should be"
import os, socket, subprocess, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
    try:
        probe.connect(("192.0.2.1", 9))  # sends nothing: it finds out this machine's own address
    except OSError:
        raise SystemExit(0)
    own = probe.getsockname()[0]
server = socket.create_server((own, 0))
client = socket.create_connection(server.getsockname())
peer = server.accept()
def network(**more):
    said = subprocess.run([sys.argv[1], "--check"], pass_fds=[client.fileno()], env={**os.environ, **more},
                          stdout=subprocess.PIPE, check=True, text=True).stdout
    row = [line for line in said.splitlines() if line.startswith("0 ")][0]
    return row[said.splitlines()[0].index("network"):].split()[0]
port = server.getsockname()[1]
counted = network()
assert own.startswith("127.") or counted != "-", counted
assert network(PMIX_SERVER_URI9=f"made-up.0;tcp4://{own}:{port}") == "-"
assert network(PMIX_SERVER_URI9=f"made-up.0;tcp4://{own}:{port - 1}") == counted
END

# ---- datasets ----

cat >each <<'END'
#!/bin/sh
# Rank 1 has another dataset.
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && exec "$@" --data "$OTHER"
exec "$@" --data data
END
chmod +x each
"$ingest" glyphs --out other --split train --count 200 --seed 7 >out 2>err &&
    "$ingest" glyphs --out other --split test --count 50 >out 2>err || die "bpt-ingest glyphs"
OTHER=other run 2 ranks 3 ./each "$train" --check
one_error "error: rank 1 on $host: has another dataset than rank 0 on $host: "
says ' hint: copy the dataset' out
OTHER=nowhere run 2 ranks 3 ./each "$train" --check
one_error "error: rank 1 on $host: "
says 'nowhere' out
says ' hint: the dataset has to be at the same path on every host' out
cp -r data copy # elsewhere, and the same
OTHER=copy run 0 ranks 3 ./each "$train" --check
run 2 "$train" --check --data data --test-split validation
one_error 'validation'
says ' hint: its splits are: test, train; --test-split names one of them' out

# ---- what else is named ----

run 2 ranks 2 "$train" --check --data data --model nosuch.yaml
[ "$(grep -c "^error: rank [01] on $host: .*nosuch.yaml" out)" -eq 2 ] || die "not an error a rank"
sed 's/classes: 10/classes: 11/; s/outputs: classes/outputs: 11/' tiny.yaml >eleven.yaml
run 2 "$train" --check --data data --model eleven.yaml
one_error "error: rank 0 on $host: "
cat >each-model <<'END'
#!/bin/sh
# Rank 2 has another file of that name.
[ "$OMPI_COMM_WORLD_RANK" = 2 ] && cd elsewhere
exec "$@"
END
chmod +x each-model
mkdir elsewhere && sed 's/filters: 8/filters: 9/' tiny.yaml >elsewhere/tiny.yaml
run 2 ranks 3 ./each-model "$train" --check --data "$PWD/data" --model tiny.yaml
one_error "error: rank 2 on $host: has another model than rank 0 on $host"
run 2 "$train" --check --data data --model tiny.yaml --tuned nosuch-tuned.yaml
one_error 'nosuch-tuned.yaml'
run 2 "$train" --check --data data --model tiny.yaml --output runs/x --resume runs/nosuch
one_error 'runs/nosuch'

# Weights to begin with: read as by training, for the model in the shape of the dataset.
begun=(--check --data data --model tiny.yaml --init-weights)
run 0 "$train" "${common[@]}" --epochs 0.1 --output began
run 0 ranks 2 "$train" "${begun[@]}" began/model.safetensors
says ': 0 errors' out
run 2 ranks 2 "$train" "${begun[@]}" nosuch.safetensors
one_error "error: rank 0 on $host: "
says 'nosuch.safetensors' out
says ' hint: the final weights of a run are RUN/model.safetensors' out
run 2 "$train" "${begun[@]}" began/model.safetensors --model elsewhere/tiny.yaml
one_error 'tensor conv'
head -c 1000 began/model.safetensors >short.safetensors
run 2 "$train" "${begun[@]}" short.safetensors
one_error 'short.safetensors'
run 2 "$train" --check --init-weights nosuch.safetensors # no model, no dataset
one_error 'nosuch.safetensors'
# A job that goes on does not read them.
run 0 "$train" "${common[@]}" --epochs 0.2 --checkpoint-every 1 --output goes-on
run 0 "$train" "${begun[@]}" nosuch.safetensors --output goes-on --resume auto
run 2 "$train" "${begun[@]}" nosuch.safetensors --output began --resume auto
one_error 'nosuch.safetensors'

# A checkpoint is of this model, and sound in what each rank reads of it.
on=(--check --data data --resume auto)
run 2 "$train" "${on[@]}" --model elsewhere/tiny.yaml --output goes-on
one_error 'tensor conv'
run 0 ranks 2 "$train" "${common[@]}" --update allreduce --epochs 1 --checkpoint-every 1 --output both
run 0 ranks 2 "$train" "${on[@]}" --update allreduce --model tiny.yaml --output both
for state in both/checkpoints/step-*/rank-1.json; do echo >>"$state"; done
run 2 ranks 2 "$train" "${on[@]}" --update allreduce --model tiny.yaml --output both
one_error 'rank-1.json'
rm -r began goes-on both

# ---- what a job would refuse as it begins ----

run 2 ranks 2 "$train" --check --data data --model tiny.yaml --batch-size 201
one_error 'a step of 2 ranks takes 402 samples, split "train" has 200'
run 2 ranks 3 "$train" --check --data data --model tiny.yaml --update allreduce --batch-size 2
one_error 'a batch of 2 samples cannot be shared by 3 ranks'
run 2 ranks 2 "$train" --check --data data --model tiny.yaml --update local
one_error '--update local trains on one rank'
run 2 ranks 2 "$train" --check --data data --model tiny.yaml --placement nosuch
one_error 'nosuch'
says 'hint: --dry-run shows the layers' out
run 2 "$train" --check --data data --model tiny.yaml --augment crop=400
one_error 'crop'
run 2 "$train" --check --data data --model tiny.yaml --trace nosuch/trace.json
one_error 'nosuch'
# Its folder may be the one that the run makes, or one above it, and no other.
for trace in runs/x/trace.json runs/trace.json ./runs//x/trace.json; do
    run 0 "$train" --check --data data --model tiny.yaml --output runs/x --trace $trace
    untouched
done
run 2 "$train" --check --data data --model tiny.yaml --output runs/x --trace runs/y/trace.json
one_error 'runs/y/trace.json'

# ---- the run's folder ----

run 2 ranks 2 "$train" --check --data data --output /proc/nobody/writes/here
one_error "error: rank 0 on $host: cannot write to /proc"

run 2 "$train" --check --data data --output tiny.yaml/x
one_error "error: rank 0 on $host: cannot write to tiny.yaml"
run 0 "$train" "${common[@]}" --epochs 0.1 --output there
run 2 "$train" --check --data data --model tiny.yaml --output there
one_error "error: rank 0 on $host: the run folder there exists already"
says ' hint: choose another --output, go on' out
run 0 "$train" --check --data data --model tiny.yaml --output there --force
run 0 "$train" --check --data data --model tiny.yaml --output there --resume auto
run 2 "$train" --check --data data --model tiny.yaml --output there --resume auto --force
one_error '--force would remove there, which --resume goes on from'
run 2 "$train" --check --data data --model tiny.yaml --output there --init-weights there/model.safetensors --force
one_error '--force would remove there/model.safetensors, which --init-weights names'
run 0 "$train" --check --data data --model tiny.yaml --output runs/x --init-weights there/model.safetensors --force
rm -r there

# ---- cores ----

if [ "$(nproc)" -ge 2 ] && mpirun --bind-to core -np 1 true 2>/dev/null; then
    run 0 mpirun --bind-to core -np 1 "$train" --check --data data
    says "warning: rank 0 on $host: is bound to one core" out
    says 'hint: give mpirun the option --bind-to none' out
    says 'bound ' out
    run 0 mpirun --bind-to core -np 1 "$train" --check --data data --threads 1
    grep -q '^warning' out && die "a warning of what is wanted"
fi

# ---- options ----

fails_well 2 "$train" --check --dry-run
says '--dry-run is not used by --check'
printf 'dry-run: true\n' >dry.yaml # of a file what --check does not use is warned of
run 0 "$train" --config dry.yaml --check --data data --model tiny.yaml
says 'dry-run in the configuration is not used by --check'
says 'rank  host' out
run 2 "$train" --config dry.yaml --check --data data --test-split validation
one_error 'validation'
fails_well 2 "$train" --check --model tiny.yaml --bench 3
says '--check is not used by --bench'
fails_well 2 "$train" --replay runs/x --stall-timeout 3
says '--stall-timeout is not used by --replay'
fails_well 2 "$train" "${common[@]}" --output runs/x --stall-warning -1

# What cannot be printed is a failure.
if [ -e /dev/full ]; then
    "$train" --check >/dev/full 2>err
    [ $? -eq 1 ] || die "a full standard output is no failure"
fi
