#!/bin/sh
# Installs what the tests need beyond cargo: the servers that the gateway is tested with.
# Does nothing that is done already, and says what it does.
set -eu

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null 2>&1; then sudo "$@"
    else fail "'$*' needs root, and sudo is missing; run it as root, then run this again"
    fi
}

# apt_install COMMAND PACKAGE WHY
apt_install() {
    if command -v "$1" >/dev/null 2>&1; then
        say "$1 is here"
        return
    fi
    command -v apt-get >/dev/null 2>&1 ||
        fail "$1 is missing, and so is apt-get; install $2 by other means, then run this again"
    say "installing $2, $3"
    as_root apt-get update -qq
    # The tests start their own servers; the system's is not started.
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get install -y -qq "$2" >/dev/null
}

apt_install redis-server redis-server "the claim store that tests run against"

# The stand-in for DynamoDB and SQS lives in a directory of its own, beside what cargo builds.
ministack=1.5.33
venv="${CARGO_TARGET_DIR:-target}/venv"
if "$venv/bin/pip" show ministack 2>/dev/null | grep -q "^Version: $ministack$"; then
    say "ministack is here"
else
    apt_install python3 python3 "which the stand-in for AWS is written in"
    if ! python3 -c 'import ensurepip, venv' 2>/dev/null; then
        say "installing python3-venv, where the stand-in for AWS is installed"
        as_root apt-get update -qq
        as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq python3-venv >/dev/null
    fi
    say "installing ministack, the stand-in for AWS that tests run against"
    python3 -m venv "$venv"
    "$venv/bin/pip" install -q --disable-pip-version-check "ministack==$ministack"
fi
