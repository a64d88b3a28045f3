#!/usr/bin/env bash
# One rank of several fails: all end, with its message, once, and with its exit status.
source "$(dirname "$0")/common.sh"
make_data 400 50
make_model
cat >each <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = "$ODD" ] && exec "$@" --data "$OTHER"
exec "$@" --data data
END
chmod +x each
good=("${common[@]}" --epochs 3)

# ---- at the start ----

for odd in 0 2; do
    ODD=$odd OTHER=nowhere fails_well 3 ranks 3 ./each "$train" "${good[@]}" --output runs/x
    who="rank $odd on $(hostname): "
    [ "$odd" -eq 0 ] && who=
    says "bpt-train: ${who}there is no dataset at nowhere"
    [ ! -e runs/x ] || die "a failed start leaves a run folder"
done

# ---- while all train ----

# Records of the middle of the file, whose structure stays whole: found when they are read.
cp -r data damaged
python3 - <<'END' || die "no records found"
import glob
path = glob.glob("damaged/*.mdb")
path = [p for p in path if "lock" not in p][0]
data = bytearray(open(path, "rb").read())
for at in range(len(data) // 3, 2 * len(data) // 3, 512):
    if data[at:at + 16].count(0) == 0:
        data[at + 8] ^= 0x55
open(path, "wb").write(data)
END
for update in agwu sgwu allreduce; do
    ODD=1 OTHER=damaged fails_well 3 ranks 3 ./each "$train" "${good[@]}" --update $update --output runs/$update
    says 'damaged'
    [ ! -e runs/$update/model.safetensors ] || die "weights of a failed run"
done
