#!/usr/bin/env bash
# --resume: an ingestion that was stopped (killed, told to end, a bad image) goes on behind its last whole chunk and comes
# to what an undisturbed one makes; other options or another source are refused.
. "$(dirname "$0")/ingest_help.sh"
cd "$work" || exit 1

# 300 images, which become 256 KiB each: 63 of them make a chunk.
"$ingest" glyphs --out g --split s --count 300 >/dev/null 2>&1 || failed "glyphs"
"$ingest" export g --split s --to png >/dev/null 2>&1 || failed "export"
size=(--resize 512 512)
first=(folder png --out data --split train "${size[@]}")

# same A B: the records of split train, and all that describes them
same() {
    "$ingest" verify "$1" >/dev/null 2>&1 || return 1
    [ "$("$ingest" info "$1" | tail -n +2)" = "$("$ingest" info "$2" | tail -n +2)" ] || return 1
    rm -rf x y
    "$ingest" export "$1" --split train --to x --format idx >/dev/null 2>&1
    "$ingest" export "$2" --split train --to y --format idx >/dev/null 2>&1
    diff -r x y >/dev/null
}

# stop SIGNAL ARGUMENT...: begins and stops it when a chunk is stored, $said
stop() {
    local signal=$1 left=1200 before pid
    shift
    before=$(stat -c %s data/data.mdb 2>/dev/null || echo 0)
    env --default-signal=INT "$ingest" "$@" --threads 1 >said 2>&1 &
    pid=$!
    until [ "$(stat -c %s data/data.mdb 2>/dev/null || echo 0)" -gt $((before + (17 << 20))) ]; do
        [ $((left--)) -gt 0 ] && kill -0 $pid 2>/dev/null || break
        sleep 0.01
    done
    kill -"$signal" $pid 2>/dev/null
    wait $pid
    status=$?
    said=$(cat said)
}

expect 0 'train: 300 images' folder png --out whole --split train "${size[@]}"

# ---- killed; the same command with --resume ----
stop KILL "${first[@]}"
[ $status -eq 137 ] || failed "not killed: $status: $said"
expect 3 '--resume to go on' info data
expect 0 'train: goes on behind ' "${first[@]}" --resume
same data whole || failed "killed and resumed: other data"
expect 2 'has a split "train" already' "${first[@]}" --resume

# ---- told to end: says what is kept; any number of threads ----
rm -rf data
stop TERM "${first[@]}"
[ $status -eq 1 ] && [[ $said == *"the same command with --resume goes on behind the first "* ]] ||
    failed "SIGTERM: status $status: $said"
expect 0 'train: goes on behind ' "${first[@]}" --resume --threads 3
same data whole || failed "stopped and resumed: other data"

# ---- something else is refused, and does not harm it ----
rm -rf data
stop KILL "${first[@]}"
expect 2 'it had "--resize 512 512", this one has "--resize 512 500"' folder png --out data --split train --resize 512 500 \
    --resume
cp data/writer.lock terms
sed 's/^images made by rules [0-9]*$/images made by rules 1/' terms >data/writer.lock
expect 2 'it had "images made by rules 1", this one has "images made by rules 2"' "${first[@]}" --resume
cat terms >data/writer.lock
expect 2 'hint: repeat that command with --resume' folder png --out data --split other "${size[@]}" --resume
expect 2 'it had "no --encoded", this one has "--encoded"' "${first[@]}" --encoded --resume
cp png/1/"$(ls png/1 | head -1)" png/1/zzz.png
expect 3 'the source is not what it was' "${first[@]}" --resume
expect 3 'it was "300 images' "${first[@]}" --resume
mv png/1/zzz.png .
mv png/2 png.2
expect 3 'the source is not what it was' "${first[@]}" --resume
mv png.2 png/2
other=$(ls png/1 | head -1)
cp -r png old.png
expect 0 'train: goes on behind ' "${first[@]}" --resume
same data whole || failed "refused and resumed: other data"
rm -rf data
stop KILL "${first[@]}"
cp zzz.png png/1/"$other" # which is stored by now
expect 3 "png/1/$other is stored, and was changed after" "${first[@]}" --resume
cp -p zzz.png older.png
touch -d '2001-01-01' older.png
mv older.png png/1/"$other" # an older file takes its place
expect 3 "png/1/$other is stored, and was changed after" "${first[@]}" --resume
cp -p old.png/1/"$other" png/1/"$other" # too late: it was another one meanwhile
expect 3 "png/1/$other is stored, and was changed after" "${first[@]}" --resume
rm -r old.png

