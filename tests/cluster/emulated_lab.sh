#!/usr/bin/env bash
# The first process of a made-up cluster, in namespaces of its own: makes the network and the hosts, runs COMMAND, and
# takes all with it when it ends. Started by tests/cluster/emulate only.
#
# usage: emulated_lab.sh GROUP INPUT HOST=[RATE]... -- COMMAND...
#   GROUP   cgroup with one in it for each host, locked by emulate while it lives
#   INPUT   file descriptor that is COMMAND's standard input; our own brings signals to pass on, one a line
set -u
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
subnet=10.0.0 head_address=10.0.0.254
scratch=/dev/shm # a tmpfs of our own, so that no file of the machine changes

fail() { # WHAT
    echo "emulate: $1" >&2
    exit 1
}

make_head() { # HOST...
    hostname head
    mount -t tmpfs tmpfs $scratch || fail "no tmpfs on $scratch"
    mkdir $scratch/emulate
    ip link set lo up && ip link add switch type bridge forward_delay 0 &&
        ip addr add $head_address/24 dev switch && ip link set switch up || fail "no switch"
    {
        printf '127.0.0.1 localhost\n%s head\n' $head_address
        local i=0 host
        for host; do printf '%s.%d %s\n' $subnet $((++i)) "$host"; done
    } >$scratch/emulate/hosts
    mount --bind $scratch/emulate/hosts /etc/hosts || fail "no /etc/hosts of our own"
}

# Starts the process that a host's namespaces live by.
make_host() { # NAME; sets $holder
    local ready
    exec {ready}< <(exec unshare --net --uts --mount --ipc -- sh -c 'hostname "$1" &&
        mount -t tmpfs tmpfs /dev/shm && ip link set lo up && echo up && exec sleep infinity >/dev/null' sh "$1")
    holder=$!
    read -r _ <&"$ready" || fail "host $1 cannot be made"
    exec {ready}<&-
}

# Limits what a device sends. A bucket of 1 ms, at least 16 KB; a queue of 50 ms.
shape() { # RATE DEVICE [COMMAND...]: through such a command, where there is one
    [ -n "$1" ] || return 0
    local number=${1%?bit} exponent burst
    case $1 in *kbit) exponent=3 ;; *mbit) exponent=6 ;; *gbit) exponent=9 ;; esac
    burst=$(awk "BEGIN { b = ${number}e$exponent / 8000; printf \"%.0f\", (b > 16000) ? b : 16000 }")
    "${@:3}" tc qdisc add dev "$2" root tbf rate "$1" burst "$burst" latency 50ms
}

# Joins host $holder to the switch; both ends of the link are shaped.
connect() { # NUMBER NAME RATE
    local inside=(nsenter --target "$holder" --net --)
    ip link add "port$1" type veth peer name eth0 netns "$holder" &&
        ip link set "port$1" master switch up &&
        "${inside[@]}" ip addr add "$subnet.$1/24" dev eth0 &&
        "${inside[@]}" ip link set eth0 up &&
        shape "$3" "port$1" && shape "$3" eth0 "${inside[@]}" || fail "host $2 cannot be connected"
}

# What Open MPI has to know: where hosts are and how to reach them. Ranks on two hosts share no memory, so nothing but
# TCP; its own files go where each host has a place of its own.
export_mpi_settings() { # HOST...
    local host
    for host; do echo "$host slots=1"; done >$scratch/emulate/hostfile
    export PATH=$PATH:$here # of emulate-rsh: Open MPI splits the agent's path at blanks
    export OMPI_MCA_orte_default_hostfile=$scratch/emulate/hostfile OMPI_MCA_orte_tmpdir_base=$scratch \
        OMPI_MCA_plm=rsh OMPI_MCA_plm_rsh_agent=emulate-rsh OMPI_MCA_plm_rsh_no_tree_spawn=1 \
        OMPI_MCA_pml=ob1 OMPI_MCA_btl=tcp,self OMPI_MCA_btl_tcp_if_include=$subnet.0/24 \
        OMPI_MCA_oob_tcp_if_include=$subnet.0/24 OMPI_MCA_hwloc_base_binding_policy=none \
        OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
    # What starts ranks is PRRTE from Open MPI 5 on, which has names of its own.
    export PRTE_MCA_prte_default_hostfile=$scratch/emulate/hostfile PRTE_MCA_prte_tmpdir_base=$scratch \
        PRTE_MCA_plm=ssh PRTE_MCA_plm_ssh_agent=emulate-rsh PRTE_MCA_plm_ssh_no_tree_spawn=1 \
        PRTE_MCA_prte_if_include=eth0,switch PRTE_MCA_hwloc_default_binding_policy=none
}

# Reads signals and gives them to COMMAND's process group. Before it has one it would ignore them: so we wait.
relay_signals() { # PID
    local signal
    while read -r signal; do
        until kill -s "$signal" -- "-$1" 2>/dev/null; do sleep 0.01; done
    done
}

group=$1 input=$2
shift 2
names=() rates=()
while [ "$1" != -- ]; do
    names+=("${1%%=*}") rates+=("${1#*=}")
    shift
done
shift

# From here on emulate's death is ours. If it died before, nobody told us, but its lock is free.
flock --nonblock "$group" true && exit 1

make_head "${names[@]}"
BPT_EMULATED=
for i in "${!names[@]}"; do
    make_host "${names[i]}"
    connect $((i + 1)) "${names[i]}" "${rates[i]}"
    BPT_EMULATED+="${names[i]}=$holder "
done
export BPT_EMULATED BPT_EMULATED_GROUP=$group BPT_ON=$here/emulate-on BPT_QUOTA=$here/emulate-quota
export_mpi_settings "${names[@]}"

# A session of its own: what a terminal sends reaches COMMAND once, from emulate. We ignore it, COMMAND does not.
env --default-signal=INT,TERM,HUP,QUIT setsid -- "$@" <&"$input" {input}<&- &
command=$!
exec {input}<&-
relay_signals $command <&0 &
wait $command
