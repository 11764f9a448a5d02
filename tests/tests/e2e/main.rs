//! The real binary, from outside: killed and stopped at every bad moment, beset, refused what it needs, told to stop.
//!
//! Nothing here sleeps to let something happen: what is waited for is polled, with a deadline that only a
//! broken gateway meets.

mod crash;
mod drain;
mod guide;
mod hostile;
mod keys;
mod published;
mod refusals;
mod reload;
mod remote;
mod send;
mod stopped;
mod world;
