# Sourced by the scripts beside it: packages of Debian and Ubuntu.
# shellcheck shell=bash

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

# Installs the first of the packages that can be installed.
install_with_apt() {
    local as_root package
    command -v apt-get >/dev/null || return 1
    as_root=$(privilege) || return 1
    # shellcheck disable=SC2086  # as_root is a list of words
    $as_root DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || return 1
    for package in "$@"; do
        echo "Installing $package." >&2
        # shellcheck disable=SC2086
        if $as_root DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "$package" >&2; then
            return 0
        fi
    done
    return 1
}
