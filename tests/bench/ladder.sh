#!/usr/bin/env bash
# The speed ladder, each rung in the same run with the same client: 1 raw hyper, 2 with a native HMAC, 3 with the
# plugin in a fresh sandbox, 4 the gateway with store and queue in memory, 5 with the embedded ones (fsync before
# each 202), 6 with claims in a Redis and the queue in memory, 6d the same with the embedded queue, 7 with claims in
# a DynamoDB (in memory) and messages to what answers like SQS and is no queue, 7q the same with claims in memory.
# A rung's name may end in the milliseconds that each call of a backend is held up, such as 7-5: then there are
# eight times the connections, since every delivery waits. Rungs take turns; medians and ratios to rung 1. The
# server's own CPU time for each delivery tells rungs apart where the backends want the same cores. Then rungs 4
# and 5 each at half of its own rate, due at fixed moments whatever comes back (an open loop), by turns with rung 1
# at the same rate: what they add to its latency. Prints Markdown, writes target/bench/ladder.json and latency.json.
#
#   ROUNDS=3 SECONDS_EACH=4 CONNECTIONS=32 BODY=2048 RUNGS="1 2 3 4 5 6 6d 6d-5 7 7-5 7-15 7q-5" OPEN=128 \
#       tests/bench/ladder.sh
#
# OPEN is the connections of the open loop, 0 for none of it.
set -euo pipefail
cd "$(dirname "$0")/../.."

rounds=${ROUNDS:-3} each=${SECONDS_EACH:-4} connections=${CONNECTIONS:-32} body=${BODY:-2048}
rungs=${RUNGS:-1 2 3 4 5 6 6d 6d-5 7 7-5 7-15 7q-5} open=${OPEN:-128}
target=${CARGO_TARGET_DIR:-target}
secret="a secret for the ladder only"

command -v wrk >/dev/null || { echo "bench: installing wrk"; apt-get update -qq && apt-get install -y -qq wrk >/dev/null; }

work=$(mktemp -d)
server= backend=
end() { if [ -n "$1" ]; then kill "$1" 2>/dev/null || true; wait "$1" 2>/dev/null || true; fi; }
stop() { end "$server"; end "$backend"; server= backend=; }
trap 'stop; rm -rf "$work"' EXIT

export LADDER_SIGNED="$work/signed" AWS_ACCESS_KEY_ID=test AWS_SECRET_ACCESS_KEY=test
ladder="$target/release/examples/ladder"
"$ladder" sign "$body" >"$LADDER_SIGNED"

ready() { # file pid: what it says behind "ready: "
    until grep -q "^ready: " "$1"; do kill -0 "$2" || return 1; read -rt 0.05 <> <(:) || true; done
    sed -n 's/^ready: //p' "$1"
}

backend() { # redis|aws milliseconds: sets backend and its addresses
    : >"$work/backend"
    "$ladder" "$1" "$2" >"$work/backend" &
    backend=$!
    addresses=$(ready "$work/backend" "$backend")
    read -r first second <<<"$addresses"
}

configure() { # store queue: a gateway's directory, with settings of the backends behind them
    rm -rf "$work/gateway" && mkdir "$work/gateway"
    cat >"$work/gateway/hookgate.toml" <<TOML
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
$([ "$1" != redis ] || echo "redis.nodes = [\"$first\"]")
$([ "$1" != dynamodb ] || echo 'dynamodb.table = "claims"')
[queue]
kind = "$2"
$([ "$2" != sqs ] || echo "sqs.url = \"$second/000000000000/events.fifo\"")
$([ "$2" != sqs ] || printf '[aws]\nregion = "eu-central-1"')
[tenants.t.sources.gh]
plugin = "github"
secrets.secret = ["env:LADDER_SECRET"]
TOML
}

gateway() { # store queue: sets server
    configure "$1" "$2"
    local aws=()
    if [ -n "${second:-}" ]; then
        aws=(AWS_ENDPOINT_URL_DYNAMODB="$first" AWS_ENDPOINT_URL_SQS="$second")
    fi
    env "${aws[@]}" LADDER_SECRET="$secret" RUST_LOG=error \
        "$target/release/hookgate" serve --config "$work/gateway/hookgate.toml" >"$work/out" &
    server=$!
}

