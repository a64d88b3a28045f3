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

# One that is asked to stop while it gives others their turn to speak says what failed all the same.
ODD=1 OTHER=nowhere start_ranks 2 ./each "$train" "${good[@]}" --output runs/x
until odd=$(rank_process 2) && ((0x0$(sed -n 's/^SigCgt:\s*//p' "/proc/$odd/status" 2>/dev/null) & 1 << 14)); do # SIGTERM
    kill -0 "$pid" 2>/dev/null || die "ended before rank 1 caught signals"
    sleep 0.02
done
while kill -s TERM "$odd" 2>/dev/null; do sleep 0.1; done
finish 3
says "rank 1 on $(hostname): there is no dataset at nowhere"

# Where a script stands between, it is the script that mpirun ends: its rank says no more than others do.
printf '#!/bin/sh\n"$@"\nexit $?\n' >between
chmod +x between
run 2 ranks 3 ./between "$train" "${good[@]}" --foo
sleep 3 # longer than a turn: for a rank that outlives mpirun
[ "$(grep -c '^bpt-train: ' err)" -eq 1 ] || die "all fail alike, and not one says so: $(cat err)"

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
# It may be a while before a rank that waits for a core reads one.
for update in agwu sgwu allreduce; do
    ODD=1 OTHER=damaged fails_well 3 ranks 3 ./each "$train" "${good[@]}" --epochs 1000 --update $update \
        --output runs/$update
    says 'damaged'
    [ ! -e runs/$update/model.safetensors ] || die "weights of a failed run"
done

# ---- at a checkpoint ----

# Rank 1 alone cannot write: rank 0 alone removes what there is of it.
cat >limited <<'END'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 1 ] && ulimit -f 8
exec "$@"
END
chmod +x limited
watched=(env "LD_PRELOAD=$BPT_HELPERS/libwatch_part.so" "ASAN_OPTIONS=${ASAN_OPTIONS:-}:verify_asan_link_order=0")
BPT_TEST_WATCH=$work/watched fails_well 1 ranks 2 ./limited "${watched[@]}" "$train" "${good[@]}" --data data \
    --update sgwu --checkpoint-every 10 --output runs/limited
says 'checkpoint not saved'
says 'File too large'
[ -z "$(ls runs/limited/checkpoints)" ] || die "left: $(ls runs/limited/checkpoints)"
grep -q 'of rank 0$' watched || die "nobody looked at what was written"
grep -q 'of rank 1$' watched && die "rank 1 removes it too"
true
