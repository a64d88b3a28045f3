#!/usr/bin/env bash
# What a made-up cluster looks like from inside: names, places of ranks, statuses; and what is refused.
source "$(dirname "$0")/cluster.sh"

# Each host has its own name and its own memory to share; folder, input and output are COMMAND's.
echo hello >input
"$emulate" --hosts one:cpu=0.5,two -- bash -c '
    hostname; cat input -; "$BPT_ON" two hostname; "$BPT_ON" one cat input
    "$BPT_ON" one touch /dev/shm/mine; "$BPT_ON" two ls /dev/shm' <input >out 2>err ||
    die "things on hosts"
printf '%s\n' head hello hello two hello >wanted
cmp out wanted || die "the hosts are not as they should be"

# A host's quota can be changed while it runs.
cat >compute <<'END'
import time
begin, used = time.monotonic(), time.process_time()
while time.process_time() < used + 0.2:
    pass
print(time.monotonic() - begin)
END
run 0 "$emulate" --hosts one:cpu=0.9 -- \
    bash -c '"$BPT_ON" one python3 compute; "$BPT_QUOTA" one 0.05; "$BPT_ON" one python3 compute'
python3 -c 'before, after = map(float, open("out")); assert after > 3, (before, after)' || die "the quota is not another one"
run 2 "$emulate" --hosts one -- bash -c '"$BPT_QUOTA" two 0.5'
says 'no host "two"'
for cores in 0 -1 x 0.001 ''; do
    run 2 "$emulate" --hosts one -- bash -c '"$BPT_QUOTA" one "$0"' "$cores"
    says 'is no number of cores'
done

# Pinned hosts have one core each, the same only where they fit on it together.
if [ "$(nproc)" -ge 2 ]; then
    run 0 "$emulate" --pin --hosts one:cpu=0.3,two:cpu=0.7,three:cpu=0.9 -- "$mpirun" -np 3 sh -c \
        'echo "$(hostname) $(sed -n "s/^Cpus_allowed_list:[[:space:]]*//p" /proc/self/status)"'
    python3 - out <<'END' || die "hosts are pinned otherwise"
import sys
core = dict(map(str.split, open(sys.argv[1])))
assert all(c.isdigit() for c in core.values()) and core["two"] != core["three"] != core["one"], core
END
fi
run 2 "$emulate" --pin --hosts one:cpu=0.3,two -- true
says '--pin: two has no CORES'
run 2 "$emulate" --pin --hosts one:cpu=0.3,two:cpu=1.5 -- true
says '--pin: no core has 1.5 left for two'

# Ranks are on the hosts in their order, one on each and no more, and reach each other by MPI's own means.
run 0 "$emulate" --hosts one,two,three -- "$mpirun" -np 3 sh -c 'echo $OMPI_COMM_WORLD_RANK $(hostname)'
[ "$(sort out | xargs)" = "0 one 1 two 2 three" ] || die "ranks are elsewhere"
run 0 "$emulate" --hosts one,two,three -- "$mpirun" --host three hostname
[ "$(cat out)" = three ] || die "the rank is not on the host asked for"
run 1 "$emulate" --hosts one,two -- "$mpirun" -np 3 hostname
says "not enough slots"

# Statuses of COMMAND, of what runs on a host and of a rank.
run 9 "$emulate" --hosts one -- bash -c 'exit 9'
run 143 "$emulate" --hosts one -- bash -c 'kill -TERM $$'
run 8 "$emulate" --hosts one -- bash -c '"$BPT_ON" one sh -c "exit 8"'
run 7 "$emulate" --hosts one,two -- "$mpirun" -np 2 sh -c '[ "$(hostname)" = one ] || exit 7'
run 127 "$emulate" --hosts one -- ./no-such-command
run 2 "$emulate" --hosts one -- bash -c '"$BPT_ON" two true'
says 'no host "two"'

refused() { # WORDS ARGUMENT...
    local words=$1
    shift
    run 2 "$emulate" "$@"
    says "$words"
    says "hint: "
}
refused 'no hosts' -- true
refused 'no COMMAND' --hosts one
refused 'no COMMAND' --hosts one --
refused 'unknown argument "true"' --hosts one true
refused 'needs a value' --hosts
refused '"one" comes twice' --hosts one,two,one -- true
refused '"head" is taken' --hosts head -- true
refused '"" is no name' --hosts :cpu=1 -- true
refused '"One" is no name' --hosts One -- true
refused '"../up" is no name' --hosts ../up -- true
refused 'empty part' --hosts one,,two -- true
refused 'empty part' --hosts '' -- true
refused 'has a blank' --hosts 'one, two' -- true
refused '"cpu=" behind one' --hosts one:cpu= -- true
refused '"gpu=1" behind one' --hosts one:gpu=1 -- true
refused '"cpu=1e1" behind one' --hosts one:cpu=1e1 -- true
refused 'one has 0 cores' --hosts one:cpu=0 -- true
refused '--link: "100" is no rate' --hosts one --link 100 -- true
refused '--link: "0mbit" is no rate' --hosts one --link 0mbit -- true
refused '"100 mbit" is no rate' --hosts one --link '100 mbit' -- true
refused 'no host "two"' --hosts one --link-of two=1mbit -- true
refused '"one" is no HOST=RATE' --hosts one --link-of one -- true
refused '"one" comes twice' --hosts one --link-of one=1mbit,one=2mbit -- true

run 0 "$emulate" --hosts one:cpu=9999,two:cpu=0.5 -- true
says "warning: the hosts have 9999.5 cores together"
run 0 "$emulate" --help
says "usage: " out

# Without root; the copy is where anybody may read it.
mkdir copy && cp "$(dirname "$emulate")"/emulate* copy/ && chmod -R a+rX . || die "a copy"
run 77 setpriv --reuid 65534 --regid 65534 --clear-groups copy/emulate --hosts one -- true
says "only root"
