#!/usr/bin/env bash
# Hosts whose links are not alike: what bpt-train finds out about them, and who hosts the weights then.
source "$(dirname "$0")/cluster.sh"
make_data 1000 200
make_model
link_of() { # RANK: megabytes a second as logged
    sed -n "s/.*placement: rank $1 on .*, its link carries \([0-9.e+]*\) MB.*/\1/p" run/log.rank-0.txt
}
elements_of() { # SHARD; 0 where it is empty
    sed -n "s/.*placement: shard $1 of 3 .*elements \([0-9]*\)\.\.\([0-9]*\) .*/\2 \1/p" run/log.rank-0.txt |
        awk '{ n = $1 - $2 + 1 } END { print n + 0 }'
}
run 0 "$emulate" --hosts a,b,c --link 1gbit --link-of c=2mbit -- \
    "$mpirun" -np 3 "$train" "${common[@]}" --update agwu --epochs 0.5 --sync-every 1 --output run
for rank in 0 1 2; do [ -n "$(link_of $rank)" ] || die "nothing is known of the link of rank $rank"; done
# 2 Mbit/s are 0.25 MB/s, but for what the bucket holds at the start.
awk -v a="$(link_of 0)" -v b="$(link_of 1)" -v c="$(link_of 2)" 'BEGIN { exit !(c < 0.5 && a > c && b > c) }' ||
    die "links of $(link_of 0), $(link_of 1) and $(link_of 2) MB/s"
[ "$(elements_of 2)" -lt "$(elements_of 0)" ] && [ "$(elements_of 2)" -lt "$(elements_of 1)" ] ||
    die "rank 2 hosts $(elements_of 2) of the weights, the others $(elements_of 0) and $(elements_of 1)"
# Without measurements nothing is said of links.
run 0 "$emulate" --hosts a,b --link 1gbit -- "$mpirun" -np 2 "$train" "${common[@]}" --update agwu --epochs 0.5 \
    --calibrate 0 --output without
! grep -q "its link carries" without/log.rank-0.txt || die "a link is known that was not measured"
