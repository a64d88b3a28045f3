#!/usr/bin/env bash
# folder, merge and split killed at random moments: what was there before is sound, the new split whole or absent, and the
# same command again makes what an undisturbed one makes.
. "$(dirname "$0")/ingest_help.sh"
cd "$work" || exit 1
"$ingest" glyphs --out before --split old --count 200 >/dev/null 2>&1 || failed "glyphs"
"$ingest" glyphs --out a --split train --count 20000 >/dev/null 2>&1 || failed "glyphs"
"$ingest" glyphs --out b --split train --count 20000 --seed 2 >/dev/null 2>&1 || failed "glyphs"
"$ingest" glyphs --out few --split train --count 1500 >/dev/null 2>&1 || failed "glyphs"
"$ingest" export few --split train --to png >/dev/null 2>&1 || failed "export"
RANDOM=5

# kill_often NAME COUNT ARGUMENT...: the command, which writes COUNT images to split new of data, and maybe others to split rest
kill_often() {
    local name=$1 count=$2 start took wait i n whole=0
    shift 2
    rm -rf data && cp -r before data
    start=$(date +%s%N)
    "$ingest" "$@" >/dev/null 2>&1 || failed "$name: $("$ingest" "$@" 2>&1)"
    took=$((($(date +%s%N) - start) / 1000000 + 1))
    "$ingest" info data --json >undisturbed
    for ((i = 0; i < 12; i++)); do
        rm -rf data && cp -r before data
        "$ingest" "$@" >/dev/null 2>&1 &
        wait=$((RANDOM * took / 32768))
        sleep "$(printf '%d.%03d' $((wait / 1000)) $((wait % 1000)))"
        kill -KILL $! 2>/dev/null
        wait $! 2>/dev/null
        "$ingest" verify data >/dev/null 2>&1 || failed "$name killed after $wait ms: verify: status $?"
        [ "$(count_of data old)" = 200 ] || failed "$name killed after $wait ms: old is not there"
        n=$(count_of data new)
        [ -z "$n" ] || [ "$n" = "$count" ] || failed "$name killed after $wait ms: $n images of new"
        [ -z "$n" ] || whole=$((whole + 1))
        "$ingest" "$@" --force >/dev/null 2>&1 || failed "$name killed after $wait ms cannot be done again"
        "$ingest" info data --json | cmp -s - undisturbed || failed "$name killed after $wait ms and done again: other data"
        "$ingest" verify data >/dev/null 2>&1 || failed "$name killed after $wait ms and done again: not sound"
    done
    echo "$name: of 12 killed within $took ms, $whole found the split whole"
}

kill_often folder 1500 folder png --out data --split new
kill_often merge 40000 merge a b --from train --out data --split new
kill_often split 2000 split a --from train --out data --held-out new --split rest
finish
