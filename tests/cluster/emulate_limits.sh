#!/usr/bin/env bash
# Quotas of processors and links hold as upper bounds; what else the machine does can only make it less.
source "$(dirname "$0")/cluster.sh"

# Two processes that compute for 2 s; writes the cores taken on average to a file of the host, since what several print at
# once mpirun may mix.
cat >busy <<'END'
import os, resource, socket, time
def used():
    both = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(u.ru_utime + u.ru_stime for u in both)
begin, before = time.monotonic(), used()
child = os.fork()
while time.monotonic() - begin < 2:
    pass
if child == 0:
    os._exit(0)
os.wait()
with open("taken-" + socket.gethostname(), "w") as file:
    file.write(str((used() - before) / (time.monotonic() - begin)))
END
run 0 "$emulate" --hosts one:cpu=0.4,two:cpu=0.2,three:cpu=0.09 -- "$mpirun" -np 3 python3 busy
python3 - <<'END' || die "a quota of processor time does not hold"
taken = {host: float(open("taken-" + host).read()) for host in ("one", "two", "three")}
print(taken)
for host, cores in {"one": 0.4, "two": 0.2, "three": 0.09}.items():
    assert 0.005 < taken[host] <= 1.15 * cores, (host, taken)
END

# A rank has no more threads than the quota has processors, but one for a part.
run 0 "$emulate" --hosts one:cpu=0.4 -- "$mpirun" -np 1 --bind-to none \
    "$train" --model lenet --batch-size 4 --bench 1
grep -q '"threads": 1,' out || die "$(nproc) threads where 0.4 of a processor are left"

# Sends so many bytes to the host that it is given; there they are counted. Prints Mbit/s.
cat >receive <<'END'
import socket, sys
with socket.create_server(("", 4000)) as server:
    print("ready", flush=True)
    peer, _ = server.accept()
    while peer.recv(1 << 20):
        pass
    peer.sendall(b"all")
END
cat >send <<'END'
import socket, sys, time
host, n_bytes = sys.argv[1], int(sys.argv[2])
with socket.create_connection((host, 4000)) as peer:
    begin = time.monotonic()
    peer.sendall(bytes(n_bytes))
    peer.shutdown(socket.SHUT_WR)
    assert peer.recv(3, socket.MSG_WAITALL) == b"all"
    print(8e-6 * n_bytes / (time.monotonic() - begin))
END
cat >transfers <<'END'
for pair in one:two one:three three:one; do
    exec {ready}< <(exec "$BPT_ON" "${pair#*:}" python3 receive)
    read -r _ <&$ready
    echo "$pair $("$BPT_ON" "${pair%:*}" python3 send "${pair#*:}" 4000000)"
    exec {ready}<&-
done
END
run 0 "$emulate" --hosts one,two,three --link 80mbit --link-of three=20mbit -- bash transfers
cat out
python3 - out <<'END' || die "the speed of a link does not hold"
import sys
speed = {pair: float(mbit) for pair, mbit in map(str.split, open(sys.argv[1]))}
assert 1 < speed["one:two"] <= 80 * 1.05, speed
assert 1 < speed["one:three"] <= 20 * 1.05, speed  # down
assert 1 < speed["three:one"] <= 20 * 1.05, speed  # up
END
