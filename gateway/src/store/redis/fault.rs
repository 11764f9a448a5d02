//! What went wrong with a call, and the one question that matters about it: is it certain that nothing was
//! done?
//!
//! A server that answers with an error says so, for the errors that come before a script's first write. A
//! connection that was never made, too. Everything else is ambiguous, errors that nobody here knows included.

use redis::{ErrorKind, RedisError};

use crate::store::StoreError;

/// Asked to come again later; nothing was done.
const BUSY: &[&str] = &[
    "BUSY",        // another script runs
    "CLUSTERDOWN", // slots without a primary
    "LOADING",     // reads its snapshot or its log
    "MASTERDOWN",  // a replica without its primary
    "NOREPLICAS",  // min-replicas-to-write
    "READONLY",    // a replica, often after a failover
    "TRYAGAIN",    // a slot on the move
];

/// Refused; nothing was done.
const REFUSED: &[&str] = &[
    "CROSSSLOT",
    "DENIED",  // protected mode
    "MISCONF", // it cannot save, and stops writes
    "NOAUTH",
    "NOPERM",
    "OOM",
    "WRONGPASS",
    "WRONGTYPE", // found by the first read
];

/// A call that failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    pub kind: Kind,
    /// Which server said what.
    pub text: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    /// The script is not known there. Nothing was done.
    NoScript,
    /// The slot's home is this address now. Nothing was done.
    Moved(String),
    /// This one call belongs to this address. Nothing was done.
    Ask(String),
    /// As [`StoreError::Busy`].
    Busy,
    /// As [`StoreError::Refused`].
    Refused,
    /// As [`StoreError::Ambiguous`].
    Ambiguous,
}

impl Fault {
    /// Of a call that was sent, or may have been.
    pub fn of_call(server: &str, error: &RedisError) -> Self {
        Self::new(
            kind(error).unwrap_or(Kind::Ambiguous),
            server,
            &words(error),
        )
    }

    /// Of a connection that could not be made: nothing was sent over it.
    pub fn of_connecting(server: &str, error: &RedisError) -> Self {
        let kind = kind(error).filter(|kind| *kind == Kind::Busy);
        let text = format!("cannot connect: {}", words(error));
        Self::new(kind.unwrap_or(Kind::Refused), server, &text)
    }

    /// Of a server that is another than it should be.
    pub fn not_primary(server: &str, role: &str) -> Self {
        Self::new(
            Kind::Busy,
            server,
            &format!("is not the primary but a {role}"),
        )
    }

    /// Of a sentinel that watches other servers.
    pub fn unknown_master(sentinel: &str, master: &str) -> Self {
        let text = format!("knows no primary of the name {master:?}");
        Self::new(Kind::Refused, sentinel, &text)
    }

    pub fn new(kind: Kind, server: &str, text: &str) -> Self {
        let text = format!("{server}: {text}");
        Self { kind, text }
    }

    /// Whether a new connection, or another server, may do better.
    pub fn is_of_connection(&self) -> bool {
        matches!(self.kind, Kind::Ambiguous | Kind::Busy)
    }
}

impl From<Fault> for StoreError {
    fn from(fault: Fault) -> Self {
        match fault.kind {
            Kind::NoScript | Kind::Moved(_) | Kind::Ask(_) | Kind::Busy => Self::Busy(fault.text),
            Kind::Refused => Self::Refused(fault.text),
            Kind::Ambiguous => Self::Ambiguous(fault.text),
        }
    }
}

/// What a server's answer means; none where there was no answer, or an unknown one.
fn kind(error: &RedisError) -> Option<Kind> {
    let address = || Some(error.redirect_node()?.0.to_owned());
    match code(error)? {
        "NOSCRIPT" => Some(Kind::NoScript),
        "MOVED" => address().map(Kind::Moved),
        "ASK" => address().map(Kind::Ask),
        // Within a script it may have come behind a write.
        "NOPERM"
            if error
                .detail()
                .is_some_and(|detail| detail.contains("script: ")) =>
        {
            None
        }
        code if BUSY.contains(&code) => Some(Kind::Busy),
        code if REFUSED.contains(&code) => Some(Kind::Refused),
        _ => None,
    }
}

