#!/usr/bin/env bash
# A disk that fills up (a small tmpfs): status 1 and a clear word, nothing lost, and after room is made
# the same command goes through. Needs root to mount.
. "$(dirname "$0")/ingest_help.sh"
[ "$(id -u)" -eq 0 ] || skip "only root can mount"
disk=$work/disk
mkdir "$disk"
mount -t tmpfs -o size=6m tmpfs "$disk" 2>/dev/null || skip "cannot mount a tmpfs here"
trap 'umount "$disk" 2>/dev/null; rm -rf "$work"' EXIT
data=$disk/data

# The first ingestion does not fit: nothing is left.
expect 1 'o space left' glyphs --out "$data" --split train --count 9000
[ -e "$data" ] && failed "a dataset that did not fit was left"

# A later one does not fit: the first split stays.
expect 0 'train: 2000 images' glyphs --out "$data" --split train --count 2000
expect 1 'o space left' glyphs --out "$data" --split test --count 9000
expect 1 'hint: make room' glyphs --out "$data" --split test --count 9000
expect 1 'o space left' glyphs --out "$data" --split train --count 9000 --force
expect 0 '2000 images checked' verify "$data"

# Not a byte is left: not even the lock file of a new dataset fits.
head -c 8m /dev/zero >"$disk/fill" 2>/dev/null
expect 1 'o space left' glyphs --out "$disk/other" --split train --count 10
expect 1 'o space left' glyphs --out "$data" --split test --count 9000
expect 0 '2000 images checked' verify "$data"

# Nor that of a reader: it goes without.
mv "$data/lock.mdb" "$work/lock.mdb"
head -c 8m /dev/zero >>"$disk/fill" 2>/dev/null
expect 0 '2000 images checked' verify "$data"
expect 0 'train' info "$data"
rm -f "$disk/fill" "$data/lock.mdb"
expect 0 'test: 2000 images' glyphs --out "$data" --split test --count 2000
expect 0 '4000 images checked' verify "$data"
umount "$disk"

# Larger than a chunk: what is whole stays, and the same command goes on with it when there is room. The images that were
# there are whole all the time. The new ones are drawn once, and come from files.
for split in test train; do
    expect 0 '50000 images' glyphs --out "$work/drawn" --split $split --count 50000 --seed 2
    expect 0 '' export "$work/drawn" --split $split --to "$work/$split" --format idx
done
for size in 12m 26m 38m; do
    [ $size != 26m ] || [ -z "${BPT_SANITIZED:-}" ] || continue # as 38m
    mount -t tmpfs -o size=$size tmpfs "$disk" 2>/dev/null || skip "cannot mount a tmpfs here"
    expect 0 'train: 2000 images' glyphs --out "$data" --split train --count 2000
    for split in test train; do
        how=(--split $split)
        files=("$work/$split"/*images* "$work/$split"/*labels*)
        [ $split = train ] && how+=(--append)
        mount -o remount,size=$size "$disk"
        expect 1 'o space left' idx "${files[@]}" --out "$data" "${how[@]}"
        expect 0 '2000 images checked' verify "$data"
        if [ $size = 12m ]; then # no chunk was stored whole
            expect 1 'hint: make room' idx "${files[@]}" --out "$data" "${how[@]}"
        else
            expect 1 'the same command with --resume goes on behind the first ' idx "${files[@]}" --out "$data" "${how[@]}"
            expect 1 'o space left' idx "${files[@]}" --out "$data" "${how[@]}" --resume
        fi
        mount -o remount,size=200m "$disk"
        if [ $size = 12m ]; then
            expect 0 '50000 images' idx "${files[@]}" --out "$data" "${how[@]}"
        else
            expect 0 "$split: goes on behind " idx "${files[@]}" --out "$data" "${how[@]}" --resume
        fi
        whole=$work/whole.$split
        [ -e "$whole" ] || {
            expect 0 '' glyphs --out "$whole" --split train --count 2000
            expect 0 '' idx "${files[@]}" --out "$whole" "${how[@]}"
        }
        [ "$("$ingest" info "$data" | sed -n "/^split $split/,/^$/p")" = \
            "$("$ingest" info "$whole" | sed -n "/^split $split/,/^$/p")" ] ||
            failed "$size, $split: other data than on a disk with room"
        [ $split = train ] || expect 0 '52000 images checked' verify "$data"
        rm -rf "$data"
        expect 0 'train: 2000 images' glyphs --out "$data" --split train --count 2000
    done
    umount "$disk"
done
finish
