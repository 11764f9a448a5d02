#!/usr/bin/env bash
# Queue, claims and secrets applied to a stand-in for AWS; the gateway run on exactly what was made, with exactly the
# configuration that came of it; no drift after that; destroyed. And the whole of infra/ planned, which no stand-in
# can make.
set -euo pipefail
cd "$(dirname "$0")/../.."
. infra/tests/lib.sh

hookgate="$target/debug/hookgate"
ministack="$target/venv/bin/ministack"
[ -x "$hookgate" ] || fail "$hookgate is missing
hint: make plugins"
[ -x "$ministack" ] || fail "$ministack is missing
hint: make backends"
[ -f "$target/plugins/stripe.wasm" ] || fail "$target/plugins has no plugins
hint: make plugins"

work=$(mktemp -d "$target/infra-e2e.XXXXXX")
passed=0
pids=()
finish() {
    for pid in "${pids[@]}"; do kill "$pid" 2>/dev/null || true; done
    wait 2>/dev/null || true
    rm -rf "$work"
}
trap finish EXIT

ok() { passed=$((passed + 1)); say "ok: $*"; }
# wrong WHAT FILE: what was seen instead, and the end.
wrong() { say "failed: $1" >&2; cat "$2" >&2; printf '%d passed, 1 failed\n' "$passed"; exit 1; }
# until WHAT COMMAND...: polls, with a deadline that only something broken meets.
until_true() {
    local what=$1 deadline=$((SECONDS + 60))
    shift
    until "$@" >/dev/null 2>&1; do
        [ $SECONDS -lt $deadline ] || wrong "this did not come about in 60 s: $what" "$work/log"
        sleep 0.05
    done
}

# shellcheck disable=SC2046 # Five words.
set -- $(python3 -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(5)]
print(*(port.getsockname()[1] for port in held))')
endpoint="http://127.0.0.1:$1"

# An access key of twelve digits is an account of the stand-in's.
export AWS_ACCESS_KEY_ID=123456789012 AWS_SECRET_ACCESS_KEY=none AWS_EC2_METADATA_DISABLED=true
unset AWS_PROFILE AWS_SESSION_TOKEN AWS_CA_BUNDLE
GATEWAY_PORT=$1 BIND_HOST=127.0.0.1 MINISTACK_HOST=127.0.0.1 LOG_LEVEL=WARNING "$ministack" >"$work/log" 2>&1 &
pids+=($!)
until_true "the stand-in answers" python3 -c "import urllib.request; urllib.request.urlopen('$endpoint/_ministack/health')"
at_stand_in() { "$target/venv/bin/python" infra/tests/stand_in.py "$endpoint" "$@"; }

redis_password=$(python3 -c 'import secrets; print(secrets.token_hex(32))')
redis-server --port "$4" --bind 127.0.0.1 --dir "$work" --appendonly yes --save '' --maxmemory-policy noeviction \
    --requirepass "$redis_password" >"$work/redis.log" 2>&1 &
pids+=($!)

# --- Applied.
export TF_DATA_DIR="$work/terraform"
export TF_VAR_endpoint=$endpoint TF_VAR_redis="redis://127.0.0.1:$4"
export TF_VAR_port=$2 TF_VAR_admin_port=$3 TF_VAR_plugin_directory="$target/plugins"
tf() { terraform -chdir=infra/tests/end-to-end "$@" -no-color; }
tf_init infra/tests/end-to-end
tf apply -auto-approve -state="$work/state" >"$work/log" 2>&1 || wrong "apply" "$work/log"
ok "$(grep '^Apply complete' "$work/log")"

# --- A secret's value is put by hand, and is in no state.
secret=$(python3 -c 'import secrets; print(secrets.token_hex(32))')
# By name: the environment variable and the secret's ARN.
tf output -json -state="$work/state" secret_arns | python3 -c 'import json, sys
for name, arn in json.load(sys.stdin).items(): print(name, arn)' >"$work/arns"
while read -r name arn; do
    case $name in STRIPE_*) value="whsec_$secret" ;; *) value=$secret ;; esac
    at_stand_in put "$arn" "$value"
done <"$work/arns"
if grep -q "$secret" "$work/state"; then wrong "a secret stands in the state" "$work/state"; fi
ok "the secrets have values, and the state has none"

