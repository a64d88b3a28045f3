#!/usr/bin/env bash
# However an emulate ends, nothing of it is left; and two at once know nothing of each other.
source "$(dirname "$0")/cluster.sh"

# What runs on a host: processes, also in the background, that are told apart from all others by how long they sleep.
cat >ranks <<'END'
#!/bin/sh
sleep "$1" &
touch "up.$(hostname)"
sleep "$1"
END
# A COMMAND that lives until it is told; some signals it takes otherwise.
cat >stubborn <<'END'
trap 'touch told; exit 75' USR1
trap 'touch heard' HUP
"$BPT_ON" one ./ranks "$1" &
"$BPT_ON" two ./ranks "$1" &
while :; do wait; done
END
chmod +x ranks

n_begun=0
begin() { # COMMAND...: starts it as emulate's, with one more argument; $pid, $mark
    mark=300$((++n_begun)).$$
    rm -f up.*
    start env --default-signal=INT,HUP "$emulate" --hosts one,two -- "$@" "$mark"
    await_file up.one
    await_file up.two
    [ -n "$(groups_of "$pid")" ] || die "no cgroup of $pid"
}

await_file() { # FILE
    local left=200
    until [ -e "$1" ]; do
        [ $((left--)) -gt 0 ] || die "no $1 after 20 s"
        sleep 0.1
    done
}

gone() { # nothing is left of $pid
    await_end "sleep $mark"
    [ -z "$(groups_of "$pid")" ] || die "left: $(groups_of "$pid")"
}

# COMMAND does not hear: it is killed after a while, which is looked at below.
start "$emulate" --hosts one -- bash -c 'trap "" TERM; touch deaf; while :; do sleep 1; done'
deaf=$pid
await_file deaf
kill -TERM "$deaf"

# Told to stop while it starts.
for seconds in 0.1 0.2 0.3 0.35 0.4 0.45 0.5 0.6; do
    start "$emulate" --hosts one,two -- sleep 3000
    sleep $seconds
    kill -TERM "$pid"
    finish 143 8
    [ -z "$(groups_of "$pid")" ] || die "left: $(groups_of "$pid")"
done

# Told to stop just when its cgroup is made.
mkdir early
cat >early/mktemp <<'END'
#!/bin/sh
PATH=${PATH#*:} mktemp "$@"
case $2 in */bpt-emulate-*)
    told=${2##*/bpt-emulate-}
    kill -TERM "${told%%-*}"
    ;;
esac
END
chmod +x early/mktemp
start env PATH="$PWD/early:$PATH" "$emulate" --hosts one -- sleep 3000
finish 143 8
[ -z "$(groups_of "$pid")" ] || die "left: $(groups_of "$pid")"

# Told to stop, mpirun says 1.
for signal in INT TERM; do
    begin "$mpirun" -np 2 ./ranks
    kill -s $signal "$pid"
    finish 1 20
    gone
done

# Other signals reach COMMAND too; a second one of those that end is the end.
begin bash stubborn
kill -USR1 "$pid"
finish 75 20
[ -e told ] || die "SIGUSR1 was not passed on"
gone
begin bash stubborn
kill -HUP "$pid"
await_file heard
kill -0 "$pid" || die "it ended although COMMAND did not"
kill -HUP "$pid"
finish 137 20
gone

# On a terminal COMMAND reads from it, and Ctrl-C reaches it once.
cat >terminal <<'END'
import os, pty, signal, sys
pid, terminal = pty.fork()
if pid == 0:
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # it is ignored in the background of a script
    os.execvp(sys.argv[1], sys.argv[1:])
answers = [(b"name?", b"world\n"), (b"hello world", b"\x03")]  # each once: a terminal full of lines holds Ctrl-C back
said = b""
while b"end" not in said:
    try:
        said += os.read(terminal, 1000)
    except OSError:
        sys.exit(f"it has ended and said {said}")
    if answers and answers[0][0] in said:
        os.write(terminal, answers.pop(0)[1])
assert said.count(b"got") == 1, said
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
# It says hello when what Ctrl-C ends is there: with that started later it would outlast what emulate grants it.
run 5 timeout 60 python3 terminal "$emulate" --hosts one -- bash -c '
    trap "echo got" INT; echo "name?"; read name
    "$BPT_ON" one sh -c "echo hello $name; exec sleep 20"; sleep 1; echo end; exit 5'

# Killed: all processes die at once. Its cgroups go with the next start, which leaves those of one that lives.
begin "$mpirun" -np 2 ./ranks
dead=$pid
kill -KILL "$pid"
finish 137
await_end "sleep $mark"
[ -n "$(groups_of "$dead")" ] || die "nothing was left to remove: the test says nothing"
begin bash stubborn
[ -z "$(groups_of "$dead")" ] || die "left: $(groups_of "$dead")"
# A busy machine's mpirun may have warnings.
"$emulate" --hosts one,two -- "$mpirun" -np 2 hostname >second 2>said || die "two at once: $(cat second said)"
[ "$(sort second | xargs)" = "one two" ] || die "two at once: $(cat second said)"
[ -n "$(groups_of "$pid")" ] || die "the second one removed the groups of the first"
pgrep -f "sleep $mark" >/dev/null || die "the second one ended the first"
kill -TERM "$pid"
finish 143 20
gone

pid=$deaf
finish 137 20
[ -z "$(groups_of "$pid")" ] || die "left: $(groups_of "$pid")"
