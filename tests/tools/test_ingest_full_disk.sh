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

rm -f "$disk/fill"
expect 0 'test: 2000 images' glyphs --out "$data" --split test --count 2000
expect 0 '4000 images checked' verify "$data"
umount "$disk"
finish
