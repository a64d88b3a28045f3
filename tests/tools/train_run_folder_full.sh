#!/usr/bin/env bash
# The disk of the run folder: a run that could not keep what it learns is not begun. Needs root.
source "$(dirname "$0")/common.sh"
[ "$(id -u)" -eq 0 ] || skip "only root may mount"
make_data 400 60
# A megabyte of weights, so three in a checkpoint of two ranks with momentum, and four with that of the shards.
cat >wide.yaml <<'END'
name: wide
input: [1, 28, 28]
classes: 10
layers:
  - fc: {name: one, outputs: 320}
  - relu
  - fc: {name: two, outputs: classes}
END
mkdir small && mount -t tmpfs -o size=800k none small 2>/dev/null || skip "no tmpfs can be mounted"
trap 'umount "$work/small"; clean_up' EXIT
job=("${common[@]}" --model wide.yaml --lr 0.01 --epochs 1 --eval-every 0 --output small/run)
size() { mount -o remount,size="$1" small; }

fails_well 1 "$train" "${job[@]}"
says 'no room for the run in small/run: its weights take 1.1 MB, 0.8 MB are free'
says 'hint: make room there, or name an --output on another disk'
[ -z "$(ls -A small)" ] || die "left: $(ls -A small)"
size 3m
fails_well 1 ranks 2 "$train" "${job[@]}" --update agwu --checkpoint-every 4 --momentum 0.9
says 'no room for the run in small/run: its weights and a checkpoint take 4.2 MB, 3.1 MB are free'
fails_well 1 ranks 2 "$train" "${job[@]}" --update sgwu --checkpoint-every 4 --momentum 0.9 --server-momentum 0.5
says 'its weights and a checkpoint take 5.2 MB'
[ -z "$(ls -A small)" ] || die "left: $(ls -A small)"
run 0 ranks 2 "$train" "${job[@]}" --update sgwu # none is due: its weights alone
rm -r small/run

# One that only the clock asks for is not made where there is no room for it, and ends no run.
run 0 "$train" "${job[@]}" --momentum 0.9 --epochs "$(length 60 20)" --log-interval 10 --checkpoint-minutes 0.001
says 'warn: no checkpoint is made by time: one and the weights at the end take 3.2 MB, '
[ -z "$(ls small/run/checkpoints)" ] || die "a checkpoint without room: $(ls small/run/checkpoints)"
rm -r small/run
size 6m # for two and the weights, however many a slow run makes
run 0 "$train" "${job[@]}" --momentum 0.9 --epochs "$(length 60 20)" --log-interval 10 --checkpoint-minutes 0.001 \
    --checkpoint-keep 1
! grep -q 'no checkpoint is made' err || die "a warning though there is room"
[ -n "$(ls small/run/checkpoints)" ] || die "no checkpoint though there is room"
rm -r small/run
# One of a later step, as other ranks had it, stays until the new one is whole.
run 0 "$train" "${job[@]}" --momentum 0.9 --checkpoint-every 15
rm small/run/{summary.json,model.safetensors}
mv small/run/checkpoints/step-{00000015,99999999}
size 3600k
by_time=(--momentum 0.9 --epochs "$(length 60 20)" --log-interval 10 --checkpoint-minutes 0.001)
run 0 "$train" "${job[@]}" "${by_time[@]}" --checkpoint-keep 1 --resume auto
says 'warn: no checkpoint is made by time: one and the weights at the end take 2.2 MB, 1.6 MB are free'
rm -r small/run
# Under agwu nobody pushes before the time of its push for one that is not made: a replay would not know such a push.
size 3m
run 0 ranks 2 "$train" "${job[@]}" "${by_time[@]}" --update agwu --sync-every 500
says 'no checkpoint is made by time: '
run 0 "$train" --replay small/run
says 'bit for bit'
rm -r small/run
# Nor does one end a run that has no room by a quota, of which the disk does not tell: so for so many files.
mount -o remount,size=20m,nr_inodes=20 small
run 0 ranks 2 "$train" "${job[@]}" "${by_time[@]}" --update agwu --sync-every 500
says 'warn: checkpoint not saved: '
says '; the run goes on without'
[ -z "$(ls small/run/checkpoints)" ] || die "a checkpoint without room: $(ls small/run/checkpoints)"
run 0 "$train" --replay small/run
says 'bit for bit'
rm -r small/run
fails_well 1 ranks 2 "$train" "${job[@]}" "${by_time[@]}" --update agwu --checkpoint-every 1
says 'checkpoint not saved: '
says 'hint: make room, then begin anew; there is no checkpoint before'
rm -r small/run
# Nor is there one to go on from where the weights at the end are the first that there is no room for.
for n_files in {4..20}; do
    mount -o remount,nr_inodes=$n_files small
    fails_well 1 "$train" "${job[@]}"
    rm -rf small/run
    ! grep -q 'cannot create small/run/model.safetensors' err || break
