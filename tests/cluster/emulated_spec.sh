# The specification of a made-up cluster, for tests/cluster/emulate, which has stop() and sources this.
hosts=()              # names, in the order given
declare -A cpu_of=()  # cores, as given; absent: no quota
declare -A link_of=() # rate of a host's own link, as given; absent: $link
link=                 # rate of all other links; empty: not shaped
pin=                  # not empty: hosts keep to cores of their own
pinned=               # HOST=CORE of each, in words, CORE a number of this machine's
command=()
max_hosts=200 # their addresses are 10.0.0.1 to 10.0.0.200

check_rate() { # OPTION RATE
    [[ $2 =~ ^[0-9]+(\.[0-9]+)?[kmg]bit$ ]] && awk "BEGIN { exit !(${2%?bit} > 0 && ${2%?bit} <= 100000) }" ||
        stop 2 "$1: \"$2\" is no rate" "a number with its unit, such as 800kbit, 100mbit, 2.5gbit"
}

add_host() { # NAME[:cpu=CORES]
    local name=${1%%:*} rest=${1#*:}
    [[ $name =~ ^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$ && ! $name =~ ^[0-9]+$ ]] ||
        stop 2 "--hosts: \"$name\" is no name of a host" "lower-case letters, digits and inner hyphens"
    case $name in head | localhost) stop 2 "--hosts: the name \"$name\" is taken" "see --help" ;; esac
    [[ " ${hosts[*]} " != *" $name "* ]] ||
        stop 2 "--hosts: \"$name\" comes twice" "each host has a name of its own"
    hosts+=("$name")
    [[ $1 == *:* ]] || return
    [[ $rest =~ ^cpu=([0-9]+(\.[0-9]+)?)$ ]] ||
        stop 2 "--hosts: \"$rest\" behind $name is not understood" "$name:cpu=0.5 is a host with half a core"
    rest=${rest#cpu=}
    awk "BEGIN { exit !($rest >= 0.01 && $rest <= 10000) }" ||
        stop 2 "--hosts: $name has $rest cores" "from 0.01 to 10000"
    cpu_of[$name]=$rest
}

split() { # OPTION LIST: its parts to $parts; none may be empty
    [[ ,$2, != *,,* ]] || stop 2 "$1: \"$2\" has an empty part" "parts are separated by one comma"
    [[ $2 != *[[:space:]]* ]] || stop 2 "$1: \"$2\" has a blank" "parts are separated by one comma"
    IFS=, read -ra parts <<<"$2"
}

add_to_spec() { # OPTION VALUE
    local parts part
    case $1 in
    --hosts)
        split "$1" "$2"
        for part in "${parts[@]}"; do add_host "$part"; done
        ;;
    --link)
        check_rate "$1" "$2"
        link=$2
        ;;
    --link-of)
        split "$1" "$2"
        for part in "${parts[@]}"; do
            [[ $part == ?*=* ]] || stop 2 "--link-of: \"$part\" is no HOST=RATE" "such as c=100mbit"
            check_rate "$1" "${part#*=}"
            [ -z "${link_of[${part%%=*}]-}" ] ||
                stop 2 "--link-of: \"${part%%=*}\" comes twice" "a host has one link"
            link_of[${part%%=*}]=${part#*=}
        done
        ;;
    esac
}

# Gives each host a core: the largest first, each the core that has most left of it.
pin_hosts() {
    local host
    for host in "${hosts[@]}"; do
        [ -n "${cpu_of[$host]-}" ] || stop 2 "--pin: $host has no CORES" "such as $host:cpu=0.5"
    done
    pinned=$(for host in "${hosts[@]}"; do echo "${cpu_of[$host]} $host"; done | sort -s -k1,1gr |
        awk -v allowed="$(cores_allowed | xargs)" '
            BEGIN { n = split(allowed, core, " "); for (i = 1; i <= n; i++) left[i] = 1 }
            {
                best = 1
                for (i = 2; i <= n; i++) if (left[i] > left[best] + 1e-9) best = i
                left[best] -= $1
                if (left[best] < -1e-9) { print $2; exit 1 }
                print $2 "=" core[best]
            }') ||
        stop 2 "--pin: no core has ${cpu_of[${pinned##*$'\n'}]} left for ${pinned##*$'\n'}" \
            "each host has to fit on one of the cores, beside those that are on it"
}

cores_allowed() { # numbers of processors, one a line; of those that are threads of one core one before all others
    local range cpu siblings first
    for range in $(sed -n 's/^Cpus_allowed_list:\t*//p' /proc/self/status | tr , ' '); do
        for cpu in $(seq "${range%-*}" "${range#*-}"); do
            siblings=$(cat "/sys/devices/system/cpu/cpu$cpu/topology/thread_siblings_list" 2>/dev/null)
            first=${siblings%%[,-]*}
            echo "$((${first:-$cpu} != cpu)) $cpu"
        done
    done | sort -s -n -k1,1 | cut -d ' ' -f 2
}

# Checks what only the whole can tell.
check_spec() {
    local host sum
    [ ${#hosts[@]} -gt 0 ] || stop 2 "no hosts" "--hosts a:cpu=0.5,b"
    [ ${#hosts[@]} -le $max_hosts ] || stop 2 "--hosts: ${#hosts[@]} of them" "at most $max_hosts"
    for host in "${!link_of[@]}"; do
        [[ " ${hosts[*]} " == *" $host "* ]] || stop 2 "--link-of: there is no host \"$host\"" "see --hosts"
    done
    sum=$(printf '%s\n' "${cpu_of[@]}" | awk '{ sum += $1 } END { print sum + 0 }')
    awk "BEGIN { exit !($sum > $(nproc) + 1e-9) }" &&
        echo "emulate: warning: the hosts have $sum cores together, this machine $(nproc): they will not get them all" >&2
    [ -z "$pin" ] || pin_hosts
}
