#!/usr/bin/env bash
# Files of weights that bpt-eval takes and refuses: every number finite, no variance below 0; and that
# bpt-train writes such files, also where ranks merged a variance away.
source "$(dirname "$0")/common.sh"
make_data 400 100
# Channels of zeros, whose variance is 0.
cat >norm.yaml <<'END'
name: norm
input: [1, 28, 28]
classes: 10
layers:
  - conv: {name: conv1, filters: 4, kernel: 5}
  - relu
  - maxpool: {kernel: 4}
  - pad_channels: {channels: 8}
  - batchnorm: {name: norm1}
  - fc: {name: fc1, outputs: classes}
END
train_it() { # RUN OPTION...
    local output=$1
    shift
    run 0 "$@" --data data --model norm.yaml --batch-size 10 --threads 1 --output "$output" --eval-every 0
}
evaluate() { # STATUS FILE
    local fails=run
    [ "$1" -ne 0 ] && fails=fails_well
    $fails "$1" "$eval" --data data --model norm.yaml --weights "$2"
}

train_it runs/one "$train" --epochs 1
evaluate 0 runs/one/model.safetensors
evaluate 3 runs/one/nowhere.safetensors
says 'hint: the final weights of a run are RUN/model.safetensors'
run 3 "$eval" --data data --model norm.yaml --weights runs/one
says 'hint: the final weights of a run are RUN/model.safetensors'

damage() { # TENSOR INDEX VALUE: the file damaged.safetensors with one other value
    python3 - "$@" <<'END'
import json, struct, sys
tensor, index, value = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
data = bytearray(open("runs/one/model.safetensors", "rb").read())
(length,) = struct.unpack_from("<Q", data, 0)
begin = json.loads(data[8:8 + length])[tensor]["data_offsets"][0]
struct.pack_into("<f", data, 8 + length + begin + 4 * index, value)
open("damaged.safetensors", "wb").write(data)
END
}
refused() { # TENSOR INDEX VALUE SAYS
    damage "$1" "$2" "$3"
    evaluate 3 damaged.safetensors
    says "tensor $1: value $(($2 + 1)) of "
    says "$4"
}
refused norm1.running_var 3 -0.5 'is -0.5, a variance below 0'
refused norm1.running_var 7 nan 'not a finite number'
refused norm1.running_mean 0 inf 'not a finite number'
refused conv1.weight 99 nan 'not a finite number'
refused fc1.bias 9 -inf 'not a finite number'
damage norm1.running_mean 0 -0.5 # a mean may be
evaluate 0 damaged.safetensors

# Each of several ranks takes nearly the whole variance of a channel of zeros away.
for ranks in 2 4; do
    train_it runs/many-$ranks ranks $ranks "$train" --epochs 2.5 --update agwu --sync-every 12 --log-level warn
    evaluate 0 runs/many-$ranks/model.safetensors
    run 0 "$train" --replay runs/many-$ranks
done
