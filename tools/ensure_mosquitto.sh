#!/usr/bin/env bash
# Makes sure that the tests and the building find an MQTT broker: mosquitto on the PATH or where Debian puts it, or installed here.
# Without one those tests are skipped, and say so; everything else runs.
set -euo pipefail

. "${BASH_SOURCE[0]%/*}/apt.sh"

check() {
    broker=$(command -v mosquitto || ls /usr/sbin/mosquitto 2>/dev/null)
}

if check || { install_with_apt mosquitto && check; }; then
    echo "MQTT broker: $broker"
else
    echo "No mosquitto was found or could be installed: the tests with a broker will be SKIPPED." >&2
fi