done
says 'cannot create small/run/model.safetensors'
! grep -q 'checkpoint' err || die "a checkpoint that there is none of"
mount -o remount,nr_inodes=0 small
# Where there is one, and it is not room that they lack, nobody is told to make some.
run 0 "$train" "${job[@]}" --checkpoint-every 10
cut_back small/run
mkdir small/run/model.safetensors
fails_well 1 "$train" "${job[@]}" --resume auto
says 'cannot rename to small/run/model.safetensors: Is a directory'
! grep -q 'make room' err || die "room is not what it lacks"
rm -r small/run

# Room for what it must have, not for all that it keeps: it says so, and goes on once there is room.
kept=(--checkpoint-every 6 --checkpoint-keep 9 --momentum 0.9)
size 6656k
fails_well 1 "$train" "${job[@]}" "${kept[@]}"
says 'cannot write small/run/model.safetensors'
says 'hint: make room, then go on from the last checkpoint with --resume auto'
rm -r small/run
size 5m
fails_well 1 "$train" "${job[@]}" "${kept[@]}"
says 'warn: checkpoints and weights of the run take 7.3 MB, 5.2 MB are free on the disk of small/run: '
says 'checkpoint not saved: '
says 'hint: make room, then go on from the checkpoint before with --resume auto'
[ -z "$(find small/run/checkpoints -name '*.part')" ] || die "a part of a checkpoint takes room: $(ls small/run/checkpoints)"
fails_well 1 "$train" "${job[@]}" "${kept[@]}" --resume auto
says 'no room for the run in small/run: '
says 'hint: make room there, or go on with an --output on another disk and --resume small/run'
[ -s small/run/checkpoints/step-00000012/DONE ] || die "what was saved is gone"
size 20m
run 0 "$train" "${job[@]}" "${kept[@]}" --resume auto
says 'going on from small/run/checkpoints/step-00000012'
! grep -q 'MB are free' err || die "a warning without need"
run 0 "$train" "${job[@]}" "${kept[@]}" --output apart
same_weights small/run apart

# What --force removes makes room; where that is not enough it stays.
run 0 dd if=/dev/zero of=small/other bs=1k count=13k
mv small/run/checkpoints small/linked
ln -s ../linked small/run/checkpoints
run 0 "$train" "${job[@]}" "${kept[@]}" --force
! grep -q 'MB are free' err || die "a warning without need"
rm small/run/checkpoints
mv small/linked small/run/checkpoints
run 0 "$train" "${job[@]}" "${kept[@]}" --force
! grep -q 'MB are free' err || die "a warning without need"
rm -r small/run/checkpoints
run 0 dd if=/dev/zero of=small/more bs=1k count=6100
cp small/run/model.safetensors kept.safetensors
fails_well 1 "$train" "${job[@]}" "${kept[@]}" --force
says 'no room for the run in small/run: '
cmp small/run/model.safetensors kept.safetensors || die "--force has taken what it does not replace"

# A disk without a single byte, and what other names keep: --force does not begin what it cannot end.
rm small/more
head -c 20m /dev/zero >small/more 2>/dev/null
fails_well 1 "$train" "${job[@]}" "${kept[@]}" --force
says 'MB are free with what is removed'
cmp small/run/model.safetensors kept.safetensors || die "--force on a full disk has taken what it does not replace"

# Checkpoints that lie on another disk by a link: each has to have room for its own.
rm -r small/*
size 1600k
mkdir -p small/run large
ln -s ../../large small/run/checkpoints
run 0 "$train" "${job[@]}" "${kept[@]}" --resume auto
! grep -q 'MB are free' err || die "a warning without need"
[ -d large/step-00000006 ] || die "no checkpoints"
head -c 1m /dev/zero >small/more 2>/dev/null
rm small/run/model.safetensors
head -c 1m /dev/zero >small/more 2>/dev/null
fails_well 1 "$train" "${job[@]}" "${kept[@]}" --force # what makes room behind the link makes none here
says 'no room for the run in small/run: its weights take 1.1 MB'
[ -d large/step-00000006 ] || die "what was refused has taken checkpoints"
mkdir -p small/few beside
ln -s ../small/few beside/checkpoints
fails_well 1 "$train" "${job[@]}" "${kept[@]}" --output beside --resume auto
says 'no room for the run in beside/checkpoints: a checkpoint takes 2.2 MB'
says 'hint: make room there, or let it lead to another disk'
run 0 "$train" "${job[@]}" --output beside --resume auto # none is due
