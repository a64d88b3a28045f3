#!/usr/bin/env bash
# --order: blocks and sequential give runs that can be repeated, resumed, replayed and given out like any other.
source "$(dirname "$0")/common.sh"
make_data 1000 200
make_model
blocks=(--order blocks --order-block 30)
local=("${common[@]}" --epochs 3 --checkpoint-every 40 --checkpoint-keep 100)

# ---- one rank, and all ranks in one order ----

run 0 "$train" "${common[@]}" --epochs 3 --output shuffled
for order in "blocks --order-block 30" sequential; do
    # shellcheck disable=SC2086 # several words
    set -- --order $order
    run 0 "$train" "${local[@]}" "$@" --output "one-$2"
    cmp -s shuffled/model.safetensors "one-$2/model.safetensors" && die "$2 is no other order"
    run 0 "$train" "${local[@]}" "$@" --output "again-$2"
    same_weights "one-$2" "again-$2"
    cut_back "again-$2"
    run 0 "$train" "${local[@]}" "$@" --output "again-$2" --resume auto
    same_weights "one-$2" "again-$2"
    for n in 1 3; do
        run 0 ranks $n "$train" "${common[@]}" "$@" --update allreduce --epochs 1 --lr 0.01 --output "all-$n-$2"
    done
    near_weights "all-1-$2" "all-3-$2" 1e-4
done

# Another order is another job, and so is another size of blocks.
cut_back again-blocks
cp -r again-blocks other
run 0 "$train" "${local[@]}" --output other --resume auto
says '(--order differs)'
says 'starts anew, the samples come in another order'
cp -r again-blocks larger
rm -r other
run 0 "$train" "${local[@]}" --order blocks --order-block 31 --output larger --resume auto
says '(--order-block differs)'
says 'starts anew, the samples come in another order'

# A checkpoint of before there were orders is one of all at random.
run 0 "$train" "${local[@]}" --output whole
cp -r whole before
cut_back before
step=$(echo before/checkpoints/*)
sed -i 's/"order": 0, *//; s/"order_block": 0, *//' "$step/rank-0.json"
grep -q '"order' "$step/rank-0.json" && die "the state still names an order"
seal "$step"
run 0 "$train" "${local[@]}" --output before --resume auto
same_weights whole before
cut_back before
run 0 "$train" "${local[@]}" "${blocks[@]}" --output before --resume auto
says '(--order differs)'
says 'starts anew, the samples come in another order'

# ---- shares ----

agwu=("${common[@]}" --update agwu --sync-every 4 --epochs 4 --lr 0.01)
run 0 ranks 2 "$train" "${agwu[@]}" "${blocks[@]}" --output shares
run 0 "$train" --replay shares
says 'bit for bit'
run 0 ranks 2 "$train" "${agwu[@]}" --order sequential --rebalance 0.000001 --output ranges
run 0 "$train" --replay ranges
says 'bit for bit'

source "$here/scatter_help.sh"
for update in sgwu allreduce; do
    same=(--update $update --partition even --epochs 2 "${blocks[@]}")
    run 0 ranks 2 "$train" "${common[@]}" "${same[@]}" --output shared-$update
    run 0 ranks 2 ./apart "$train" "${scattered[@]}" "${same[@]}" --output "$work/given-$update"
    same_weights shared-$update given-$update
done

# ---- what it does not go with ----

fails_well 2 "$train" "${common[@]}" --order-block 30 --output x
says '--order-block is not used by --order shuffle'
bench=("$train" --model tiny.yaml --batch-size 20 --threads 1 --bench 3)
fails_well 2 "${bench[@]}" "${blocks[@]}"
says '--order is not used by --bench without --data'
run 0 "${bench[@]}" --data data "${blocks[@]}"
run 0 "${bench[@]}" --data data --order sequential
