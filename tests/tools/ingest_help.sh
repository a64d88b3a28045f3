# What the tests of bpt-ingest share; sourced with the program's path as $1.
set -u
ingest=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/bpt-ingest-XXXXXX") || exit 1
failures=0

finish() { # at the end of a test: removes what it made, sets the exit status
    rm -rf "$work"
    [ $failures -eq 0 ] || echo "$failures FAILED"
    [ $failures -eq 0 ]
    exit $?
}

failed() { # MESSAGE
    printf 'FAILED: %s\n' "$1"
    failures=$((failures + 1))
}

# expect STATUS TEXT ARGUMENT...: runs bpt-ingest; what it says (both streams) must hold TEXT
expect() {
    local wanted=$1 text=$2 said status
    shift 2
    said=$("$ingest" "$@" 2>&1)
    status=$?
    [ $status -eq "$wanted" ] && grep -qF -- "$text" <<<"$said" && return
    failed "bpt-ingest $*: expected status $wanted and \"$text\", got $status: $said"
}

# count_of DATASET SPLIT: its number of images, nothing if there is no such split
count_of() {
    "$ingest" info "$1" --json 2>/dev/null |
        grep -o "\"name\": \"$2\", \"count\": [0-9]*" | grep -o '[0-9]*$'
}

# flip FILE OFFSET: changes one byte; the same call again changes it back
flip() {
    local byte
    byte=$(od -An -tu1 -j "$2" -N 1 "$1" | tr -d ' ')
    printf "\\x$(printf %x $((byte ^ 64)))" |
        dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

skip() { # REASON
    echo "skipped: $1"
    rm -rf "$work"
    exit 77
}
