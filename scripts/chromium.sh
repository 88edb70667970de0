#!/bin/sh
# Prints the path of a Chromium for the browser tests; installs one if none is found.
set -eu
cd "$(dirname "$0")/.."

find_one() {
    if [ -n "${KILTER_CHROMIUM:-}" ] && [ -x "$KILTER_CHROMIUM" ]; then
        echo "$KILTER_CHROMIUM"
        return
    fi
    for name in chromium chromium-browser google-chrome google-chrome-stable; do
        command -v "$name" && return
    done
    for path in "${PLAYWRIGHT_BROWSERS_PATH:-$HOME/.cache/ms-playwright}"/chromium-*/chrome-linux*/chrome; do
        [ -x "$path" ] && echo "$path" && return
    done
    return 0
}

found=$(find_one)
if [ -z "$found" ] && [ "$(id -u)" = 0 ] && command -v apt-get > /dev/null; then
    echo "kilter: installing chromium and fonts-noto-cjk for the browser tests" >&2
    { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends chromium fonts-noto-cjk; } >&2 || true
    found=$(find_one)
fi
if [ -z "$found" ]; then
    echo "kilter: fetching a Chromium with Playwright for the browser tests" >&2
    .venv/bin/python -m playwright install chromium >&2 || true
    found=$(find_one)
fi
if [ -z "$found" ]; then
    echo "kilter: no Chromium is found and none could be installed: install one" \
        "(apt-get install chromium fonts-noto-cjk), or name one with KILTER_CHROMIUM=/path" >&2
    exit 1
fi
echo "$found"
