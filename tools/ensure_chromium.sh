#!/usr/bin/env bash
# Makes sure that the tests find a browser to open pages with: Chromium or Chrome on the PATH, or Chromium installed here.
# Without one those tests are skipped, and say so; everything else runs.
set -euo pipefail

. "${BASH_SOURCE[0]%/*}/apt.sh"

check() {
    browser=$(command -v chromium || command -v google-chrome)
}

if check || { install_with_apt chromium && check; }; then
    echo "Browser: $browser"
else
    echo "No Chromium was found or could be installed: the tests in a browser will be SKIPPED." >&2
fi
