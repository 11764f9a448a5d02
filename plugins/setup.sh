#!/bin/sh
# Installs what building Hookgate and its plugins needs beyond cargo: a C compiler and the WebAssembly target.
# Does nothing that is done already, and says what it does.
set -eu

say() { printf 'setup: %s\n' "$*"; }
fail() { printf 'setup: %s\n' "$*" >&2; exit 1; }

target=wasm32-unknown-unknown
wanted=1.95

command -v cargo >/dev/null 2>&1 ||
    fail "cargo is missing; install Rust $wanted or newer (https://rustup.rs), then run this again"

found=$(rustc --version | cut -d' ' -f2)
oldest=$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n1)
[ "$oldest" = "$wanted" ] || fail "rustc is $found; Hookgate needs $wanted or newer (rustup update)"

if ! command -v cc >/dev/null 2>&1; then
    command -v apt-get >/dev/null 2>&1 || fail "a C compiler (cc) is missing; install gcc or clang"
    say "installing gcc, which some crates build C code with"
    apt-get update -qq && apt-get install -y -qq gcc libc6-dev >/dev/null
fi

# Asked of rustc, not of rustup: a distribution's Rust may have the target without rustup.
if [ -d "$(rustc --print target-libdir --target $target)" ]; then
    say "rustc $found and its target $target are here"
elif command -v rustup >/dev/null 2>&1; then
    say "adding the target $target to rustc $found"
    rustup target add "$target" ||
        fail "rustup could not add $target; see 'Toolchain' in CONTRIBUTING.md for other ways"
else
    fail "rustc has no target $target, and rustup is missing; see 'Toolchain' in CONTRIBUTING.md"
fi
