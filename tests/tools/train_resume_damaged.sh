#!/usr/bin/env bash
# Going on after a rank was killed, and from checkpoints that are damaged, not whole, of another format or another's.
source "$(dirname "$0")/common.sh"
source "$(dirname "$0")/resume_help.sh"
make_data
make_model

# ---- a rank that is killed ----

for update in agwu sgwu; do
    start_ranks 2 "$train" "${common[@]}" "${lasts[@]}" --epochs 1000 --update $update \
        --checkpoint-every 20 --output runs/killed-$update
    await runs/killed-$update/log.rank-0.txt "info: checkpoint "
    kill -s KILL "$(rank_process 2)"
    left=300
    while kill -0 "$pid" 2>/dev/null; do
        [ $((left--)) -gt 0 ] || die "mpirun lives 30 s after a rank was killed"
        sleep 0.1
    done
    wait "$pid" && die "mpirun ends with status 0 after a rank was killed"
    pgrep -f "$work/" >/dev/null && pgrep -P "$pid" && die "processes are left"
    epoch=$(grep -o 'info: checkpoint .* at epoch .*' runs/killed-$update/log.rank-0.txt | tail -n 1 | grep -o '[0-9.]*$')
    run 0 ranks 2 "$train" "${common[@]}" --lr 0.01 --update $update \
        --epochs "$(python3 -c "print(float('$epoch') + 3)")" --output runs/killed-$update --resume auto
    check_json runs/killed-$update/summary.json 'd["test_accuracy"] > 0.2'
done

# ---- checkpoints that are not whole, or damaged ----