# ---- without --resume: begins anew, and says what that costs ----
rm -rf data
stop KILL "${first[@]}"
expect 0 '--resume goes on with such' "${first[@]}"
same data whole || failed "begun anew: other data"

# ---- nothing to resume ----
rm -rf data
expect 0 'train: there is nothing to resume: begins anew' "${first[@]}" --resume
same data whole || failed "nothing to resume: other data"

# ---- a bad image ends it; passed over when it goes on; the report is that of one that was not stopped ----
rm -rf data whole
: >png/0/000.png
: >png/7/zzz.png
bad=(folder png --split train "${size[@]}" --skip-bad)
expect 0 '2 bad images passed over' "${bad[@]}" report.whole --out whole
mv png/0/000.png late.png
expect 3 'is empty' "${first[@]}" --threads 2
expect 3 'the same command with --resume goes on behind the first ' "${first[@]}" --resume
expect 0 '1 bad image passed over, listed in report' "${first[@]}" --resume --skip-bad report
grep -q 'png/7/zzz.png' report || failed "the report: $(cat report)"
mv late.png png/0/000.png
rm -rf data
stop KILL "${bad[@]}" report --out data
expect 2 'has passed over a bad image: png/0/000.png' "${first[@]}" --resume
expect 0 '2 bad images passed over, listed in report' "${bad[@]}" report --out data --resume
cmp -s report report.whole || failed "another report: $(cat report)"
same data whole || failed "with bad images: other data"

# ---- a shard that becomes shorter ends it; --resume would refuse what it is now, and is not offered ----
# The first one is long, so that it is still read when its first chunk is seen.
rm -rf data
python3 - <<'END' || failed "no shards"
import glob, tarfile
names = sorted(glob.glob("png/?/[0-9]*.png"))[1:]
for shard, part in enumerate((names[:250] * 4, names[250:])):
    with tarfile.open(f"shard-{shard}.tar", "w") as tar:
        for number, name in enumerate(part):
            key = f"{number:04}"
            open("cls", "w").write(name[4])
            tar.add(name, key + ".png")
            tar.add("cls", key + ".cls")
END
cp shard-1.tar whole.tar
shards=(webdataset shard-0.tar shard-1.tar --out data --split train "${size[@]}")
# Where all has been read before the shard is cut, once more.
for _ in 1 2 3 4 5 6; do
    rm -rf data
    cp whole.tar shard-1.tar
    "$ingest" "${shards[@]}" --threads 1 >said 2>&1 &
    pid=$!
    until [ "$(stat -c %s data/data.mdb 2>/dev/null || echo 0)" -gt $((15 << 20)) ]; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.01
    done
    truncate -s 4096 shard-1.tar
    wait $pid || break
done
grep -q 'shard-1.tar became shorter' said || failed "a shard that became shorter: $(cat said)"
grep -q -e '--resume goes on' said && failed "--resume is offered: $(cat said)"
expect 3 'is damaged or no tar file' "${shards[@]}" --resume

# ---- nor where an image is gone that is not read yet ----
cp -r png less
rm less/0/000.png less/7/zzz.png
gone=$(find less -name '*.png' | sort | tail -1)
cp "$gone" back.png
for _ in 1 2 3 4 5 6; do
    rm -rf data
    cp back.png "$gone"
    "$ingest" folder less --out data --split train "${size[@]}" --threads 1 >said 2>&1 &
    pid=$!
    until [ "$(stat -c %s data/data.mdb 2>/dev/null || echo 0)" -gt $((17 << 20)) ]; do
        kill -0 $pid 2>/dev/null || break
        sleep 0.01
    done
    rm "$gone"
    wait $pid || break
done
grep -q "cannot open $gone" said || failed "an image that is gone: $(cat said)"
grep -q -e '--resume goes on' said && failed "--resume is offered: $(cat said)"
expect 3 'the source is not what it was' folder less --out data --split train "${size[@]}" --resume

# ---- appending ----
rm -rf data whole
rm png/0/000.png png/7/zzz.png
"$ingest" folder png --out before --split train "${size[@]}" >/dev/null 2>&1 || failed "folder"
cp -r before whole
expect 0 'train: 300 images added, 600 in all' folder png --out whole --split train "${size[@]}" --append
cp -r before data
stop KILL "${first[@]}" --append
expect 0 '300 images checked' verify data
expect 2 'it had "--append", this one has "no --append"' "${first[@]}" --resume --force
expect 0 'train: goes on behind ' "${first[@]}" --append --resume
same data whole || failed "appended and resumed: other data"
expect 2 'there is nothing to resume: no --append' "${first[@]}" --append --resume
expect 2 'hint: `bpt-ingest info` shows' "${first[@]}" --append --resume
same data whole || failed "appended twice"
finish
