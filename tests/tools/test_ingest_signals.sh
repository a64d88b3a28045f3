#!/usr/bin/env bash
# Ingestions that are stopped: SIGKILL at 20 random moments leaves the dataset sound, with or without
# the whole new split; SIGTERM, SIGINT and SIGHUP end in order. Two at a time: one gets in.
. "$(dirname "$0")/ingest_help.sh"
data=$work/data
count=6000
expect 0 '' glyphs --out "$work/before" --split train --count 300
cp -r "$work/before" "$data"

# begin DATASET SPLIT: starts an endless ingestion; $pid, which writes to the dataset by now
begin() {
    local file=$1/data.mdb before left=1200
    before=$(stat -c %y "$file" 2>/dev/null)
    # A shell without job control lets background commands ignore SIGINT; env undoes that.
    env --default-signal=INT,HUP "$ingest" glyphs --out "$1" --split "$2" --count 100000000 \
        >/dev/null 2>"$work/said" &
    pid=$!
    until [ "$(stat -c %y "$file" 2>/dev/null)" != "$before" ] && [ "$(stat -c %s "$file")" -gt 65536 ]; do
        [ $((left--)) -gt 0 ] || break
        sleep 0.05
    done
    [ $left -ge 0 ] || failed "$1: nothing is written in a minute: $(cat "$work/said")"
}

# How long an undisturbed one takes, in milliseconds.
start=$(date +%s%N)
expect 0 '' glyphs --out "$data" --split timed --count $count
took=$((($(date +%s%N) - start) / 1000000 + 1))

RANDOM=20
with=0
for ((i = 0; i < 20; i++)); do
    wait=$((RANDOM * took / 32768))
    rm -rf "$data"
    cp -r "$work/before" "$data"
    "$ingest" glyphs --out "$data" --split test --count $count >/dev/null 2>&1 &
    pid=$!
    sleep "$(printf '%d.%03d' $((wait / 1000)) $((wait % 1000)))"
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    "$ingest" verify "$data" >/dev/null 2>&1 || failed "killed after $wait ms: verify: status $?"
    [ "$(count_of "$data" train)" = 300 ] || failed "killed after $wait ms: train is not there"
    test=$(count_of "$data" test)
    [ -z "$test" ] || [ "$test" = $count ] || failed "killed after $wait ms: $test images of test"
    [ -z "$test" ] || with=$((with + 1))
done
echo "of 20 killed within $took ms, $with found the split whole"

# The same where there was no dataset before.
for ((i = 0; i < 5; i++)); do
    "$ingest" glyphs --out "$work/new" --split train --count $count >/dev/null 2>&1 &
    pid=$!
    sleep "$(printf '0.%03d' $((RANDOM * (took < 900 ? took : 900) / 32768)))"
    kill -KILL $pid 2>/dev/null
    wait $pid 2>/dev/null
    new=$(count_of "$work/new" train)
    [ -z "$new" ] || [ "$new" = $count ] || failed "a killed first ingestion left $new images"
    [ -n "$new" ] || expect 3 "$work/new" verify "$work/new"
    expect 0 "train: $count images" glyphs --out "$work/new" --split train --force --count $count
    expect 0 "$count images checked" verify "$work/new"
    rm -rf "$work/new"
done

# Its pages are sound, but it is not whole: that is no success.
begin "$work/new" train
kill -KILL $pid
wait $pid 2>/dev/null
expect 3 'has no split yet' verify "$work/new"
expect 3 'hint: its first ingestion was stopped' verify "$work/new"
expect 3 'has no split yet' info "$work/new"

# SIGTERM, SIGINT and, of a terminal that is closed, SIGHUP: status 1, a clear word, nothing half-written.
for signal in TERM INT HUP; do
    begin "$data" big
    kill -$signal $pid
    wait $pid
    status=$?
    [ $status -eq 1 ] || failed "SIG$signal: status $status"
    grep -q 'stopped by' "$work/said" || failed "SIG$signal: $(cat "$work/said")"
    [ -z "$(count_of "$data" big)" ] || failed "SIG$signal: a split was left"
    expect 0 'is sound' verify "$data"
done

# In the background of a script SIGINT is ignored, and stays so. Standard files that are closed are /dev/null, and not the
# first files that the program opens.
"$ingest" glyphs --out "$work/apart" --split big --count 100000000 <&- >&- 2>&- &
pid=$!
left=1200
until [ -s "$work/apart/data.mdb" ] || [ $((left--)) -eq 0 ]; do sleep 0.05; done
for fd in 0 1 2; do
    [ "$(readlink /proc/$pid/fd/$fd)" = /dev/null ] || failed "file $fd: $(readlink /proc/$pid/fd/$fd)"
done
ignored=$(awk '/^SigIgn/{print $2}' /proc/$pid/status)
[ $((16#$ignored & 2)) -ne 0 ] || failed "SIGINT was ignored, and is not any more: $ignored"
kill -INT $pid
kill -TERM $pid
wait $pid
[ $? -eq 1 ] || failed "SIGTERM: status $?"
[ ! -e "$work/apart" ] || failed "a first ingestion that was stopped leaves something"

# A second writer is told so; readers are not disturbed.
begin "$data" big
said=$("$ingest" glyphs --out "$data" --split other --count 10 --force 2>&1)
status=$?
[ $status -eq 1 ] && [[ $said == *"being written by another process"* ]] ||
    failed "second writer: status $status: $said"
expect 0 'is sound' verify "$data"
kill -TERM $pid
wait $pid
expect 0 'other: 10 images' glyphs --out "$data" --split other --count 10 --force
expect 0 'is sound' verify "$data"
finish
