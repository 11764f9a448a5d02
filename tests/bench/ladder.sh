#!/usr/bin/env bash
# The speed ladder, each rung in the same run with the same client: 1 raw hyper, 2 with a native HMAC, 3 with the
# plugin in a fresh sandbox, 4 the gateway with store and queue in memory, 5 with the embedded ones (fsync before
# each 202). Rungs take turns; medians and ratios to rung 1. Then rungs 4 and 5 each at half of its own rate, due at
# fixed moments whatever comes back (an open loop), by turns with rung 1 at the same rate: what they add to its
# latency. Prints Markdown, writes target/bench/ladder.json and latency.json.
#
#   ROUNDS=3 SECONDS_EACH=4 CONNECTIONS=32 BODY=2048 RUNGS="1 2 3 4 5" OPEN=128 tests/bench/ladder.sh
#
# OPEN is the connections of the open loop, 0 for none of it.
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${ROUNDS:-3} each=${SECONDS_EACH:-4} connections=${CONNECTIONS:-32} body=${BODY:-2048}
rungs=${RUNGS:-1 2 3 4 5} open=${OPEN:-128}
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
    for rung in $rungs; do
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
        if (!base) base = rate[m]
        printf "| %s | %d | %.2f | %.2f | %.2f | %d |\n", name[rung], rate[m], rate[m] / base, p50[m], p99[m], bad
        printf "%s{\"rung\":%d,\"per_second\":%d,\"of_raw\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"errors\":%d}", \
            (rows++ ? "," : ""), rung, rate[m], rate[m] / base, p50[m], p99[m], bad >json
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

[ "$open" -gt 0 ] || exit 0

# The median of the rates that the closed loop came to, halved.
half() { awk -v rung="$1" '$1 == rung { print $2 }' "$work/results" | sort -n | awk '{ all[NR] = $1 } END { print int(all[int((NR + 1) / 2)] / 2) }'; }

for ((round = 1; round <= rounds; round++)); do
    for above in 4 5; do
        case " $rungs " in *" $above "*) ;; *) continue ;; esac
        rate=$(half $above)
        for rung in 1 $above; do
            start $rung
            "$target/release/examples/ladder" load "${address#http://}" "$rate" "$each" "$open" "$LADDER_SIGNED" |
                awk -v above=$above -v rung=$rung -v rate="$rate" '/^RESULT/ { print above, rung, rate, $2, $3, $4, $5, $6 }' >>"$work/open"
            stop
            echo "bench: round $round of $rounds, rung $rung at $rate a second: p99 $(tail -n1 "$work/open" | cut -d' ' -f6) ms" >&2
        done
    done
done

read -r _ sync50 sync99 < <("$target/release/examples/ladder" fsync "$work")
median() { awk -v above="$1" -v rung="$2" -v field="$3" '$1 == above && $2 == rung { print $field }' "$work/open" | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
failed=$(awk '{ failed += $8 } END { print failed + 0 }' "$work/open")

printf '\nHalf of its rate, open loop, %d connections, median of %d x %d s; times from when each was due; %d failed; the device alone syncs 4 KiB in p50 %s, p99 %s ms\n\n' \
    "$open" "$rounds" "$each" "$failed" "$sync50" "$sync99"
echo "| rung | deliveries/s | p50 ms | p99 ms | raw p50 | raw p99 | p50 added | p99 added | p99.9 | raw p99.9 |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for above in 4 5; do
    case " $rungs " in *" $above "*) ;; *) continue ;; esac
    echo "$above $(half $above) $(for rung in $above 1; do for field in 5 6 7; do median $above $rung $field; done; done | tr '\n' ' ')"
done | awk -v json="$target/bench/latency.json" -v sync50="$sync50" -v sync99="$sync99" -v failed="$failed" -v commit="$commit" '
    BEGIN { printf "{\"commit\":\"%s\",\"fsync_p50_ms\":%s,\"fsync_p99_ms\":%s,\"failed\":%d,\"rungs\":[", commit, sync50, sync99, failed >json }
    {
        printf "| %d | %d | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f | %.2f |\n", $1, $2, $3, $4, $6, $7, $3 - $6, $4 - $7, $5, $8
        printf "%s{\"rung\":%d,\"per_second\":%d,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"raw_p50_ms\":%.3f,\"raw_p99_ms\":%.3f}", \
            (NR > 1 ? "," : ""), $1, $2, $3, $4, $6, $7 >json
    }
    END { print "]}" >json }'
