#!/usr/bin/env bash
# tools/setup on machines that are played: stand-ins for dpkg-query, apt-get, sudo and the like,
# alone in PATH, answer as the case wants and write down what they were asked.
set -u
setup=$(cd "$(dirname "$0")/../.." && pwd)/tools/setup
machine=$(mktemp -d "${TMPDIR:-/tmp}/bpt-setup-XXXXXX") || exit 1
trap 'rm -rf "$machine"' EXIT
export MACHINE=$machine
failures=0

stand_in() { # NAME SCRIPT
    printf '#!/bin/bash\n%s\n' "$2" >"$machine/bin/$1"
    chmod +x "$machine/bin/$1"
}

# A machine where the user is root and every package is there but those named.
new_machine() { # PACKAGE...
    rm -rf "$machine/bin" "$machine/asked" "$machine/missing"
    mkdir "$machine/bin"
    : >"$machine/asked"
    printf '%s\n' "$@" >"$machine/missing"
    local tool
    for tool in bash env grep awk sed sort head cat dirname; do
        ln -s "$(command -v $tool)" "$machine/bin/$tool"
    done
    stand_in id 'echo 0'
    stand_in cmake 'echo "cmake version 3.25.1"'
    stand_in dpkg-query 'shift 3; for p; do grep -qx "$p" $MACHINE/missing || echo "installed $p"; done'
    stand_in apt-cache 'shift; for p; do echo "$p:"; echo "  Candidate: 1.0"; done'
    stand_in apt-get 'echo "apt-get $*" >>$MACHINE/asked
        [[ " $* " != *" install "* ]] || : >$MACHINE/missing'
}

expect() { # STATUS TEXT: runs setup without a terminal; the answer must hold TEXT
    local answer status
    answer=$(PATH=$machine/bin "$machine/bin/bash" "$setup" </dev/null 2>&1)
    status=$?
    [ $status -eq "$1" ] && grep -qF -- "$2" <<<"$answer" && return
    printf 'FAILED: expected status %d and "%s", got %d:\n%s\n' "$1" "$2" $status "$answer"
    failures=$((failures + 1))
}

asked() { # TEXT: what apt-get or sudo must have been asked; "" for nothing at all
    if [ -z "$1" ]; then
        [ -s "$machine/asked" ] || return
    else
        grep -qF -- "$1" "$machine/asked" && return
    fi
    printf 'FAILED: expected to be asked "%s", was:\n%s\n' "$1" "$(cat "$machine/asked")"
    failures=$((failures + 1))
}

# all there: quick, and apt is left alone
new_machine
expect 0 'every package is there'
asked ''

# root installs what is missing and nothing else, and the second time nothing
new_machine libhwloc-dev python3
expect 0 'every package is there'
asked 'install -y --no-install-recommends libhwloc-dev python3'
: >"$machine/asked"
expect 0 'every package is there'
asked ''

# lists that cannot be renewed need not matter
new_machine python3
stand_in apt-get 'echo "apt-get $*" >>$MACHINE/asked
    [[ " $* " == *" install "* ]] && : >$MACHINE/missing'
expect 0 'apt-get update failed; going on'

# a user whose language is another: apt's words are in it, unless somebody asks for others
new_machine python3
stand_in apt-cache 'shift; word=Installationskandidat; [ "${LC_ALL-}" = C ] && word=Candidate
    for p; do echo "$p:"; echo "  $word: 1.0"; done'
LC_ALL= LANG=de_DE.UTF-8 expect 0 'every package is there'

# a package that nobody offers, in both ways that apt says so
new_machine libdnnl-dev python3
stand_in apt-cache 'echo "libdnnl-dev:"; echo "  Candidate: (none)"; echo "python3:"; echo "  Candidate: 3"'
expect 1 'do not offer: libdnnl-dev'
stand_in apt-cache 'echo "libdnnl-dev:"; echo "  Candidate: 2"'
expect 1 'do not offer: python3'
if grep -q ' install ' "$machine/asked"; then
    echo "FAILED: tried to install although a package is not offered"
    failures=$((failures + 1))
fi

# apt that fails, and apt that only says it did its work
new_machine python3
stand_in apt-get '[[ " $* " != *" install "* ]]'
expect 1 'apt-get could not install python3'
stand_in apt-get 'exit 0'
expect 1 'not installed: python3'

# an ordinary user: without sudo, with sudo, with a sudo that asks
new_machine python3
stand_in id 'echo 1000'
expect 1 'needs root, and there is no sudo'
expect 1 'as root: apt-get install python3'
asked ''
stand_in sudo 'echo "sudo $*" >>$MACHINE/asked; [ "$1" = -n ] && shift; [ "$1" = -- ] && shift; "$@"'
stand_in true ''
expect 0 'every package is there'
asked 'sudo -n -- env DEBIAN_FRONTEND=noninteractive apt-get'
new_machine python3
stand_in id 'echo 1000'
stand_in sudo 'exit 1'
expect 1 'sudo wants a password'

# another system, an old cmake
new_machine
rm "$machine/bin/dpkg-query"
expect 1 'no Debian or Ubuntu'
new_machine
stand_in cmake 'echo "cmake version 3.22.1"'
expect 1 'cmake is version 3.22, needed is 3.25'
stand_in cmake 'echo "cmake version 3.9.6"'
expect 1 'cmake is version 3.9, needed is 3.25'
stand_in cmake 'echo "cmake version 3.31.6"'
expect 0 'every package is there'
stand_in cmake 'echo "cmake version 4.1.0-rc1"'
expect 0 'every package is there'

if [ $failures -gt 0 ]; then exit 1; fi
echo "every machine was set up or refused as it should"
