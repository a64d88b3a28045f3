# What the tests of stopping and going on share; sourced by them after common.sh.
n_epochs=$(length 12 6)
lasts=(--lr 0.01 --epochs $n_epochs --eval-every 4) # about a second

newest() { # RUN: its newest whole checkpoint
    find "$1/checkpoints" -name DONE | sort | tail -n 1 | xargs -r dirname
}

stopped() { # RUN: ended early, checkpoint whole, nothing of an end
    says "checkpoint saved"
    says "--resume auto"
    [ "$(grep -c '^bpt-train: ' err)" -eq 1 ] || die "not one line that says it stopped"
    [ -n "$(newest "$1")" ] || die "no whole checkpoint in $1"
    [ ! -e "$1/summary.json" ] || die "a stopped run has a summary"
}

older_times() { # RUN: its newest checkpoint becomes one of before times in steps were told apart
    local step
    step=$(newest "$1")
    sed -i -E 's/"(step|path|work)_ns": [0-9]+, *//g' "$step"/rank-*.json
    grep -qE '"(step|path|work)_ns"' "$step"/rank-*.json && die "the times are still there"
    seal "$step"
}
