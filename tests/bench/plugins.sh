#!/usr/bin/env bash
# The size, compile time and cost of every plugin, and what a gateway with all of them takes to start: Markdown.
# Takes the release build. Each delivery is the plugin's sample, or its first valid signature.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=${CARGO_TARGET_DIR:-target}
hookgate=$target/release/hookgate
plugins=$target/plugins
[ -x "$hookgate" ] || { echo "$hookgate is missing: cargo build --release" >&2; exit 1; }

echo "| plugin | size | compiled in | a delivery, median | p99 | fuel | HMAC-SHA256 of the same body alone |"
echo "|---|---|---|---|---|---|---|"
for file in "$plugins"/*.wasm; do
    name=$(basename "$file" .wasm)
    flags=(--vectors "plugins/$name/vectors.json")
    [ ! -f "plugins/$name/options.json" ] || flags+=(--options "plugins/$name/options.json")
    "$hookgate" plugin bench "$file" "${flags[@]}" | awk -v name="$name" '
        /^component/ { size = $2 " " $3; compiled = $6; sub(",", "", size) }
        /^delivery/ { fuel = $(NF - 3) }
        /^sandbox / { median = $2; p99 = $5 }
        /^native/ { native = $2 }
        END { sub(",", "", size); printf "| `%s` | %s | %s | %s us | %s us | %s | %s us |\n", name, size, compiled, median, p99, fuel, native }'
done

directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
printf '[server]\nlisten = "127.0.0.1:0"\n[admin]\nlisten = "127.0.0.1:0"\n[plugins]\ndirectory = "%s"\ncache = "%s/cache"\n' \
    "$(realpath "$plugins")" "$directory" > "$directory/hookgate.toml"
count=$("$hookgate" providers --plugins "$plugins" | tail -n +2 | wc -l)
for what in "compiling all" "from the compile cache"; do
    begun=$(date +%s%N)
    (cd "$directory" && exec "$hookgate" serve) > "$directory/out" 2> "$directory/log" &
    pid=$!
    # `serve` says that it is ready on its first line.
    until [ -s "$directory/out" ]; do kill -0 "$pid"; done
    ended=$(date +%s%N)
    rss=$(awk '/^VmRSS/ { print int($2 / 1024) }' "/proc/$pid/status")
    echo
    echo "All $count loaded, $what: ready in $(( (ended - begun) / 1000000 )) ms, $rss MiB resident."
    kill "$pid"
    wait "$pid" || true
done
