#!/usr/bin/env bash
# What a run says when it starts: the same counts as --dry-run, and whether its end may come late.
source "$(dirname "$0")/common.sh"
make_data 1600 50
make_model
cat >norm.yaml <<'END'
name: norm
input: [1, 28, 28]
classes: 10
layers:
  - conv: {name: a-convolution-with-a-long-name, filters: 4, kernel: 5, bias: false}
  - batchnorm
  - relu
  - fc: {outputs: classes}
END
run=(--data data --threads 1 --batch-size 50 --force --output runs/x --eval-every 0)

# Parameters are what is learned: 100 of the convolution, 8 of the batch norm, 23,050 behind it.
run 0 "$train" "${run[@]}" --model norm.yaml --epochs 0.1
says 'norm: 23158 parameters and 8 running statistics; data: '
says 'warm-up 0.05 epochs' # half of the run
run 0 "$train" "${run[@]}" --model norm.yaml --epochs 0.1 --warmup-epochs 1
says 'warm-up 1 epoch' && grep -q 'warm-up 1 epochs' err && die "one epochs"
run 0 "$train" "${run[@]}" --model norm.yaml --epochs 0.1 --warmup-epochs 0.5
says 'warm-up 0.5 epochs'
check_json runs/x/summary.json 'd["weight_bytes"] == 4 * (23158 + 8)'
run 0 "$train" --data data --model norm.yaml --dry-run
grep -qE '^total .* 23158 ' out || die "--dry-run counts otherwise"
says 'and 8 running statistics' out
run 0 "$train" "${run[@]}" --model tiny.yaml --epochs 0.1
says 'tiny: 2802 parameters; data: '

# One rank shares nothing with other processes: it needs no folder of MPI's, which another job that ends might
# remove meanwhile.
run 0 env OMPI_MCA_orte_tmpdir_base="$work/tiny.yaml/none" "$train" "${run[@]}" --model tiny.yaml --epochs 0.1

# The columns of --bench hold the longest name.
run 0 "$train" --model norm.yaml --bench 1 --batch-size 4 --threads 1
python3 - <<'END' || die "the columns of --bench"
lines = open("err").read().splitlines()
first = next(i for i, line in enumerate(lines) if line.startswith("layer "))
column = lines[first].index("task ")
rows = lines[first + 1:next(i for i, line in enumerate(lines) if line.startswith("workers "))]
assert any(row.startswith("a-convolution-with-a-long-name  ") for row in rows), rows
assert all(row[column - 2:column] == "  " and row[column] != " " for row in rows), rows
END

# An exchange comes every --sync-every x --batch-size x ranks samples; 1600 are an epoch.
late() { # SAYS SYNC-EVERY UPDATE
    run 0 ranks 2 "$train" "${run[@]}" --model tiny.yaml --epochs 1 --sync-every "$2" --update "$3"
    [ "$(grep -c 'a short run' err)" -eq "$([ -n "$1" ] && echo 1 || echo 0)" ] || die "$2 $3: $1"
    [ -z "$1" ] || says "a short run: 1600 samples, and the end is noticed at an exchange, every $1"
}
late '700; it may come up to 1400 samples late: lower --sync-every' 7 agwu
late '700; it may come up to 700 samples late: lower --sync-every' 7 sgwu
check_json runs/x/summary.json 'd["epochs"] == 2100 / 1600'
late '' 8 sgwu # ends where the run does
check_json runs/x/summary.json 'd["epochs"] == 1'
late '' 1 agwu
late '800; it may come' 8 agwu
