//! Places where tests kill this process, as a power cut or the kernel would: no destructor, no flush. Or where
//! they stop it, as a paused virtual machine or container is.
//!
//! `FAILPOINTS="NAME=3*off->return"` kills it the fourth time it comes by NAME; `"NAME=1*return(stop)"` stops it
//! the first time, until it is continued (SIGCONT). Absent from release builds.

#[cfg(all(feature = "failpoints", not(debug_assertions)))]
compile_error!("fail points have no place in a release build: build without --features failpoints");

/// Before a batch's transaction begins.
pub const BEFORE_COMMIT: &str = "before-commit";
/// With the batch written, but not committed.
pub const INSIDE_COMMIT: &str = "inside-commit";
/// With the batch durable, but nobody told.
pub const AFTER_COMMIT: &str = "after-commit";
/// With an event identified, before the claim store is asked for it.
pub const BEFORE_CLAIM: &str = "before-claim";
/// With its claim held, before a message is made.
pub const AFTER_CLAIM: &str = "after-claim";
/// With the message made, before it is handed to the queue's client.
pub const BEFORE_SEND: &str = "before-send";
/// With the message confirmed, but nobody told.
pub const AFTER_SEND: &str = "after-send";
/// With the sender told, before the claim is settled.
pub const BEFORE_SETTLE: &str = "before-settle";
/// With the claim settled.
pub const AFTER_SETTLE: &str = "after-settle";
/// With nothing sent, before the claim is given up.
pub const BEFORE_RELEASE: &str = "before-release";
/// With the outcome known to the connection, but no byte of the answer sent.
pub const BEFORE_ANSWER: &str = "before-answer";
/// With some bytes of the answer sent.
pub const INSIDE_ANSWER: &str = "inside-answer";

/// Kills or stops the process if a test says so.
#[cfg(feature = "failpoints")]
pub fn here(name: &str) {
    use rustix::process::{Signal, getpid, kill_process};
    fail::eval(name, |argument| {
        if argument.as_deref() == Some("stop") {
            let _ = kill_process(getpid(), Signal::STOP);
            return;
        }
        let _ = kill_process(getpid(), Signal::KILL);
        loop {
            std::thread::park();
        }
    });
}

/// Reads what tests ask for from the environment.
#[cfg(feature = "failpoints")]
pub fn setup() {
    // Kept for as long as the process lives.
    std::mem::forget(fail::FailScenario::setup());
}

/// Nothing, in a build without fail points.
#[cfg(not(feature = "failpoints"))]
#[inline]
pub fn here(_: &str) {}

/// Nothing, in a build without fail points.
#[cfg(not(feature = "failpoints"))]
pub fn setup() {}
