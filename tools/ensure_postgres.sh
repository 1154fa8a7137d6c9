#!/usr/bin/env bash
# Makes sure that the tests find a PostgreSQL server (14 or newer): on the PATH, where Debian keeps it, or installed here.
# Without one those tests are skipped, and say so; everything else runs.
set -euo pipefail

. "${BASH_SOURCE[0]%/*}/apt.sh"

readonly needed=14

server_command() {
    command -v postgres || find /usr/lib/postgresql -path '*/bin/postgres' 2>/dev/null | sort --version-sort | tail -n 1
}

check() {
    local output
    server=$(server_command)
    major=""
    [ -n "$server" ] || return 1
    output=$("$server" --version) || return 1
    [[ $output =~ \)\ ([0-9]+) ]] || return 1
    major=${BASH_REMATCH[1]}
    [ "$major" -ge "$needed" ]
}

if check || { install_with_apt postgresql && check; }; then
    echo "PostgreSQL $major: $server"
else
    echo "No PostgreSQL $needed or newer was found or could be installed: its tests will be SKIPPED." >&2
fi
