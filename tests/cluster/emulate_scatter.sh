#!/usr/bin/env bash
# Of three hosts one has the dataset, in memory of its own: the others train on what it gives them, with a slow link too.
source "$(dirname "$0")/cluster.sh"
make_data 1000 200
make_model
cat >job <<'END_OF_JOB'
"$BPT_ON" one cp -r data /dev/shm/data || exit 9
"$BPT_ON" two test ! -e /dev/shm/data || exit 9
exec "$@"
END_OF_JOB
hosts=(--hosts one:cpu=0.6,two:cpu=0.3,three:cpu=0.3 --link 1gbit --link-of three=20mbit)
# So many epochs that all has come before the last.
job=("$mpirun" -np 3 "$train" "${common[@]}" --data /dev/shm/data --update agwu --rebalance 0 --sync-every 4 --epochs 60 --lr 0.01)

run 0 "$emulate" "${hosts[@]}" -- sh ./job "${job[@]}" --data-mode scatter --scratch /dev/shm/scratch --output run
check_json run/summary.json '[r["host"] for r in d["ranks"]] == ["one", "two", "three"]' 'd["data_mode"] == "scatter"' \
    'all(r["samples"] > 0 for r in d["ranks"])'
python3 - <<'END_OF_CHECK' || die "the bytes of samples that were sent are not those of the shares"
import json
summary = json.load(open("run/summary.json"))
shares = [e for e in map(json.loads, open("run/metrics.jsonl")) if e["event"] == "shares"]
held, m = shares[-1]["held"], len(summary["ranks"])
assert sum(held) == 1000, shares
wanted = [0] + [held[r] + 200 * (r + 1) // m - 200 * r // m for r in range(1, m)]
received = [r["data_samples_received"] for r in summary["ranks"]]
assert received == wanted, (received, wanted)
assert summary["ranks"][0]["data_bytes_sent"] == sum(wanted) * (784 + 2 + 4), summary
END_OF_CHECK

# Without that mode it is an error, and --check says so.
run 3 "$emulate" "${hosts[@]}" -- sh ./job "${job[@]}" --output no
run 2 "$emulate" "${hosts[@]}" -- sh ./job "${job[@]}" --check
says 'error: rank 2 on three: there is no dataset at /dev/shm/data' out
run 0 "$emulate" "${hosts[@]}" -- sh ./job "${job[@]}" --data-mode scatter --scratch /dev/shm/scratch --check
