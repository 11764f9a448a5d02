# What the scripts here share. Sourced, with the working directory at the project's root.

say() { printf 'infra: %s\n' "$*"; }
fail() { printf 'infra: %s\n' "$*" >&2; exit 1; }

root=$PWD
target=$(realpath "${CARGO_TARGET_DIR:-target}")
python="$target/infra/bin/python"
provider=5.100.0

command -v terraform >/dev/null 2>&1 ||
    fail "terraform is missing
hint: install 1.11 or newer (developer.hashicorp.com/terraform/install), then run this again"

# Nothing of the user's, whose file may even be named and missing.
export TF_CLI_CONFIG_FILE="$root/infra/tests/terraform.rc"
export TF_IN_AUTOMATION=1 TF_INPUT=0 CHECKPOINT_DISABLE=1

# A directory of providers as `terraform providers mirror` makes it, where machines have one; elsewhere `init` asks the
# registry.
plugin_dir="${TF_PLUGIN_DIR:-}"
if [ -z "$plugin_dir" ]; then
    found=$(find /opt /usr/local /usr/share -path "*/hashicorp/aws/$provider/*" \
        -name 'terraform-provider-aws_*' -print -quit 2>/dev/null || true)
    # ROOT/REGISTRY/hashicorp/aws/…
    [ -z "$found" ] || plugin_dir=$(dirname "${found%%/hashicorp/aws/*}")
fi

# Or each directory would have its own copy of it from the registry.
if [ -z "$plugin_dir" ]; then
    export TF_PLUGIN_CACHE_DIR="$target/terraform-plugins" TF_PLUGIN_CACHE_MAY_BREAK_DEPENDENCY_LOCK_FILE=1
    mkdir -p "$TF_PLUGIN_CACHE_DIR"
fi

# tf_init DIRECTORY
tf_init() {
    if [ -n "$plugin_dir" ]; then
        set -- "$1" "-plugin-dir=$plugin_dir"
    fi
    directory=$1
    shift
    terraform -chdir="$directory" init -backend=false -no-color "$@" >"$target/infra-init.log" 2>&1 ||
        { cat "$target/infra-init.log" >&2; fail "init of $directory failed
hint: TF_PLUGIN_DIR names a directory with the provider, as \`terraform providers mirror\` makes it"; }
}