# --- What ECS does: each secret into the environment, the configuration too.
while read -r name arn; do
    value=$(at_stand_in get "$arn")
    export "$name=$value"
done <"$work/arns"
HOOKGATE_CONFIG=$(tf output -raw -state="$work/state" toml)
export HOOKGATE_CONFIG
# And the role's credentials, from an address that the task is told.
export AWS_CONTAINER_AUTHORIZATION_TOKEN=token-of-the-task
at_stand_in credentials "$5" >/dev/null 2>&1 &
pids+=($!)
until_true "credentials are handed out" python3 -c "import socket; socket.create_connection(('127.0.0.1', $5))"
as_task=(env -u AWS_ACCESS_KEY_ID -u AWS_SECRET_ACCESS_KEY "AWS_CONTAINER_CREDENTIALS_FULL_URI=http://127.0.0.1:$5/")
config=(--config env:HOOKGATE_CONFIG)
cd "$work"

"${as_task[@]}" "$hookgate" check "${config[@]}" >check 2>&1 || wrong "check refuses what Terraform made" check
[ "$(cat check)" = "no problems in env:HOOKGATE_CONFIG" ] || wrong "check is not clean" check
ok "check, with credentials as Fargate gives them: $(cat check)"
AWS_CONTAINER_AUTHORIZATION_TOKEN=wrong "${as_task[@]}" "$hookgate" check "${config[@]}" >check 2>&1 &&
    wrong "check needs no credentials" check

with_redis=$(cd "$root" && tf output -raw -state="$work/state" toml_redis)
HOOKGATE_CONFIG=$with_redis REDIS_PASSWORD=$redis_password "$hookgate" check "${config[@]}" >check 2>&1 ||
    wrong "check refuses the configuration with Redis" check
[ "$(cat check)" = "no problems in env:HOOKGATE_CONFIG" ] || wrong "check with Redis is not clean" check
HOOKGATE_CONFIG=$with_redis REDIS_PASSWORD=wrong "$hookgate" check "${config[@]}" >check 2>&1 &&
    wrong "check never asked Redis" check
ok "with claims in Redis too"

if "$hookgate" health "${config[@]}" >health 2>&1; then wrong "there is health without a gateway" health; fi
"${as_task[@]}" "$hookgate" serve "${config[@]}" >served 2>log &
gateway=$!
pids+=("$gateway")
until_true "the gateway is ready" "$hookgate" health "${config[@]}"
ok "the gateway is ready by its health check"

"$hookgate" send acme/github "${config[@]}" --id one --count 3 >sent 2>&1 || wrong "deliveries are refused" sent
[ "$(grep -c '^202' sent) $(grep -c '^200' sent)" = "1 2" ] || wrong "one copy is accepted, two are duplicates" sent
for number in 1 2 3 4 5; do
    "$hookgate" send acme/stripe "${config[@]}" --id "event-$number" >sent 2>&1 || wrong "a delivery is refused" sent
    grep -q '^202' sent || wrong "it is accepted" sent
done
GITHUB_WEBHOOK_SECRET=another-secret-of-some-length "$hookgate" send acme/github "${config[@]}" --id forged >sent 2>&1 &&
    wrong "a forgery is taken" sent
grep -q '^401' sent || wrong "a forgery is answered 401" sent
ok "deliveries: 6 accepted, 2 duplicates, 1 forgery refused"

at_stand_in() { "$target/venv/bin/python" "$root/infra/tests/stand_in.py" "$endpoint" "$@"; }
(cd "$root" && terraform -chdir=infra/tests/end-to-end output -raw -state="$work/state" queue_url) >url
at_stand_in messages "$(cat url)" >messages
# Where a provider's retries carry the same bytes, an event's id ends in `~` and the body's digest.
[ "$(awk '{ sub("~.*", "", $2); print $2 }' messages | sort | tr '\n' ' ')" = "event-1 event-2 event-3 event-4 event-5 one " ] ||
    wrong "each event is in the queue exactly once" messages
[ "$(awk '$2 !~ /^one/ { print $1 }' messages | sort -u | wc -l)" = 1 ] || wrong "a source in order is one group" messages
"$hookgate" claims show "acme/github/$(awk '$2 ~ /^one/ { print $2 }' messages)" "${config[@]}" >claim 2>&1 ||
    wrong "the claim is not there" claim
grep -q accepted claim || wrong "the claim is accepted" claim
ok "6 messages in the queue, each event once; 5 of one source in one group"

