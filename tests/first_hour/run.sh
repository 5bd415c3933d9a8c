#!/usr/bin/env bash
# The first hour of a newcomer, from an empty folder: bash tests/first_hour/run.sh
#
# A new virtual environment, the README's own lines, examples 01 and 04, two planted mistakes (a read of what
# nobody wrote, a wait left out) that must be found with code and line, and their mends. Prints the seconds
# of each step.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH
export NO_COLOR=1 PIP_QUIET=1

cp -R "$root" "$work/warploom"
cd "$work/warploom"
rm -rf .venv build ./*.egg-info

steps=()
step() { # step NAME COMMAND…: runs it, and notes its seconds
    local name=$1 began=$SECONDS
    shift
    printf '\n=== %s\n' "$name"
    "$@"
    steps+=("$(printf '%5d s  %s' $((SECONDS - began)) "$name")")
}

fail() {
    echo "first hour: $*" >&2
    exit 1
}

# Command N of the README's section "Try it".
try_it() {
    awk -v wanted="$1" '/^## Try it/ { inside = 1; next } /^## / { inside = 0 }
        inside && /^python3 -m venv/ && ++seen == wanted' README.md
}

install() {
    local command
    command=$(try_it 1)
    bash -euo pipefail -c "${command%%&& .venv/bin/warploom*}"
}

# The line of the README as it stands; what it installs is there already.
answer() {
    local text
    text=$(bash -euo pipefail -c "$(try_it 1)" | tee /dev/stderr)
    grep -q Paris <<<"$text" || fail "the model did not answer Paris: $text"
}

example() {
    .venv/bin/python "$1" >/dev/null || fail "$1 ends with $?"
}

# An output that is read before anything has written it.
plant() {
    sed 's/^\( *\)wl\.store(out\[\(.*\)\], \(.*\))$/\1wl.store(out[\2], \3 + wl.load(out[\2]))/' \
        examples/01_add.py >planted.py
    ! cmp -s examples/01_add.py planted.py || fail "nothing was planted: examples/01_add.py changed"
}

found() {
    local text code=0 line
    text=$(.venv/bin/warploom run planted.py:add --checked 2>&1) || code=$?
    echo "$text"
    [ "$code" -eq 1 ] || fail "a planted mistake ends with $code instead of 1"
    line=$(grep -n 'wl.load(out\[' planted.py | cut -d: -f1)
    grep -q 'M002' <<<"$text" || fail "the report has no code M002"
    grep -q "planted.py:$line:" <<<"$text" || fail "the report does not name line $line"
}

mended() {
    cp examples/01_add.py planted.py
    .venv/bin/warploom run planted.py:add --checked || fail "the mended kernel ends with $?"
}

# A ring whose items are used before they have come.
unwaited() {
    local text code=0 line
    grep -v 'full\[slot\]\.wait' examples/gemm/v1_ring.py >ring.py
    ! cmp -s examples/gemm/v1_ring.py ring.py || fail "nothing was left out: v1_ring.py changed"
    text=$(.venv/bin/warploom check ring.py 2>&1) || code=$?
    echo "$text"
    [ "$code" -eq 1 ] || fail "a wait left out ends with $code instead of 1"
    line=$(grep -n 'wl.dot_async(' ring.py | cut -d: -f1)
    grep -q 'R101' <<<"$text" || fail "the report has no code R101"
    grep -q "ring.py:$line:" <<<"$text" || fail "the report does not name line $line"
}

waited() {
    cp examples/gemm/v1_ring.py ring.py
    .venv/bin/warploom check ring.py || fail "the mended ring ends with $?"
}

step "install" install
step "the model answers" answer
step "example 01" example examples/01_add.py
step "example 04" example "$(echo examples/04_*.py)"
step "plant a read of unwritten memory" plant
step "it is found" found
step "mended, it is silent" mended
step "a wait left out is found" unwaited
step "put back, it is silent" waited

printf '\n'
printf '%s\n' "${steps[@]}"
printf '%5d s  in all\n' "$SECONDS"
