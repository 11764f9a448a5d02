//! The scripts at the very moment: with the server's time put in by hand, a lease and a life end at their end,
//! not a millisecond later or earlier.

use super::bench::shared;
use crate::contract::fresh;

/// The time that the scripts are told, in ms since 1970.
const NOW: u64 = 1_900_000_000_500;

const CLAIM: &str = include_str!("../../../src/store/redis/claim.lua");
const SETTLE: &str = include_str!("../../../src/store/redis/settle.lua");
const FORGET: &str = include_str!("../../../src/store/redis/forget.lua");
const LOOK: &str = include_str!("../../../src/store/redis/look.lua");

/// Runs a script at that moment; its answer, line by line.
fn run(script: &str, now: u64, key: &str, arguments: &[&str]) -> Vec<String> {
    let time = format!("{{'{}', '{:06}'}}", now / 1000, now % 1000 * 1000);
    let script = script.replace("redis.call('TIME')", &time);
    assert!(script.contains(&time));
    let mut command = vec!["EVAL", &script, "1", key];
    command.extend(arguments);
    let answer = shared().tell(&command).unwrap();
    answer.lines().map(str::to_owned).collect()
}

/// Claims for 200 ms, with a life of a minute.
fn claim(now: u64, key: &str, token: &str) -> Vec<String> {
    let arguments = [token, "200", "60000", "g", "q", "sha", "", "1", "50000"];
    run(CLAIM, now, key, &arguments)
}

fn outcome(answer: &[String]) -> &str {
    &answer[1]
}

/// A record that ends at the second 1 900 000 001.
fn settled(key: &str) {
    let end = (NOW / 1000 + 1).to_string();
    let record = [
        "0",
        &end,
        "0",
        "state",
        "accepted",
        "generation",
        "0",
        "expires_at",
        &end,
    ];
    run(SETTLE, NOW, key, &record);
}

const END: u64 = (NOW / 1000 + 1) * 1000;

#[test]
fn the_server_time_is_told_to_the_millisecond() {
    assert_eq!(claim(NOW, &fresh("ms"), "a")[0], NOW.to_string());
}

#[test]
fn a_lease_ends_at_its_end() {
    let key = fresh("lease");
    assert_eq!(outcome(&claim(NOW, &key, "a")), "owner");
    let early = claim(NOW + 199, &key, "b");
    assert_eq!(early[1..], ["in flight", "1", "a"]);
    assert_eq!(outcome(&claim(NOW + 200, &key, "b")), "owner");
}

#[test]
fn a_life_is_whole_seconds_rounded_up() {
    let key = fresh("life");
    claim(NOW, &key, "a");
    let end = shared().tell(&["HGET", &key, "expires_at"]).unwrap();
    assert_eq!(end, (NOW / 1000 + 61).to_string());
}

#[test]
fn a_record_ends_at_its_end_for_every_call() {
    let key = fresh("end");
    settled(&key);
    assert_eq!(outcome(&claim(END - 1, &key, "b")), "duplicate");
    assert!(run(LOOK, END - 1, &key, &[]).len() > 1);
    assert_eq!(run(LOOK, END, &key, &[]).len(), 1);
    assert_eq!(run(FORGET, END, &key, &["0", "b"])[1], "0");
    assert_eq!(outcome(&claim(END, &key, "b")), "owner");
}

#[test]
fn a_settlement_is_written_over_a_record_at_its_end() {
    let key = fresh("again");
    settled(&key);
    let record = [
        "0",
        "2000000000",
        "0",
        "state",
        "accepted",
        "generation",
        "0",
    ];
    assert_eq!(outcome(&run(SETTLE, END - 1, &key, &record)), "kept");
    assert_eq!(outcome(&run(SETTLE, END, &key, &record)), "settled");
}
