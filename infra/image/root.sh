#!/bin/sh
# root.sh BINARY PLUGINS DESTINATION
#
# Puts together the image's root filesystem: the gateway, the shared libraries that it names, the plugins, the
# certificate authorities, and the user. The Dockerfile's last stage is exactly this.
set -eu

fail() { printf 'root.sh: %s\n' "$*" >&2; exit 1; }

[ $# = 3 ] || fail "usage: root.sh BINARY PLUGINS DESTINATION"
binary=$1 plugins=$2 image=$3
[ -x "$binary" ] || fail "there is no program $binary
hint: cargo build --release --package hookgate"
[ -f "$plugins/github.wasm" ] || fail "there are no plugins in $plugins
hint: make plugins"
[ -e "$image" ] && fail "$image is there already
hint: name a directory that is not, or remove it"
authorities=/etc/ssl/certs/ca-certificates.crt
[ -f "$authorities" ] || fail "$authorities is missing
hint: install the package ca-certificates"

mkdir -p "$image/etc/ssl/certs" "$image/plugins"
# Names of functions stay, for backtraces; what a debugger wants is three quarters of the file.
strip --strip-debug -o "$image/hookgate" "$binary"
chmod 0555 "$image/hookgate"

# The loader and the libraries, at the paths by which the program names them.
ldd "$binary" | sed -n 's/^[^/]*\(\/[^ ]*\) (0x.*$/\1/p' | while read -r library; do
    mkdir -p "$image$(dirname "$library")"
    install -m 0555 "$library" "$image$library"
done

install -m 0444 "$plugins"/*.wasm "$plugins"/*.json "$image/plugins/"
install -m 0444 "$authorities" "$image$authorities"
printf 'hookgate:x:65532:65532::/:/nonexistent\n' >"$image/etc/passwd"
printf 'hookgate:x:65532:\n' >"$image/etc/group"
# The C library looks names up here first, then asks the resolver.
printf 'hosts: files dns\n' >"$image/etc/nsswitch.conf"
chmod 0444 "$image"/etc/passwd "$image"/etc/group "$image"/etc/nsswitch.conf
# Where container engines put theirs, and operators mount configuration and secrets.
mkdir -p "$image/dev" "$image/proc" "$image/sys" "$image/tmp" "$image/config" "$image/secrets" "$image/tls"
find "$image" -type d -exec chmod 0555 {} +
