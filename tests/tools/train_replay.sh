#!/usr/bin/env bash
# An asynchronous run can be repeated bit for bit from its logs, and only from its own.
source "$(dirname "$0")/common.sh"
make_data
make_model

run 0 ranks 3 "$train" "${common[@]}" --output run --update agwu --epochs 3 --sync-every 3 \
    --checkpoint-every 30 --augment crop=2,flip
run 0 "$train" --replay run
says "bit for bit"

# From another folder the dataset's path leads nowhere: said, not crashed over.
mkdir elsewhere
(cd elsewhere && fails_well 3 "$train" --replay "$work/run") || exit 1

flip() { # FILE PATTERN: turns the digit after the pattern's middle occurrence into another one
    python3 - "$1" "$2" <<'END' || die "could not change $1"
import re, sys
text = open(sys.argv[1]).read()
found = list(re.finditer(sys.argv[2] + r"[0-9.]*?([1-9])", text))
at = found[len(found) // 2].start(1)
digit = "5" if text[at] != "5" else "4"
open(sys.argv[1], "w").write(text[:at] + digit + text[at + 1:])
END
}

damaged() { # FILE PATTERN [STATUS]: a run with one digit changed is not taken for the real one
    rm -rf other
    cp -r run other
    flip "other/exchange/$1" "$2"
    fails_well "${3:-3}" "$train" --replay other
}
damaged updates.rank-1.jsonl '"gamma": '
damaged updates.rank-0.jsonl '"version": ' 2 # as in a resumed run, which cannot be replayed
damaged updates.rank-2.jsonl '"seq": '
damaged steps.rank-0.jsonl '"landed_at": '
damaged steps.rank-2.jsonl '"progress": '

rm -rf other
cp -r run other
head -c 2000 run/exchange/steps.rank-1.jsonl >other/exchange/steps.rank-1.jsonl
fails_well 3 "$train" --replay other
rm other/exchange/updates.rank-1.jsonl
fails_well 3 "$train" --replay other

# What its configuration says is looked at like any other.
rm -rf other
cp -r run other
sed -i 's/^augment: .*/augment: "crop=2,flop"/' other/config.yaml
fails_well 2 "$train" --replay other
says 'there is no augmentation "flop"'

# Other ways of updating leave no such logs.
run 0 "$train" "${common[@]}" --output local --epochs 0.1
fails_well 2 "$train" --replay local
fails_well 2 "$train" --replay nowhere
