#!/usr/bin/env bash
# Hosts whose links are not alike: what bpt-train finds out about them, and who hosts the weights then.
source "$(dirname "$0")/cluster.sh"
make_data 1000 200
make_model
link_of() { # RUN RANK: megabytes a second as logged
    sed -n "s/.*global weights: rank $2 on .*, its link carries \([0-9.e+]*\) MB.*/\1/p" "$1/log.rank-0.txt"
}
elements_of() { # RUN SHARD; 0 where it is empty
    sed -n "s/.*global weights: shard $2 of 3 .*elements \([0-9]*\)\.\.\([0-9]*\) .*/\2 \1/p" "$1/log.rank-0.txt" |
        awk '{ n = $1 - $2 + 1 } END { print n + 0 }'
}
# 2 Mbit/s are 0.25 MB/s, but for what the bucket holds at the start. Hosts of a part of a core each are equally fast also
# where other tests run: one that makes half of all pushes would host the weights whatever its link.
one_slow_host() { # HOST RANK
    local run=slow-$1 rank
    run 0 "$emulate" --hosts a:cpu=0.3,b:cpu=0.3,c:cpu=0.3 --link 1gbit --link-of "$1=2mbit" -- \
        "$mpirun" -np 3 "$train" "${common[@]}" --update agwu --epochs 0.5 --sync-every 1 --output "$run"
    [ -n "$(link_of "$run" "$2")" ] || die "nothing is known of the link of rank $2"
    for rank in 0 1 2; do
        [ "$rank" != "$2" ] || continue
        awk -v slow="$(link_of "$run" "$2")" -v fast="$(link_of "$run" $rank)" \
            'BEGIN { exit !(slow < 0.5 && fast > slow) }' ||
            die "links of $(link_of "$run" "$2") MB/s, the slow one, and $(link_of "$run" $rank)"
        [ "$(elements_of "$run" "$2")" -lt "$(elements_of "$run" $rank)" ] ||
            die "rank $2 hosts $(elements_of "$run" "$2") of the weights, rank $rank $(elements_of "$run" $rank)"
    done
}
one_slow_host c 2
! variants || one_slow_host a 0
# Without measurements nothing is said of links.
run 0 "$emulate" --hosts a,b --link 1gbit -- "$mpirun" -np 2 "$train" "${common[@]}" --update agwu --epochs 0.5 \
    --calibrate 0 --output without
! grep -q "its link carries" without/log.rank-0.txt || die "a link is known that was not measured"
