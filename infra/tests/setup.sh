#!/bin/sh
# Installs what the checks of infra/ need beside terraform: a policy scanner and the schemas of Kubernetes, in a virtual
# environment beside what cargo builds; and bubblewrap, which starts the image. Does nothing that is done already.
set -eu
cd "$(dirname "$0")/../.."

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"
    elif command -v sudo >/dev/null 2>&1; then sudo "$@"
    else fail "'$*' needs root, and sudo is missing; run it as root, then run this again"
    fi
}

# apt_install PACKAGE WHY
apt_install() {
    command -v apt-get >/dev/null 2>&1 ||
        fail "$1 is missing, and so is apt-get; install it by other means, then run this again"
    say "installing $1, $2"
    as_root apt-get update -qq
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$1" >/dev/null
}

command -v bwrap >/dev/null 2>&1 || apt_install bubblewrap "which starts the image without a container engine"
command -v openssl >/dev/null 2>&1 || apt_install openssl "which makes a certificate for the image's test"

venv="${CARGO_TARGET_DIR:-target}/infra"
wanted=infra/tests/requirements.txt
if cmp -s "$wanted" "$venv/requirements.txt"; then
    say "the policy scanner is here"
    exit
fi
python3 -c 'import ensurepip, venv' 2>/dev/null || apt_install python3-venv "where the policy scanner is installed"
say "installing the policy scanner and the schemas of Kubernetes"
rm -rf "$venv"
python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check -r "$wanted"
cp "$wanted" "$venv/requirements.txt"
