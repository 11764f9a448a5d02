#!/usr/bin/env bash
# The speed ladder, each rung in the same run with the same client: 1 raw hyper, 2 with a native HMAC, 3 with the
# plugin in a fresh sandbox, 4 the gateway with store and queue in memory, 5 with the embedded ones (fsync before
# each 202). Rungs take turns; medians and ratios to rung 1. Prints Markdown, writes target/bench/ladder.json.
#
#   ROUNDS=3 SECONDS_EACH=4 CONNECTIONS=32 BODY=2048 tests/bench/ladder.sh
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${ROUNDS:-3} each=${SECONDS_EACH:-4} connections=${CONNECTIONS:-32} body=${BODY:-2048}
target=${CARGO_TARGET_DIR:-target}
secret="a secret for the ladder only"

command -v wrk >/dev/null || { echo "bench: installing wrk"; apt-get update -qq && apt-get install -y -qq wrk >/dev/null; }

work=$(mktemp -d)
server=
stop() { if [ -n "$server" ]; then kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; server=; fi; }
trap 'stop; rm -rf "$work"' EXIT

export LADDER_SIGNED="$work/signed"
"$target/release/examples/ladder" sign "$body" >"$LADDER_SIGNED"

configure() { # kind: a gateway's directory
    mkdir -p "$work/$1"
    cat >"$work/$1/hookgate.toml" <<TOML
[server]
listen = "127.0.0.1:0"
drain_delay = "0s"
[admin]
listen = "127.0.0.1:0"
[plugins]
directory = "$PWD/$target/plugins"
cache = "$work/cache"
[store]
kind = "$1"
[queue]
kind = "$1"
[tenants.t.sources.gh]
plugin = "github"
secrets.secret = ["env:LADDER_SECRET"]
TOML
}

start() { # rung: sets server and address
    : >"$work/out"
    case $1 in
        4) kind=memory ;;
        5) kind=embedded; rm -rf "$work/embedded/data" ;;
        *) kind= ;;
    esac
    if [ -z "$kind" ]; then
        "$target/release/examples/ladder" serve "$1" >"$work/out" &
    else
        configure "$kind"
        LADDER_SECRET=$secret RUST_LOG=error "$target/release/hookgate" serve \
            --config "$work/$kind/hookgate.toml" >"$work/out" &
    fi
    server=$!
    until grep -q http "$work/out"; do kill -0 "$server"; read -rt 0.05 <> <(:) || true; done
    address=$(grep -o 'http://[0-9.:]*' "$work/out" | head -n1)
}

for ((round = 1; round <= rounds; round++)); do
    for rung in 1 2 3 4 5; do
        start $rung
        wrk -t1 -c"$connections" -d"${each}s" -s tests/bench/deliver.lua "$address" |
            awk -v rung=$rung '/^RESULT/ { print rung, $2, $3, $4, $5 }' >>"$work/results"
        stop
        echo "bench: round $round of $rounds, rung $rung: $(tail -n1 "$work/results" | cut -d' ' -f2) a second" >&2
    done
done

mkdir -p "$target/bench"
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
machine="$(nproc) cores, $(awk -F ': ' '/model name/ { print $2; exit }' /proc/cpuinfo)"
sort -k1,1n -k2,2n "$work/results" | awk -v json="$target/bench/ladder.json" -v commit="$commit" -v machine="$machine" \
    -v connections="$connections" -v body="$body" -v rounds="$rounds" -v each="$each" '
    function row(rung, n,    m) {
        m = int((n + 1) / 2)
        if (rung == 1) base = rate[m]
        printf "| %s | %d | %.2f | %.2f | %.2f | %d |\n", name[rung], rate[m], rate[m] / base, p50[m], p99[m], bad
        printf "%s{\"rung\":%d,\"per_second\":%d,\"of_raw\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"errors\":%d}", \
            (rung == 1 ? "" : ","), rung, rate[m], rate[m] / base, p50[m], p99[m], bad >json
    }
    BEGIN {
        name[1] = "1 raw hyper"; name[2] = "2 native HMAC"; name[3] = "3 fresh sandbox"
        name[4] = "4 store and queue in memory"; name[5] = "5 embedded, fsync"
        printf "%s, commit %s, %d bytes, %d connections, median of %d x %d s\n\n", machine, commit, body, connections, rounds, each
        print "| rung | deliveries/s | of raw | p50 ms | p99 ms | errors |\n|---|---|---|---|---|---|"
        printf "{\"machine\":\"%s\",\"commit\":\"%s\",\"body\":%d,\"connections\":%d,\"rungs\":[", machine, commit, body, connections >json
    }
    $1 != rung { if (rung) row(rung, n); rung = $1; n = 0; bad = 0 }
    { n++; rate[n] = $2; p50[n] = $3; p99[n] = $4; bad += $5 }
    END { row(rung, n); print "]}" >json }'
