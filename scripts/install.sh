#!/bin/sh
# Makes .venv and installs what `make run` or `make test` needs, only when that has changed.
# Usage: install.sh run|test     PYTHON names the interpreter; else the first fitting one is taken.
set -eu
umask 022 # the database server runs as a user of its own and reads its files here
cd "$(dirname "$0")/.."

venv=.venv
case "$1" in
    run) files="constraints.txt requirements.txt" ;;
    test) files="constraints.txt requirements.txt requirements-dev.txt" ;;
    *) echo "usage: $0 run|test" >&2; exit 2 ;;
esac

fail() {
    echo "kilter: $*" >&2
    exit 1
}

fits() {
    "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null
}

version() {
    "$1" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null || echo none
}

chosen() {
    for name in ${PYTHON:-python3 python3.13 python3.12 python3.11}; do
        if fits "$name"; then
            echo "$name"
            return
        fi
    done
}

python=$(chosen)
if [ -z "$python" ]; then
    name=${PYTHON:-python3}
    fail "Kilter needs Python 3.11, 3.12 or 3.13, and $name is version $(version "$name"):" \
        "install one and name it, as in: make run PYTHON=python3.11"
fi

# A virtual environment of another Python, or half made, is made anew.
if [ -d "$venv" ]; then
    had=$(version "$venv/bin/python")
    if [ "$had" = none ] || [ ! -x "$venv/bin/pip" ] || { [ -n "$PYTHON" ] && [ "$had" != "$(version "$python")" ]; }; then
        echo "kilter: making .venv anew (it had Python $had)"
        rm -rf "$venv"
    fi
fi
[ -x "$venv/bin/python" ] && python=$venv/bin/python

wanted=$({ version "$python"; for file in $files; do cat "$file"; done; } | sha256sum | cut -d ' ' -f 1)
stamp=$venv/kilter-$1.sha256
if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    exit 0
fi

if [ ! -x "$venv/bin/pip" ]; then
    "$python" -c 'import venv, ensurepip' 2>/dev/null ||
        fail "$python lacks the venv module: apt-get install python3-venv (or python$(version "$python")-venv)"
    "$python" -m venv --clear "$venv" || fail "the virtual environment $venv cannot be made (see above)"
fi
echo "kilter: installing packages for make $1 into .venv; the first time takes a minute or two"
for file in $files; do last=$file; done
"$venv/bin/python" -m pip install --quiet --no-input --disable-pip-version-check \
    -c constraints.txt -r "$last" ||
    fail "the packages of $last could not be installed (see above): is the package index reachable?"
echo "$wanted" > "$stamp"
