#!/usr/bin/env bash
# No thread that trains calculates with denormal numbers, which some processors do slowly.
source "$(dirname "$0")/common.sh"
make_model

# Black images: the weights get no gradient, only decay, which halves them in every step.
python3 - <<'END' || die "images"
import struct
open("images", "wb").write(struct.pack(">IIII", 0x803, 100, 28, 28) + bytes(100 * 28 * 28))
open("labels", "wb").write(struct.pack(">II", 0x801, 100) + bytes(i % 10 for i in range(100)))
END
for split in train test; do
    run 0 "$ingest" idx images labels --out data --split $split
done

for threads in 1 2; do
    # 135 steps: 2^-135 of what they began with would be denormal.
    run 0 "$train" "${common[@]}" --threads $threads --output run-$threads --epochs 27 --lr 1 \
        --weight-decay 0.5 --momentum 0 --schedule constant --warmup-epochs 0
    python3 "$here/weights.py" normal run-$threads/model.safetensors || die "denormal weights"
done