damage() { # FILE: flips a bit in its middle
    python3 - "$1" <<'END'
import sys
data = bytearray(open(sys.argv[1], "rb").read())
data[len(data) // 2] ^= 1
open(sys.argv[1], "wb").write(data)
END
}

# Each rank looks at its own files.
rm runs/killed-sgwu/summary.json
damage "$(newest runs/killed-sgwu)/rank-1.momentum.safetensors"
fails_well 3 ranks 2 "$train" "${common[@]}" --lr 0.01 --update sgwu --output runs/killed-sgwu --resume auto
says "/rank-1.momentum.safetensors is damaged"

parts=("${common[@]}" --lr 0.01 --epochs 3)
run 0 "$train" "${parts[@]}" --output runs/whole --checkpoint-every 100
rm -f runs/whole/summary.json
# Without DONE it is not there.
cp -r runs/whole runs/undone
rm runs/undone/checkpoints/step-00000200/DONE
run 0 "$train" "${parts[@]}" --output runs/undone --resume auto
says "going on from runs/undone/checkpoints/step-00000100"
same_weights runs/whole runs/undone

for file in model.safetensors rank-0.momentum.safetensors rank-0.json DONE; do
    rm -rf runs/damaged
    cp -r runs/whole runs/damaged
    damage runs/damaged/checkpoints/step-00000200/$file
    fails_well 3 "$train" "${parts[@]}" --output runs/damaged --resume auto
    says "step-00000200/"
    [ $file = DONE ] || says "step-00000200/$file is damaged"
    # What the hint says, word for word.
    proposal=$(sed -n 's/^hint: .*\(--resume [^ ]*\).*/\1/p' err)
    [ "$proposal" = "--resume runs/damaged/checkpoints/step-00000100" ] || die "proposed: $proposal"
    # shellcheck disable=SC2086 # two words
    run 0 "$train" "${parts[@]}" --output runs/damaged $proposal
    same_weights runs/whole runs/damaged
    # Likewise where the damaged one is named.
    fails_well 3 "$train" "${parts[@]}" --output runs/new --resume runs/damaged/checkpoints/step-00000200/
    says "--resume runs/damaged/checkpoints/step-00000100"
    [ ! -e runs/new/summary.json ] || die "it went on nevertheless"
    (
        cd runs/damaged/checkpoints || exit
        fails_well 3 "$train" "${parts[@]}" --data "$work/data" --model "$work/tiny.yaml" \
            --output "$work/runs/new" --resume step-00000200/
        says "--resume ./step-00000100"
    ) || exit 1
    rm -rf runs/new
done
# However it is named, and where the others are newer.
rm -rf runs/damaged
cp -r runs/whole runs/damaged
damage runs/damaged/checkpoints/step-00000200/model.safetensors
ln -s step-00000200 runs/damaged/checkpoints/latest
for name in step-00000200/. step-00000100/../step-00000200 latest; do
    fails_well 3 "$train" "${parts[@]}" --output runs/new --resume runs/damaged/checkpoints/$name
    says "checkpoints/step-00000100"
done
rm -rf runs/damaged
cp -r runs/whole runs/damaged
damage runs/damaged/checkpoints/step-00000100/model.safetensors
fails_well 3 "$train" "${parts[@]}" --output runs/new --resume runs/damaged/checkpoints/step-00000100
says "hint: go on from another checkpoint: --resume runs/damaged/checkpoints/step-00000200"
# A path that a hint says to type can be typed.
cp -r runs/damaged "runs/d a's"
fails_well 3 "$train" "${parts[@]}" --output runs/new --resume "runs/d a's/checkpoints/step-00000100"
hinted=$(sed -n "s/^hint: go on from another checkpoint: --resume //p" err)
[ "$(eval "printf %s $hinted")" = "runs/d a's/checkpoints/step-00000200" ] || die "it says --resume $hinted"
run 2 "$train" "${parts[@]}" --check --output runs/new --resume runs/damaged/checkpoints/step-00000100
says 'step-00000100/model.safetensors is damaged' out
run 0 "$train" "${parts[@]}" --check --output runs/damaged --resume auto
long="runs/$(printf '%0200d' 0) $(printf '%0050d' 0)" # --check has room for what training has
cp -r runs/damaged "$long"
run 2 "$train" "${parts[@]}" --check --output runs/new --resume "$long/checkpoints/step-00000100"
says "hint: go on from another checkpoint: --resume '$long/checkpoints/step-00000200'" out
rm -r "$long"

# A number that is another one by a single digit is noticed, too.
sed -i 's/"serial": 2/"serial": 1/' runs/damaged/checkpoints/step-00000200/DONE
fails_well 3 "$train" "${parts[@]}" --output runs/damaged --resume auto
says 'step-00000200/DONE is damaged'
rm -rf runs/damaged
cp -r runs/whole runs/damaged
cp -r runs/whole runs/piped
rm runs/piped/checkpoints/step-00000200/model.safetensors
mkfifo runs/piped/checkpoints/step-00000200/model.safetensors # that nobody writes to
fails_well 3 timeout -s KILL 60 "$train" "${parts[@]}" --output runs/piped --resume auto
says 'model.safetensors: not a regular file'
rm -f runs/damaged/checkpoints/step-00000200/model.safetensors runs/damaged/summary.json
fails_well 3 "$train" "${parts[@]}" --output runs/damaged --resume auto
rm -rf runs/damaged/checkpoints/step-00000100
fails_well 3 "$train" "${parts[@]}" --output runs/damaged --resume auto
says "no other whole checkpoint"
run 0 "$train" "${parts[@]}" --output runs/damaged --force
same_weights runs/whole runs/damaged

# A format of tomorrow is refused, not guessed at.
step=runs/newer/checkpoints/step-00000200
cp -r runs/whole runs/newer
sed -i 's/"format": 2/"format": 3/' $step/rank-0.json
"${BPT_HELPERS:?}/seal_checkpoint" $step 2 rank-0.json rank-0.momentum.safetensors model.safetensors ||
    die "seal_checkpoint"
fails_well 3 "$train" "${parts[@]}" --output runs/newer --resume auto
says "$step/rank-0.json has format 3, this version of bpt-train reads 2"
sed -i 's/"format": 3/"format": 2/' $step/rank-0.json
"$BPT_HELPERS/seal_checkpoint" $step 2 rank-0.json rank-0.momentum.safetensors model.safetensors
run 0 "$train" "${parts[@]}" --output runs/newer --resume auto
same_weights runs/whole runs/newer

# An older one whose list is damaged does not stand in the way, and is named.
cp -r runs/whole runs/older
damage runs/older/checkpoints/step-00000100/DONE
touch -d '2001-01-01' runs/older/checkpoints/step-00000100/DONE
run 0 "$train" "${parts[@]}" --output runs/older --resume auto
says "going on from runs/older/checkpoints/step-00000200"
says "warn: runs/older/checkpoints/step-00000200 is taken; others have a damaged list: step-00000100"
same_weights runs/whole runs/older

# Where there are only checkpoints that are not whole, it starts anew, and says so.
cp -r runs/whole runs/torn
rm -f runs/torn/checkpoints/*/DONE runs/torn/summary.json
run 0 "$train" "${parts[@]}" --output runs/torn --resume auto
says "warn: no checkpoint in runs/torn/checkpoints is whole (without DONE: step-00000200, step-00000100)"
grep -q "warn: no checkpoint" runs/torn/log.rank-0.txt || die "the log does not say it"
same_weights runs/whole runs/torn
run 0 "$train" "${parts[@]}" --output runs/fresh --resume auto
! grep -q "warn:" err || die "a warning about nothing"

# A run that came to its end is left as it is.
run 0 "$train" "${parts[@]}" --output runs/damaged --resume auto
says "finished already"
same_weights runs/whole runs/damaged

# Going on with more ranks, checkpoints have smaller numbers than before and are newer all the same.
cp -r runs/whole runs/more
run 0 ranks 2 "$train" "${parts[@]}" --update agwu --epochs 4 --output runs/more --resume auto \
    --checkpoint-every 20 --checkpoint-keep 1
newest=$(ls runs/more/checkpoints)
[ "$newest" \< step-00000200 ] || die "kept $newest"

# Other images are another job, as many as there may be of them.
cp -r data other
n=$("$ingest" info --json data | grep -o '"name": "train", "count": [0-9]*' | grep -o '[0-9]*$')
"$ingest" glyphs --out other --split train --count "$n" --seed 77 --force >out 2>err || die "another dataset"
run 0 "$train" "${parts[@]}" --output runs/same --resume runs/whole/checkpoints/step-00000100
! grep -q 'another job' err || die "the same dataset is another"
run 0 "$train" "${parts[@]}" --data other --output runs/other --resume runs/whole/checkpoints/step-00000100
says 'is of another job (what --data holds differs)'

# And so is another split of the same dataset.
"$ingest" glyphs --out other --split twin --count "$n" --seed 78 >out 2>err || die "another split"
run 0 "$train" "${parts[@]}" --data other --epochs 0.1 --checkpoint-every 5 --output runs/split
run 0 "$train" "${parts[@]}" --data other --epochs 0.1 --train-split twin --output runs/twin \
    --resume runs/split/checkpoints/step-00000005
says 'is of another job (--train-split differs)'

# A folder with a config.yaml of its own is no run.
mkdir runs/stranger
echo "mine: true" >runs/stranger/config.yaml
fails_well 2 "$train" "${parts[@]}" --output runs/stranger
says "it is not a run folder"
fails_well 2 "$train" "${parts[@]}" --output runs/stranger --force
fails_well 2 "$train" "${parts[@]}" --output runs/stranger --resume auto
[ "$(cat runs/stranger/config.yaml)" = "mine: true" ] || die "it was written to"

# --force never takes what --resume goes on from.
fails_well 2 "$train" "${parts[@]}" --output runs/whole --resume auto --force
fails_well 2 "$train" "${parts[@]}" --output runs/whole --resume runs/whole/checkpoints/step-00000100 --force
[ -s runs/whole/checkpoints/step-00000200/DONE ] || die "--force removed checkpoints"
