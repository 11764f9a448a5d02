#!/usr/bin/env bash
# All checks of infra/ that need neither an account nor a stand-in. A check that cannot run is an error.
set -euo pipefail
cd "$(dirname "$0")/../.."
. infra/tests/lib.sh

passed=0
step() { # step WHAT COMMAND...: its output only where it fails
    local what=$1
    shift
    if "$@" >"$target/infra-check.log" 2>&1; then
        passed=$((passed + 1))
        say "ok: $what$(sed -n 's/^Success! \([0-9].*\)$/: \1/p' "$target/infra-check.log")"
    else
        cat "$target/infra-check.log" >&2
        printf '%d passed, 1 failed: %s\n' "$passed" "$what"
        exit 1
    fi
}

[ -x "$python" ] || fail "$python is missing
hint: infra/tests/setup.sh"

step "format" terraform -chdir=infra fmt -check -diff -recursive
for directory in infra infra/modules/* infra/examples/* infra/tests/end-to-end; do
    tf_init "$directory"
    step "$directory is valid" terraform -chdir="$directory" validate -no-color
done
# What the READMEs show is valid as it stands there, but for where the module is.
for readme in README.md infra/README.md; do
    shown="$target/infra-readme/${readme//\//-}"
    rm -rf "$shown" && mkdir -p "$shown"
    sed -n '/^```hcl$/,/^```$/{/^```/d;p}' "$readme" | sed "s|\"./infra\"|\"$root/infra\"|" >"$shown/main.tf"
    [ -s "$shown/main.tf" ] || fail "$readme shows no module
hint: put one into a block of hcl"
    tf_init "$shown"
    step "what $readme shows is valid" terraform -chdir="$shown" validate -no-color
done
step "terraform test" terraform -chdir=infra test -no-color

scan() { "$target/infra/bin/checkov" "$@" --compact --quiet --skip-download; }
step "policies: Terraform" scan --directory infra --framework terraform --skip-path '\.terraform' --skip-path infra/tests
step "policies: image" scan --file Dockerfile --framework dockerfile
step "policies: Kubernetes" scan --directory infra/kubernetes --framework kubernetes
# A scanner that finds nothing in this has found nothing in the rest.
bad="$target/infra-bad"
mkdir -p "$bad"
printf 'resource "aws_sqs_queue" "bad" {\n  name = "bad"\n  sqs_managed_sse_enabled = false\n}\n' >"$bad/main.tf"
finds() { ! scan --directory "$bad" --framework terraform; }
step "policies: the scanner finds a queue without encryption" finds

step "tables of variables and outputs" "$python" infra/tests/docs.py
step "names of metrics, alarms, actions and keys are the gateway's" "$python" infra/tests/names.py
step "Kubernetes manifests fit its schemas" "$python" infra/tests/manifests.py
printf '%d passed, 0 failed\n' "$passed"
