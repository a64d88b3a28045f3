# What the tests of made-up clusters share; sourced by them.
source "$(dirname "${BASH_SOURCE[0]}")/../tools/common.sh"
emulate=$(cd "$here/../cluster" && pwd)/emulate
mpirun=${BPT_MPIRUN%% *}

"$emulate" --hosts probe -- true >out 2>err
case $? in
0) ;;
77) skip "$(head -n 1 err)" ;;
*) die "a cluster of one host" ;;
esac

groups_of() { # PID: the cgroups of an emulate
    find /sys/fs/cgroup -maxdepth 2 -name "bpt-emulate-$1-*"
}

await_end() { # TEXT: until no process has the text in its command line
    local left=100
    while pgrep -f -- "$1" >/dev/null; do
        [ $((left--)) -gt 0 ] || die "still there: $(pgrep -af -- "$1")"
        sleep 0.1
    done
}
