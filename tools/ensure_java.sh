#!/usr/bin/env bash
# Makes sure that Spark finds a Java it can run on: JAVA_HOME's, the PATH's, or one installed here on Debian and Ubuntu.
set -euo pipefail

readonly needed=17
readonly apt_package=openjdk-17-jre-headless

# Spark starts JAVA_HOME's java whenever JAVA_HOME is set, and looks at the PATH only otherwise.
java_command() {
    if [ -n "${JAVA_HOME:-}" ]; then
        echo "$JAVA_HOME/bin/java"
    else
        command -v java || true
    fi
}

# "1.8.0_402" is 8, "17.0.15" is 17, "25-ea" is 25.
major_version() {
    local output
    output=$("$1" -version 2>&1) || return 1
    [[ $output =~ version\ \"(1\.)?([0-9]+) ]] || return 1
    echo "${BASH_REMATCH[2]}"
}

describe_found() {
    local java=$1 major=$2
    if [ -z "$java" ]; then
        echo "no Java was found"
    elif [ -z "$major" ]; then
        echo "$java does not say its version"
    else
        echo "$java is Java $major"
    fi
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

# Debian 13 no longer has Java 17; its default is newer.
install_with_apt() {
    local as_root package
    command -v apt-get >/dev/null || return 1
    as_root=$(privilege) || return 1
    # shellcheck disable=SC2086  # as_root is a list of words
    $as_root DEBIAN_FRONTEND=noninteractive apt-get update -qq >&2 || return 1
    for package in "$apt_package" default-jre-headless; do
        echo "Installing $package." >&2
        # shellcheck disable=SC2086
        if $as_root DEBIAN_FRONTEND=noninteractive apt-get install -qq --yes --no-install-recommends "$package" >&2; then
            return 0
        fi
    done
    return 1
}

check() {
    java=$(java_command)
    major=""
    [ -z "$java" ] || major=$(major_version "$java") || major=""
    [ -n "$major" ] && [ "$major" -ge "$needed" ]
}

if check; then
    echo "Java $major: $java"
    exit 0
fi

found=$(describe_found "$java" "$major")
# An install cannot help while JAVA_HOME points elsewhere.
if [ -z "${JAVA_HOME:-}" ] && install_with_apt && check; then
    echo "Java $major: $java"
    exit 0
fi

cat >&2 <<MESSAGE
Whence needs Java $needed or newer for Spark: $found.
Install one and put it on the PATH, or set JAVA_HOME to it:
  apt-get install $apt_package      (Debian, Ubuntu)
  dnf install java-17-openjdk-headless         (Fedora, RHEL)
  brew install openjdk@17                      (macOS)
MESSAGE
exit 1