# --- The metrics that alarms, dashboard and autoscaling are made of are those that it tells.
python3 -c "import urllib.request; print(urllib.request.urlopen('http://127.0.0.1:$3/metrics').read().decode())" >metrics
python3 "$root/infra/tests/names.py" metrics >names 2>&1 || wrong "infra names metrics that the gateway does not tell" names
ok "$(tail -1 names)"

# --- It ends when it is told to, with the drain delay that the module sets.
kill -TERM "$gateway"
until_true "the gateway drains" grep -q draining log
if "$hookgate" health "${config[@]}" >health 2>&1; then wrong "a gateway that drains is healthy" health; fi
wait "$gateway" || wrong "the gateway ends badly" log
ok "SIGTERM: it drains, is unhealthy meanwhile, and ends with 0"

# --- No drift.
cd "$root"
code=0
tf plan -detailed-exitcode -state="$work/state" >"$work/log" 2>&1 || code=$?
[ "$code" = 0 ] || wrong "plan finds a drift (exit code $code)" "$work/log"
ok "plan: $(grep -o 'No changes.*' "$work/log" | head -1)"

# --- The rule on claims, with its numbers, against what is live: nothing is changed by it.
if TF_VAR_claim_ttl_seconds=1641600 tf plan -state="$work/state" >"$work/log" 2>&1; then
    wrong "a claim TTL of the retentions and a day is taken" "$work/log"
fi
said=$(tr -s '\n│ ' ' ' <"$work/log")
for words in "A claim TTL of 1641600 s is too short" "345600 s" "1209600 s more" "needs more than 1641600 s" "1728000 s"; do
    [[ $said == *"$words"* ]] || wrong "the refusal does not say: $words" "$work/log"
done
ok "a claim TTL that is too short is refused with the numbers"
# And so does the gateway, of the same text with the lower number.
code=0
HOOKGATE_CONFIG=${HOOKGATE_CONFIG/1728000s/1641600s} "$hookgate" check "${config[@]}" >"$work/check" 2>&1 || code=$?
[ "$code" = 78 ] || wrong "the gateway takes what Terraform refuses" "$work/check"
ok "the gateway refuses the same"

# --- The whole, planned.
for example in minimal redis complete; do
    export TF_DATA_DIR="$work/terraform-$example"
    directory="$work/$example"
    mkdir "$directory"
    cp infra/examples/"$example"/*.tf "$directory"
    # The example as it is, but for where its module is and whom it asks.
    sed -i "s|\"../..\"|\"$root/infra\"|" "$directory/main.tf"
    cat >"$directory/stand_in_override.tf" <<OVERRIDE
provider "aws" {
  skip_credentials_validation = true
  skip_metadata_api_check     = true
  endpoints {
    sts = "$endpoint"
  }
}
OVERRIDE
    cat >"$directory/terraform.tfvars" <<'VALUES'
vpc_id             = "vpc-0123456789abcdef0"
public_subnet_ids  = ["subnet-0123456789abcdef0", "subnet-0123456789abcdef1"]
private_subnet_ids = ["subnet-0123456789abcdef2", "subnet-0123456789abcdef3"]
image              = "registry.example/hookgate:1.0.0"
VALUES
    if [ "$example" = complete ]; then
        cat >>"$directory/terraform.tfvars" <<'VALUES'
repository_arns    = ["arn:aws:ecr:eu-central-1:123456789012:repository/hookgate"]
certificate_arn    = "arn:aws:acm:eu-central-1:123456789012:certificate/11111111-2222-3333-4444-555555555555"
access_log_bucket  = "access-logs"
alarm_topic_arn    = "arn:aws:sns:eu-central-1:123456789012:alarms"
claim_check_bucket = "hookgate-bodies"
VALUES
    fi
    tf_init "$directory"
    terraform -chdir="$directory" plan -no-color >"$work/log" 2>&1 || wrong "plan of examples/$example" "$work/log"
    ok "examples/$example: $(grep '^Plan:' "$work/log")"
done

# --- Destroyed.
export TF_DATA_DIR="$work/terraform"
tf destroy -auto-approve -state="$work/state" >"$work/log" 2>&1 || wrong "destroy" "$work/log"
ok "$(grep '^Destroy complete' "$work/log")"
printf '%d passed, 0 failed\n' "$passed"
