#!/usr/bin/env bash
# Makes sure that the tests find a PostgreSQL server (14 or newer): on the PATH, where Debian keeps it, or installed here.
# Without one those tests are skipped, and say so; everything else runs.
set -euo pipefail

readonly needed=14
readonly apt_package=postgresql

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

# Prints the words to put before apt-get; fails where this user cannot install packages.
privilege() {
    if [ "$(id -u)" -eq 0 ]; then
        echo "env"
    elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
        echo "sudo -n env"
    else
        return 1
    fi
}

install_with_apt() {
    local as_root
    command -v apt-get >/dev/null || return 1
    as_root=$(privilege) || return 1
    echo "Installing $apt_package." >&2
    # shellcheck disable=SC2086  # as_root is a list of words
    $as_root DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || return 1
    # shellcheck disable=SC2086
    $as_root DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "$apt_package" >&2
}

if check || { install_with_apt && check; }; then
    echo "PostgreSQL $major: $server"
else
    echo "No PostgreSQL $needed or newer was found or could be installed: its tests will be SKIPPED." >&2
fi
