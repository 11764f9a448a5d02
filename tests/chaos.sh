#!/bin/sh
# Kills and breaks for much longer than every day, and says at last what came of it:
# `N deliveries, N lost, N doubled`. Fails unless nothing was lost or doubled and every run held what it promised.
set -u

tally=$(mktemp)
trap 'rm -f "$tally"' EXIT
failed=0

# run NAME=VALUE… TEST…: tests of the real binary whose runs are added up
run() {
    # CARGO_FLAGS is a list of words.
    # shellcheck disable=SC2086
    env CHAOS_TALLY="$tally" "$@" || failed=1
}

# With the features of the whole workspace, as everything is built.
e2e="cargo test ${CARGO_FLAGS:-} --workspace --test e2e"

run CHAOS_SEEDS="${CHAOS_SEEDS:-1000}" CHAOS_FROM="${CHAOS_FROM:-60}" $e2e crash:: -- --nocapture
# The window of SQS takes five minutes of waiting: the storm passes meanwhile.
run CHAOS_REMOTE_SEEDS="${CHAOS_REMOTE_SEEDS:-60}" CHAOS_REMOTE_FROM="${CHAOS_REMOTE_FROM:-1000}" \
    HERD_SECONDS="${HERD_SECONDS:-60}" \
    $e2e -- remote::chaos remote::herd remote::stale --include-ignored --nocapture --test-threads=4

awk -v failed="$failed" '
    { deliveries += $1; lost += $2; doubled += $3 }
    END {
        if (failed) print "not all tests passed: see above"
        if (NR == 0) print "no run told anything"
        printf "%d deliveries, %d lost, %d doubled\n", deliveries, lost, doubled
        exit failed || NR == 0 || lost || doubled
    }' "$tally"
