#!/usr/bin/env bash
# Makes each kind of untrue statement in a copy of the documents: docs_rules.py must find it.
#
# usage: docs_rules_selftest.sh ROOT PROGRAMS
set -u
rules=$(cd "$(dirname "$0")" && pwd)/docs_rules.py
root=$1 programs=$2
tree=$(mktemp -d "${TMPDIR:-/tmp}/bpt-docs-XXXXXX") || exit 1
trap 'rm -rf "$tree"' EXIT
failures=0

check() { # STATUS TEXT: what the rules must end with and say of the tree
    local answer status
    answer=$(python3 "$rules" "$tree" "$programs" 2>&1)
    status=$?
    [ $status -eq "$1" ] && grep -qF -- "$2" <<<"$answer" && return
    printf 'FAILED: expected status %d and "%s", got %d:\n%s\n' "$1" "$2" $status "$answer"
    failures=$((failures + 1))
}

restore() {
    rm -rf "${tree:?}"/README.md "${tree:?}"/docs
    cp -R "$root"/README.md "$root"/docs "$tree"
}

untrue() { # TEXT FILE SED: an edit, and what must be said of it
    sed -i "$3" "$tree/$2"
    check 1 "$1"
    restore
}

add() { # TEXT LINE...: the same, with lines at the end of README.md
    printf '%s\n' "${@:2}" >>"$tree/README.md"
    check 1 "$1"
    restore
}

cp -R "$root"/{base,scheduler,storage,inner,outer,tools,tests,LICENSE} "$tree"
restore
check 0 'are true'

# links and paths
add 'link to docs/none.md: no such file' '[x](docs/none.md)'
add 'link to docs/models.md#none: no such heading' '[x](docs/models.md#none)'
add 'link to #none: no such heading' '[x](#none)'
add '`base/none.h`: no such file' 'see `base/none.h`'

# options of programs, in blocks, in the text, alone
add 'bpt-train has no option --none' '```sh' 'bpt-train --data x --none 1' '```'
add 'bpt-train has no option --json' '```sh' 'mpirun -np 2 bin/bpt-train \' '  --data x --json' '```'
add 'bpt-ingest has no command none' '```' 'bpt-ingest none x --out y' '```'
add 'no option --seed' '```sh' 'bpt-ingest idx a b --out y --seed 2' '```'
add 'bpt-eval has no option -o' 'as in `bpt-eval -o x`.'
add '`--none`: no program has this option' 'the option `--none`.'

# manual pages
untrue '--max-staleness of --help is missing' docs/man/bpt-train.1 '/^\.It Fl -max-staleness/d'
untrue '-b of --help is missing' docs/man/bpt-eval.1 's/^\.It Fl b , Fl/.It Fl/'
untrue '--force of --help is missing' docs/man/bpt-ingest.1 '/^\.It Fl -force/d'
untrue '--lr: --help has the default 0.02' docs/man/bpt-train.1 's/^Default: 0\.02\.$/Default: 0.2./'
untrue '--jsn: the program has no such option' docs/man/bpt-eval.1 's/^\.It Fl -json/&\n.It Fl -jsn/'
rm "$tree/docs/man/bpt-eval.1"
check 1 'bpt-eval.1: missing'

if [ $failures -gt 0 ]; then exit 1; fi
echo "every untrue statement was found"
