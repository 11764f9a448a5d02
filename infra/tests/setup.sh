#!/bin/sh
# Installs what `make infra-check` needs beside terraform: a policy scanner and the schemas of Kubernetes, in a virtual
# environment beside what cargo builds. Does nothing that is done already.
set -eu
cd "$(dirname "$0")/../.."

venv="${CARGO_TARGET_DIR:-target}/infra"
wanted=infra/tests/requirements.txt
if cmp -s "$wanted" "$venv/requirements.txt"; then
    echo "setup: the policy scanner is here"
    exit
fi
python3 -c 'import ensurepip, venv' 2>/dev/null || {
    echo "setup: python3 with venv is missing
hint: make backends installs it where it can" >&2
    exit 1
}
echo "setup: installing the policy scanner and the schemas of Kubernetes"
python3 -m venv "$venv"
"$venv/bin/pip" install -q --disable-pip-version-check -r "$wanted"
cp "$wanted" "$venv/requirements.txt"
