#!/usr/bin/env bash
# Makes sure that Spark finds a Java it can run on: JAVA_HOME's, the PATH's, or one installed here on Debian and Ubuntu.
set -euo pipefail

. "${BASH_SOURCE[0]%/*}/apt.sh"

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
# An install cannot help while JAVA_HOME points elsewhere. Debian 13 no longer has Java 17; its default is newer.
if [ -z "${JAVA_HOME:-}" ] && install_with_apt "$apt_package" default-jre-headless && check; then
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
