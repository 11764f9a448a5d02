#!/usr/bin/env bash
# Runs every fuzz target, or those that are named, for FUZZ_SECONDS each (60). Needs nightly Rust; installs
# cargo-fuzz where it is missing. Inputs that reach something new are kept in target/fuzz/corpus; one that crashes
# a target is printed with the command that repeats it.
#
# Without a sanitizer: the gateway has no unsafe code of its own, so panics and broken assertions are what there
# is to find, and AddressSanitizer would double the build of wasmtime. `SANITIZER=address` turns it on.
set -euo pipefail
cd "$(dirname "$0")/../.."

seconds=${FUZZ_SECONDS:-60} sanitizer=${SANITIZER:-none}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")/fuzz
targets=("$@")
[ $# -gt 0 ] || targets=(ingress config component verdict)

cargo +nightly --version >/dev/null 2>&1 ||
    { echo "fuzz: nightly Rust is missing: rustup toolchain install nightly --profile minimal" >&2; exit 1; }
command -v cargo-fuzz >/dev/null || cargo install --locked cargo-fuzz

fuzz() { # command, target, more
    cargo +nightly fuzz "$1" --fuzz-dir tests/fuzz --target-dir "$target" --sanitizer "$sanitizer" "${@:2}"
}

for name in "${targets[@]}"; do
    fuzz build "$name"
done
for name in "${targets[@]}"; do
    mkdir -p "$target/corpus/$name"
    # A timeout of 10 s is the bound on time that the targets promise; memory beyond 2 GiB ends a run too.
    fuzz run "$name" "$target/corpus/$name" "tests/fuzz/seeds/$name" -- -max_total_time="$seconds" -timeout=10 \
        -max_len=16384 -verbosity=0 -print_final_stats=1
done
