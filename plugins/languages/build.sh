#!/bin/sh
# Builds the plugins in other languages, runs their signatures through the real host, and measures them beside Rust.
# Installs what it needs by name: componentize-js from npm, componentize-py from PyPI.
set -eu
cd "$(dirname "$0")/../.."

say() { printf 'languages: %s\n' "$*"; }
fail() { printf 'languages: %s\n' "$*" >&2; exit 1; }

target=${CARGO_TARGET_DIR:-target}
hookgate=$target/debug/hookgate
out=$target/languages
javascript=0.23.0
python=0.25.1

[ -x "$hookgate" ] || fail "$hookgate is missing: make build"
for program in node npm python3; do
    command -v "$program" >/dev/null 2>&1 && continue
    command -v apt-get >/dev/null 2>&1 || fail "$program is missing; install it, then run this again"
    say "installing nodejs, npm and python3-venv"
    apt-get update -qq && apt-get install -y -qq nodejs npm python3 python3-venv >/dev/null
done
mkdir -p "$out"

if ! grep -q "\"version\": \"$javascript\"" "$out/node_modules/@bytecodealliance/componentize-js/package.json" 2>/dev/null; then
    say "installing componentize-js $javascript"
    npm install --silent --no-audit --no-fund --prefix "$out" "@bytecodealliance/componentize-js@$javascript"
fi
if ! "$out/venv/bin/componentize-py" --version 2>/dev/null | grep -q "$python"; then
    say "installing componentize-py $python"
    python3 -m venv "$out/venv"
    "$out/venv/bin/pip" install -q --disable-pip-version-check "componentize-py==$python"
fi

say "linear.js"
# Beside the packages, which node finds from there.
cp plugins/languages/javascript/build.mjs "$out/build.mjs"
node "$out/build.mjs" plugins/languages/javascript/linear.js wit "$out/linear-js.wasm"
say "typeform.py"
"$out/venv/bin/componentize-py" -d wit -w provider componentize -p plugins/languages/python typeform -o "$out/typeform-py.wasm"

"$hookgate" plugin test --runtimes "$out/linear-js.wasm" --vectors plugins/languages/javascript/vectors.json
"$hookgate" plugin test --runtimes "$out/typeform-py.wasm" --vectors plugins/languages/python/vectors.json
"$hookgate" plugin bench --runtimes "$out/linear-js.wasm" --vectors plugins/languages/javascript/vectors.json
"$hookgate" plugin bench --runtimes "$out/typeform-py.wasm" --vectors plugins/languages/python/vectors.json
say "and in Rust:"
"$hookgate" plugin bench "$target/plugins/github.wasm"
