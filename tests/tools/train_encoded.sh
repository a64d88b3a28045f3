#!/usr/bin/env bash
# Training and evaluation from JPEG files of many sizes.
. "$(dirname "$0")/common.sh"

# Digits of two sizes, as files; half of them half as large again.
"$ingest" glyphs --out g --split train --count 1500 >out 2>err || die "glyphs"
"$ingest" glyphs --out g --split test --count 300 >out 2>err || die "glyphs"
for split in train test; do
    run 0 "$ingest" export g --split $split --to $split
    mkdir large.$split small.$split
    for class in "$split"/*; do
        mkdir "large.$split/${class##*/}" "small.$split/${class##*/}"
        ls "$class" | sed -n 1~2p | sed "s|^|$class/|" | xargs cp -t "small.$split/${class##*/}"
        ls "$class" | sed -n 2~2p | sed "s|^|$class/|" | xargs cp -t "large.$split/${class##*/}"
    done
    { (find "small.$split" "large.$split" -name '*.png' | sort | awk -F/ '{print $0 " " $2}'); } >$split.txt
    run 0 "$ingest" list $split.txt --out small --split $split --encoded
    run 0 "$ingest" folder large.$split --out large --split $split --encoded --resize 42 60
    run 0 "$ingest" list $split.txt --out raw --split $split
done
make_model
quick=(--model tiny.yaml --batch-size 20 --threads 1 --lr 0.05 --epochs 2 --loader-threads 2 --prefetch 3)

# What is learned from files is what is learned from pixels, but for what JPEG loses.
run 0 "$train" --data small "${quick[@]}" --epochs 8 --output runs/files
run 0 "$train" --data raw "${quick[@]}" --epochs 8 --output runs/pixels
for run in files pixels; do
    check_json runs/$run/summary.json 'd["test_accuracy"] > 0.85'
done
run 0 "$eval" --data small --model tiny.yaml --weights runs/files/model.safetensors --json
cp out eval.json
check_json eval.json 'd["accuracy"] > 0.85'
run 0 "$eval" --data raw --model tiny.yaml --weights runs/files/model.safetensors --json
cp out eval.json
check_json eval.json 'd["accuracy"] > 0.85'

# The same weights for any number of loader threads, and of ranks under allreduce to the last bits.
augmented=(--data large "${quick[@]}" --augment resized-crop=0.5,crop=2,cutmix=1)
run 0 "$train" "${augmented[@]}" --output runs/two
run 0 "$train" "${augmented[@]}" --output runs/five --loader-threads 5 --prefetch 9
run 0 "$train" "${augmented[@]}" --output runs/one --loader-threads 1 --prefetch 2
same_weights runs/two runs/five
same_weights runs/two runs/one
run 0 ranks 2 "$train" "${augmented[@]}" --update allreduce --output runs/ranks
near_weights runs/two runs/ranks 1e-3
run 0 ranks 2 "$train" "${augmented[@]}" --update agwu --output runs/async
run 0 "$train" --replay runs/async

# A window of images that have the network's size is the image.
run 0 "$train" --data small "${quick[@]}" --epochs 8 --augment window --output runs/window
same_weights runs/window runs/files
run 0 "$train" --data large "${quick[@]}" --augment window,flip --output runs/windows
run 0 "$train" --data large "${quick[@]}" --augment window,flip --output runs/more --loader-threads 5
same_weights runs/windows runs/more

# Another input, and as evaluation takes it.
run 0 "$train" --data large "${quick[@]}" --input-size 32x24 --output runs/other --epochs 1
run 0 "$eval" --data large --model tiny.yaml --weights runs/other/model.safetensors --input-size 32 24
fails_well 3 "$eval" --data large --model tiny.yaml --weights runs/other/model.safetensors
run 0 "$train" --data large --model tiny.yaml --dry-run --input-size 36 36
says '1x36x36' out
run 0 "$train" --data large --model tiny.yaml --bench 1 --batch-size 4 --input-size 36 36
run 0 "$tune" --data large --model tiny.yaml --batch-size 4 --input-size 36 36 --budget 1 --out tuned.yaml
grep -qx "  images: 'encoded'" tuned.yaml || die "it was tuned for other images: $(grep images: tuned.yaml)"
fails_well 2 "$train" --data raw "${quick[@]}" --input-size 32 24 --output runs/x
says 'holds raw images of 28x28 pixels (HxW), not 32x24'
fails_well 2 "$eval" --data raw --model tiny.yaml --weights runs/files/model.safetensors --input-size 30 30
fails_well 2 "$tune" --data raw --model tiny.yaml --input-size 30 30 --out x.yaml --budget 1

# A network that takes any size goes on at another one as another job, of which it is told why.
cat >any.yaml <<'END'
name: any
input: [1, 28, 28]
classes: 10
layers:
  - conv: {filters: 8, kernel: 5, stride: 2}
  - global_avgpool
  - fc: {outputs: classes}
END
any=("$train" --data large "${quick[@]}" --model any.yaml --epochs 0.4)
run 0 "${any[@]}" --output runs/any --checkpoint-every 10
for size in 36x28 28x36; do
    run 0 "${any[@]}" --output runs/any-$size --input-size $size --resume runs/any
    says '(the size of the input, by --input-size, --model or --data, differs)'
done

# What cannot be done.
fails_well 2 "$train" --data large "${quick[@]}" --augment flip,resized-crop --output runs/x
says 'resized-crop can only be the first'
fails_well 2 "$train" --data raw "${quick[@]}" --augment window --output runs/x
says 'augmentation window is for images that are larger'
fails_well 2 ranks 2 "$train" --data large "${quick[@]}" --data-mode scatter --scratch scratch --output runs/x
says 'holds encoded images, which --data-mode scatter does not give out'
for model in '' '--model tiny.yaml'; do
    # shellcheck disable=SC2086 # several words
    run 2 ranks 2 "$train" --check --data large $model --data-mode scatter --scratch scratch --output runs/x
    says 'holds encoded images, which --data-mode scatter does not give out. hint: copy the dataset' out
    [ "$(grep -c '^error: ' out)" -eq 1 ] || die "not one error"
done
[ -e runs/x ] && die "what was refused left a run"
# Beside servers alone nobody is given samples.
run 0 ranks 2 "$train" --data large "${quick[@]}" --servers 1 --data-mode scatter --scratch scratch --output runs/served
says '--data-mode scatter: without effect on 1 rank that trains'
[ -e scratch ] && die "samples were given out"

# Damage: the record is named, nothing is learned from it.
offset=$(LC_ALL=C grep -obUaP '\xFF\xD8\xFF' large/data.mdb | sed -n 20p | cut -d: -f1)
printf '\x55\xAA\x55' | dd of=large/data.mdb bs=1 seek=$((offset + 300)) conv=notrunc status=none
fails_well 3 "$train" --data large "${quick[@]}" --output runs/damaged
grep -qE 'split train, record [0-9]+: checksum mismatch' err || die "the record is not named"
