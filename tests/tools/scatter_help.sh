# What the tests of --data-mode scatter share; sourced by them after common.sh.

# Only rank 0 has the dataset: the others are in a folder of their own, where its path leads nowhere.
cat >apart <<'END_OF_APART'
#!/bin/sh
[ "$OMPI_COMM_WORLD_RANK" = 0 ] && exec "$@"
mkdir -p "apart-$OMPI_COMM_WORLD_RANK" && cd "apart-$OMPI_COMM_WORLD_RANK" && exec "$@"
END_OF_APART
chmod +x apart
scattered=("${common[@]}" --model "$work/tiny.yaml" --data-mode scatter --scratch "$work/scratch")

# What each rank should have in the end, by the latest event "shares", and what it was given.
check_given() { # RUN EXPRESSION...: true for every rank r but 0; held, test, found, received: of it; all: of the split
    python3 - "$@" <<'END_OF_CHECK' || die "what the ranks of $1 were given is not as it should be"
import json, sys
run = sys.argv[1]
summary = json.load(open(run + "/summary.json"))
shares = [e for e in map(json.loads, open(run + "/metrics.jsonl")) if e["event"] == "shares"]
m, n_test, all = len(summary["ranks"]), 500, 2000
bytes_of_one = 784 + 2 + 4
assert summary["data_mode"] == "scatter", summary
sent = summary["ranks"][0]
assert sent["data_samples_received"] == sent["data_samples_found"] == 0, sent
assert sent["data_bytes_sent"] == bytes_of_one * sent["data_samples_sent"], sent
assert sent["data_samples_sent"] == sum(r["data_samples_received"] for r in summary["ranks"]), summary
for r, rank in enumerate(summary["ranks"][1:], 1):
    received, found = rank["data_samples_received"], rank["data_samples_found"]
    assert rank["data_samples_sent"] == 0, rank
    assert rank["data_bytes_received"] == bytes_of_one * received, rank
    held = shares[-1]["held"][r] if shares else None
    test = n_test * (r + 1) // m - n_test * r // m
    batch = 20 * (r + 1) // m - 20 * r // m
    for expression in sys.argv[2:]:
        if not eval(expression):
            sys.exit(f"rank {r}: not true: {expression}: held {held}, test {test}, found {found}, received {received}")
END_OF_CHECK
}
