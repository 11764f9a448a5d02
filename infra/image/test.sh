#!/usr/bin/env bash
# The image's root filesystem, put together as in the Dockerfile and started as a container engine would: as a user
# without rights, with a read-only root, no capabilities, and nothing of this machine but its network.
set -euo pipefail
cd "$(dirname "$0")/../.."

target=$(realpath "${CARGO_TARGET_DIR:-target}")
binary=${HOOKGATE:-$target/debug/hookgate}
say() { printf 'image: %s\n' "$*"; }
fail() { printf 'image: %s\n' "$*" >&2; exit 1; }

command -v bwrap >/dev/null 2>&1 || fail "bwrap is missing, which starts the image without a container engine
hint: apt-get install bubblewrap"

work=$(mktemp -d "${TMPDIR:-/tmp}/hookgate-image.XXXXXX")
passed=0 gateway=
finish() {
    if [ -n "$gateway" ]; then kill -KILL "$gateway" 2>/dev/null || true; fi
    chmod -R u+w "$work" && rm -rf "$work"
}
trap finish EXIT
ok() { passed=$((passed + 1)); say "ok: $*"; }
wrong() { say "failed: $1" >&2; shift; [ $# = 0 ] || cat "$@" >&2; printf '%d passed, 1 failed\n' "$passed"; exit 1; }

image=$work/image
infra/image/root.sh "$binary" "$target/plugins" "$image"
chmod 0755 "$work"

# As user 65532 outside, too, where this runs as root.
as_user=()
if [ "$(id -u)" = 0 ]; then as_user=(setpriv --reuid 65532 --regid 65532 --clear-groups); fi
secret="a secret of the image's test"
# run CONFIGURATION ARGUMENTS...
run() {
    local config=$1
    shift
    "${as_user[@]}" bwrap --unshare-user --unshare-pid --unshare-ipc --unshare-uts --uid 65532 --gid 65532 \
        --cap-drop ALL --die-with-parent --ro-bind "$image" / --proc /proc --dev /dev --chdir / \
        --clearenv --setenv HOOKGATE_CONFIG "$config" --setenv GITHUB_WEBHOOK_SECRET "$secret" \
        --ro-bind "$work/secrets" /secrets --ro-bind "$work/tls" /tls \
        /hookgate "$@"
}
mkdir "$work/secrets" "$work/tls"
printf '%s' "$secret" >"$work/secrets/GITHUB_WEBHOOK_SECRET"
openssl req -x509 -newkey rsa:2048 -nodes -subj /CN=hooks.example.com \
    -keyout "$work/tls/tls.key" -out "$work/tls/tls.crt" 2>/dev/null
chmod -R a+rX "$work/secrets" "$work/tls"

# --- What is in it.
[ -z "$(find "$image" -perm /0222)" ] || wrong "something is writable: $(find "$image" -perm /0222 | head -3)"
[ -z "$(find "$image" -perm /6000)" ] || wrong "something has a set-user-id bit"
[ "$(find "$image" -type f -perm /0111 -not -path '*/lib*' | wc -l)" = 1 ] || wrong "there is another program than the gateway"
[ "$(find "$image/plugins" -name '*.wasm' | wc -l)" -ge 7 ] || wrong "plugins are missing"
[ "$(find "$image/plugins" -name '*.json' | wc -l)" -ge 50 ] || wrong "presets are missing"
ok "the root has one program, its libraries, plugins, presets; nothing is writable; $(du -sh --apparent-size "$image" | cut -f1) with $(basename "$(dirname "$binary")")'s program"

grep -q '^COPY --from=build /image /$' Dockerfile && grep -q 'infra/image/root.sh .* /image$' Dockerfile &&
    [ "$(sed -n '/^FROM scratch$/,$p' Dockerfile | grep -cE '^(COPY|ADD|RUN)')" = 1 ] ||
    wrong "the Dockerfile's last stage is not what root.sh makes"
ok "the Dockerfile's last stage is what root.sh makes"

[[ $(sed -n 's/^ARG RUST_VERSION=//p' Dockerfile) == "$(sed -n 's/^rust-version = "\(.*\)"$/\1/p' Cargo.toml)"* ]] ||
    wrong "the Dockerfile builds with another Rust than Cargo.toml states"
ok "the Dockerfile builds with Rust $(sed -n 's/^ARG RUST_VERSION=//p' Dockerfile), as Cargo.toml states"

# --- It runs.
run "" --version >"$work/said" 2>&1 || wrong "it does not start" "$work/said"
ok "$(cat "$work/said")"

read -r port admin < <(python3 -c 'import socket
held = [socket.create_server(("127.0.0.1", 0)) for _ in range(2)]
print(*(port.getsockname()[1] for port in held))')
config="
[server]
listen = \"127.0.0.1:$port\"
drain_delay = \"0s\"
[admin]
listen = \"0.0.0.0:$admin\"
[plugins]
directory = \"/plugins\"
[store]
kind = \"memory\"
[queue]
kind = \"memory\"
[tenants.acme.sources.github]
plugin = \"github\"
secrets.secret = [\"env:GITHUB_WEBHOOK_SECRET\"]
"
if run "$config" health --config env:HOOKGATE_CONFIG >"$work/said" 2>&1; then wrong "there is health without a gateway" "$work/said"; fi
run "$config" --log-format json serve --config env:HOOKGATE_CONFIG >"$work/served" 2>"$work/log" &
gateway=$!
deadline=$((SECONDS + 60))
until run "$config" health --config env:HOOKGATE_CONFIG >"$work/said" 2>&1; do
    [ $SECONDS -lt $deadline ] || wrong "it does not become ready" "$work/log" "$work/said"
    kill -0 "$gateway" || wrong "it has ended" "$work/log"
done
[ "$(cat "$work/said")" = ready ] || wrong "it says something else than ready" "$work/said"
ok "its health check: $(cat "$work/said")"

# --- As whom: the process whose program is the image's.
inside=
for pid in $(ps -e -o pid= -o comm= | awk '$2 == "hookgate" { print $1 }'); do
    if [ "/proc/$pid/exe" -ef "$image/hookgate" ]; then inside=$pid; fi
done
[ -n "$inside" ] || wrong "the gateway's process is not found"
field() { awk -v name="$1:" '$1 == name { print $2 }' "/proc/$inside/status"; }
if [ "$(id -u)" = 0 ]; then
    [ "$(field Uid)" = 65532 ] || wrong "it runs as user $(field Uid)"
fi
[ "$(field Uid)" != 0 ] || wrong "it runs as root"
[ "$(field CapEff)" = 0000000000000000 ] || wrong "it has capabilities: $(field CapEff)"
[ "$(field NoNewPrivs)" = 1 ] || wrong "it may gain privileges"
awk '$5 == "/" { print $6 }' "/proc/$inside/mountinfo" | grep -qE '(^|,)ro(,|$)' || wrong "its root is writable" "/proc/$inside/mountinfo"
ok "user $(field Uid), no capabilities, no new privileges, read-only root"

# --- It works.
run "$config" send acme/github --config env:HOOKGATE_CONFIG >"$work/said" 2>&1 || wrong "a delivery is refused" "$work/said" "$work/log"
grep -q '^202' "$work/said" || wrong "a delivery is accepted" "$work/said"
run "$config" providers --config env:HOOKGATE_CONFIG >"$work/said" 2>&1 || wrong "it lists no providers" "$work/said"
ok "a delivery is accepted; it knows $(($(wc -l <"$work/said") - 1)) providers"
# The embedded store would write below the root.
code=0
run "${config//\"memory\"/\"embedded\"}" serve --config env:HOOKGATE_CONFIG >"$work/said" 2>&1 || code=$?
[ "$code" != 0 ] && grep -qi 'read-only' "$work/said" || wrong "it can write to its root" "$work/said"
ok "it cannot write: $(grep -i -m1 'read-only' "$work/said")"

# --- It ends.
kill -TERM "$inside"
code=0
wait "$gateway" || code=$?
gateway=
[ "$code" = 0 ] || wrong "it ends with $code" "$work/log"
grep -q '"stopped"' "$work/log" || wrong "it did not drain" "$work/log"
ok "SIGTERM: it ends with 0"

# --- The configuration that the Kubernetes manifests and compose.yaml carry is one that it takes.
for file in infra/kubernetes/config.yaml infra/image/compose.yaml; do
    config=$(python3 infra/image/config_of.py "$file")
    run "$config" check --offline --config env:HOOKGATE_CONFIG >"$work/said" 2>&1 || wrong "check refuses the configuration of $file" "$work/said"
    [ "$(cat "$work/said")" = "no problems in env:HOOKGATE_CONFIG" ] || wrong "the configuration of $file has problems" "$work/said"
    ok "$file: $(cat "$work/said")"
done
printf '%d passed, 0 failed\n' "$passed"
