#!/usr/bin/env bash
# Makes sure that npm is there, which gets what the page of whence serve draws with: on the PATH, or installed here.
# Without it the page shows tables, but draws no graphs; everything else runs.
set -euo pipefail

. "${BASH_SOURCE[0]%/*}/apt.sh"

check() {
    npm=$(command -v npm)
}

if check || { install_with_apt npm && check; }; then
    echo "npm: $npm"
else
    echo "No npm was found or could be installed: the page of whence serve will draw no graphs." >&2
fi