/// The error's code. Before Redis 7 a script's error is an `ERR` that holds the real one: `…:12: -OOM command…`.
fn code(error: &RedisError) -> Option<&str> {
    match error.code()? {
        "ERR" => {
            let held = error.detail().and_then(|detail| detail.split_once(": -"));
            held.and_then(|(_, held)| held.split_whitespace().next())
                .or(Some("ERR"))
        }
        code => Some(code),
    }
}

/// The server's own words; a library's where it did not speak.
fn words(error: &RedisError) -> String {
    match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        (Some(code), None) => code.to_owned(),
        _ if error.kind() == ErrorKind::AuthenticationFailed => {
            "the server refuses this user name or password".to_owned()
        }
        _ => error.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answered(line: &str) -> Fault {
        let value = redis::parse_redis_value(format!("-{line}\r\n").as_bytes()).unwrap();
        Fault::of_call("redis", &value.extract_error().unwrap_err())
    }

    #[test]
    fn an_answer_that_comes_before_any_write_is_definite() {
        for (line, kind) in [
            ("LOADING Redis is loading the dataset in memory", Kind::Busy),
            (
                "READONLY You can't write against a read only replica.",
                Kind::Busy,
            ),
            ("CLUSTERDOWN Hash slot not served", Kind::Busy),
            (
                "TRYAGAIN Multiple keys request during rehashing",
                Kind::Busy,
            ),
            ("BUSY Redis is busy running a script.", Kind::Busy),
            ("NOREPLICAS Not enough good replicas to write.", Kind::Busy),
            (
                "OOM command not allowed when used memory > 'maxmemory'.",
                Kind::Refused,
            ),
            ("NOPERM this user has no permissions to run", Kind::Refused),
            ("NOAUTH Authentication required.", Kind::Refused),
            ("WRONGPASS invalid username-password pair", Kind::Refused),
            (
                "MISCONF Redis is configured to save RDB snapshots",
                Kind::Refused,
            ),
            ("NOSCRIPT No matching script.", Kind::NoScript),
            (
                "MOVED 3999 10.0.0.1:6381",
                Kind::Moved("10.0.0.1:6381".into()),
            ),
            ("ASK 3999 10.0.0.1:6381", Kind::Ask("10.0.0.1:6381".into())),
        ] {
            assert_eq!(answered(line).kind, kind, "{line}");
        }
    }

    #[test]
    fn an_older_servers_script_error_is_read_by_the_code_within() {
        let old = "ERR Error running script (call to f_1): @user_script:16: @user_script: 16: ";
        let oom = answered(&format!("{old}-OOM command not allowed"));
        assert_eq!(oom.kind, Kind::Refused);
        let replica = answered(&format!("{old}-READONLY You can't write"));
        assert_eq!(replica.kind, Kind::Busy);
    }

    #[test]
    fn what_nobody_knows_is_ambiguous() {
        for line in [
            "ERR Error running script",
            "NOVELTY of a later version",
            "NOPERM User joe has no permissions to run 'pexpireat' script: 1, on @user_script:16.",
        ] {
            assert_eq!(answered(line).kind, Kind::Ambiguous, "{line}");
        }
        let cut = RedisError::from(std::io::Error::from(std::io::ErrorKind::ConnectionReset));
        assert_eq!(Fault::of_call("redis", &cut).kind, Kind::Ambiguous);
        assert_eq!(Fault::of_connecting("redis", &cut).kind, Kind::Refused);
    }

    #[test]
    fn the_servers_own_words_are_kept() {
        assert_eq!(
            answered("OOM command not allowed").text,
            "redis: OOM command not allowed"
        );
    }
}