start() { # rung: sets server and address, and the connections that it wants
    local delay=0 at=$connections
    case $1 in *-*) delay=${1#*-} at=$((connections * 8)) ;; esac
    first= second= clients=$at
    : >"$work/out"
    case ${1%-*} in
        4) gateway memory memory ;;
        5) gateway embedded embedded ;;
        6) backend redis "$delay"; gateway redis memory ;;
        6d) backend redis "$delay"; gateway redis embedded ;;
        7) backend aws "$delay"; gateway dynamodb sqs ;;
        7q) backend aws "$delay"; gateway memory sqs ;;
        *) "$ladder" serve "$1" >"$work/out" & server=$! ;;
    esac
    address=$(ready "$work/out" "$server" | grep -o 'http://[0-9.:]*' | head -n1)
}

# The server's CPU time so far, in hundredths of a second (Linux's USER_HZ).
cpu() { awk '{ print $14 + $15 }' "/proc/$server/stat"; }

for ((round = 1; round <= rounds; round++)); do
    for rung in $rungs; do
        start $rung
        before=$(cpu)
        wrk -t1 -c"$clients" -d"${each}s" -s tests/bench/deliver.lua "$address" >"$work/said"
        awk -v rung="$rung" -v clients="$clients" -v cpu=$(($(cpu) - before)) -v each="$each" '/^RESULT/ {
            print rung, $2, $3, $4, $5, clients, cpu * 1e4 / ($2 * each) }' "$work/said" >>"$work/results"
        stop
        echo "bench: round $round of $rounds, rung $rung: $(tail -n1 "$work/results" | cut -d' ' -f2) a second" >&2
    done
done

mkdir -p "$target/bench"
commit=$(git rev-parse --short HEAD 2>/dev/null || echo unknown)
machine="$(nproc) cores, $(awk -F ': ' '/model name/ { print $2; exit }' /proc/cpuinfo)"
sort -k1,1V -k2,2n "$work/results" | awk -v json="$target/bench/ladder.json" -v commit="$commit" -v machine="$machine" \
    -v body="$body" -v rounds="$rounds" -v each="$each" '
    function row(rung, n,    m, parts) {
        m = int((n + 1) / 2)
        if (!base) base = rate[m]
        split(rung, parts, "-")
        printf "| %s %s%s | %d | %d | %.2f | %.2f | %.2f | %.0f | %d |\n", rung, name[parts[1]], \
            parts[2] ? ", " parts[2] " ms a call" : "", clients[m], rate[m], rate[m] / base, p50[m], p99[m], cpu[m], bad
        printf "%s{\"rung\":\"%s\",\"connections\":%d,\"per_second\":%d,\"of_raw\":%.3f,\"p50_ms\":%.3f,\"p99_ms\":%.3f,\"cpu_us\":%.1f,\"errors\":%d}", \
            (rows++ ? "," : ""), rung, clients[m], rate[m], rate[m] / base, p50[m], p99[m], cpu[m], bad >json
    }
    BEGIN {
        name["1"] = "raw hyper"; name["2"] = "native HMAC"; name["3"] = "fresh sandbox"
        name["4"] = "store and queue in memory"; name["5"] = "embedded, fsync"
        name["6"] = "Redis, queue in memory"; name["6d"] = "Redis, embedded queue, fsync"
        name["7"] = "DynamoDB, SQS"; name["7q"] = "store in memory, SQS"
        printf "%s, commit %s, %d bytes, median of %d x %d s\n\n", machine, commit, body, rounds, each
        print "| rung | connections | deliveries/s | of rung 1 | p50 ms | p99 ms | server CPU us each | errors |\n|---|---|---|---|---|---|---|---|"
        printf "{\"machine\":\"%s\",\"commit\":\"%s\",\"body\":%d,\"rungs\":[", machine, commit, body >json
    }
    $1 != rung { if (rung) row(rung, n); rung = $1; n = 0; bad = 0 }
    { n++; rate[n] = $2; p50[n] = $3; p99[n] = $4; bad += $5; clients[n] = $6; cpu[n] = $7 }
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
            "$ladder" load "${address#http://}" "$rate" "$each" "$open" "$LADDER_SIGNED" |
                awk -v above=$above -v rung=$rung -v rate="$rate" '/^RESULT/ { print above, rung, rate, $2, $3, $4, $5, $6 }' >>"$work/open"
            stop
            echo "bench: round $round of $rounds, rung $rung at $rate a second: p99 $(tail -n1 "$work/open" | cut -d' ' -f6) ms" >&2
        done
    done
done

read -r _ sync50 sync99 < <("$ladder" fsync "$work")
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
