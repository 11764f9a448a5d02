//! Which server of a cluster owns a key, learnt from the cluster and corrected by its redirections.
//!
//! A redirection is a definite "not done", so following it repeats nothing. The map is asked for anew behind a
//! redirection or a lost server, beside the calls, and never more often than every 100 ms.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use redis::Value;

use super::dial::{Address, Dial, Target};
use super::fault::{Fault, Kind};
use super::line::{Reply, Request};
use super::node::Node;

const SLOTS: u16 = 16384;

/// Redirections that one call follows: a slot on the move needs two.
const REDIRECTIONS: usize = 5;

/// The least time between two looks at the map.
const PAUSE: Duration = Duration::from_millis(100);

pub(super) struct Cluster {
    dial: Arc<Dial>,
    /// How much longer a call may take that waits for replicas.
    extra: Duration,
    seeds: Vec<(String, u16)>,
    map: ArcSwap<Map>,
    nodes: Mutex<HashMap<(String, u16), Arc<Node>>>,
    looked: tokio::sync::Mutex<Option<Instant>>,
    this: Weak<Self>,
}

/// The primaries, and the slots that each owns.
#[derive(Default)]
struct Map {
    ranges: Vec<(u16, u16, Arc<Node>)>,
}

impl Map {
    fn owner(&self, slot: u16) -> Option<Arc<Node>> {
        let mut ranges = self.ranges.iter();
        let range = ranges.find(|(first, last, _)| (*first..=*last).contains(&slot))?;
        Some(Arc::clone(&range.2))
    }
}

impl Cluster {
    pub fn new(dial: &Arc<Dial>, seeds: &[Address], extra: Duration) -> Arc<Self> {
        let seeds = seeds.iter().map(|seed| (seed.host.clone(), seed.port));
        Arc::new_cyclic(|this| Self {
            dial: Arc::clone(dial),
            extra,
            seeds: seeds.collect(),
            map: ArcSwap::default(),
            nodes: Mutex::default(),
            looked: tokio::sync::Mutex::default(),
            this: Weak::clone(this),
        })
    }

    /// Asks the server that owns the key.
    pub async fn call(&self, key: &str, request: &Request) -> Result<Reply, Fault> {
        let slot = slot(key.as_bytes());
        let (mut node, mut asking) = (self.owner(slot).await?, false);
        for _ in 0..REDIRECTIONS {
            let fault = match node.call(request, asking).await {
                Ok(reply) => return Ok(reply),
                Err(fault) => fault,
            };
            let (to, ask) = match &fault.kind {
                Kind::Moved(to) => (to, false),
                Kind::Ask(to) => (to, true),
                Kind::NoScript => return Err(fault),
                Kind::Busy | Kind::Refused | Kind::Ambiguous => {
                    self.look_again();
                    return Err(fault);
                }
            };
            if !ask {
                self.look_again();
            }
            let Some((host, port)) = address(to, node.name()) else {
                return Err(fault);
            };
            (node, asking) = (self.node(&host, port), ask);
        }
        let text = format!("slot {slot} is on the move: {REDIRECTIONS} redirections");
        Err(Fault::new(Kind::Busy, node.name(), &text))
    }

    /// All primaries, as the cluster names them now.
    pub async fn primaries(&self) -> Result<Vec<Arc<Node>>, Fault> {
        self.look(Duration::ZERO).await?;
        let map = self.map.load();
        let mut primaries: Vec<Arc<Node>> = Vec::new();
        for (_, _, node) in &map.ranges {
            if !primaries.iter().any(|known| Arc::ptr_eq(known, node)) {
                primaries.push(Arc::clone(node));
            }
        }
        Ok(primaries)
    }

    async fn owner(&self, slot: u16) -> Result<Arc<Node>, Fault> {
        if let Some(node) = self.map.load().owner(slot) {
            return Ok(node);
        }
        self.look(PAUSE).await?;
        self.map.load().owner(slot).ok_or_else(|| {
            let text = format!("nobody serves slot {slot}");
            Fault::new(Kind::Busy, "the redis cluster", &text)
        })
    }

    fn node(&self, host: &str, port: u16) -> Arc<Node> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        let node = nodes.entry((host.to_owned(), port)).or_insert_with(|| {
            let target = |extra| Target::at(&self.dial, host, port, extra);
            Arc::new(Node::new(target(Duration::ZERO), target(self.extra)))
        });
        Arc::clone(node)
    }

    /// Looks at the map in a task of its own, unless somebody is looking.
    fn look_again(&self) {
        if self.looked.try_lock().is_err() {
            return;
        }
        if let Some(this) = self.this.upgrade() {
            tokio::spawn(async move { this.look(PAUSE).await });
        }
    }

    /// Asks one server after the other for the map, unless somebody has within `fresh`.
    async fn look(&self, fresh: Duration) -> Result<(), Fault> {
        let asked = Instant::now();
        let mut looked = self.looked.lock().await;
        if looked.is_some_and(|at| at >= asked || at.elapsed() < fresh) {
            return Ok(());
        }
        let found = self.find_map().await;
        *looked = Some(Instant::now());
        self.take(found?);
        Ok(())
    }

    async fn find_map(&self) -> Result<Vec<Range>, Fault> {
        let request = Request {
            command: slots_command(),
            wait: None,
        };
        let mut last = None;
        for node in self.known() {
            match node.call(&request, false).await {
                Ok(reply) => match ranges(&reply.value, node.name()) {
                    Some(ranges) if !ranges.is_empty() => return Ok(ranges),
                    _ => last = Some(Fault::new(Kind::Busy, node.name(), "knows no slots")),
                },
                // Asking for the map changes nothing.
                Err(Fault {
                    kind: Kind::Ambiguous,
                    text,
                }) => {
                    last = Some(Fault {
                        kind: Kind::Busy,
                        text,
                    });
                }
                Err(fault) => last = Some(fault),
            }
        }
        Err(last.unwrap_or_else(|| Fault::new(Kind::Refused, "redis", "no address")))
    }

    /// Those in the map, then those that the operator named.
    fn known(&self) -> Vec<Arc<Node>> {
        let mut known: Vec<Arc<Node>> = Vec::new();
        let map = self.map.load();
        let mapped = map.ranges.iter().map(|(_, _, node)| Arc::clone(node));
        let seeds = self.seeds.iter().map(|(host, port)| self.node(host, *port));
        for node in mapped.chain(seeds) {
            if !known.iter().any(|other| Arc::ptr_eq(other, &node)) {
                known.push(node);
            }
        }
        known
    }

    fn take(&self, found: Vec<Range>) {
        let ranges = found.into_iter().map(|range| {
            let node = self.node(&range.host, range.port);
            (range.first, range.last, node)
        });
        let ranges: Vec<_> = ranges.collect();
        self.map.store(Arc::new(Map { ranges }));
        let map = self.map.load();
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        nodes.retain(|_, node| {
            map.ranges
                .iter()
                .any(|(_, _, used)| Arc::ptr_eq(used, node))
        });
    }
}

struct Range {
    first: u16,
    last: u16,
    host: String,
    port: u16,
}

fn slots_command() -> redis::Cmd {
    let mut command = redis::cmd("CLUSTER");
    command.arg("SLOTS");
    command
}

/// The primaries of `CLUSTER SLOTS`; a server without a host is the one that was asked.
fn ranges(answer: &Value, asked: &str) -> Option<Vec<Range>> {
    let Value::Array(answer) = answer else {
        return None;
    };
    answer
        .iter()
        .map(|range| self::range(range, asked))
        .collect()
}

fn range(range: &Value, asked: &str) -> Option<Range> {
    let Value::Array(parts) = range else {
        return None;
    };
    let [first, last, Value::Array(primary), ..] = parts.as_slice() else {
        return None;
    };
    let [host, Value::Int(port), ..] = primary.as_slice() else {
        return None;
    };
    let said = match host {
        Value::BulkString(host) => std::str::from_utf8(host).ok()?,
        _ => "",
    };
    let (host, port) = address(&format!("{said}:{port}"), asked)?;
    Some(Range {
        first: slot_of(first)?,
        last: slot_of(last)?,
        host,
        port,
    })
}

fn slot_of(value: &Value) -> Option<u16> {
    match value {
        Value::Int(slot) => u16::try_from(*slot).ok().filter(|slot| *slot < SLOTS),
        _ => None,
    }
}

/// `host:port`, where no host means that of the server that said so.
fn address(said: &str, by: &str) -> Option<(String, u16)> {
    let (host, port) = said.rsplit_once(':')?;
    let by = by.trim_start_matches("redis ").rsplit_once(':')?.0;
    let host = if host.is_empty() || host == "?" {
        by
    } else {
        host
    };
    Some((host.to_owned(), port.parse().ok()?))
}

/// The slot of a key: of what stands between its first `{` and the next `}`, if that is anything.
fn slot(key: &[u8]) -> u16 {
    let tag = || {
        let open = key.iter().position(|byte| *byte == b'{')?;
        let rest = &key[open + 1..];
        let close = rest.iter().position(|byte| *byte == b'}')?;
        (close > 0).then(|| &rest[..close])
    };
    crc16(tag().unwrap_or(key)) % SLOTS
}

/// CRC-16/XMODEM, as the cluster specification says.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte) << 8, |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_those_of_the_specification() {
        assert_eq!(crc16(b"123456789"), 0x31C3);
        assert_eq!(slot(b"123456789"), 12739);
        assert_eq!(slot(b"{user1000}.following"), slot(b"user1000"));
        assert_eq!(slot(b"foo{}{bar}"), crc16(b"foo{}{bar}") % SLOTS);
        assert_eq!(slot(b"foo{{bar}}zap"), slot(b"{bar"));
        assert_eq!(slot(b"foo{bar}{zap}"), slot(b"bar"));
    }

    #[test]
    fn a_server_without_a_host_is_the_one_that_was_asked() {
        let asked = "redis 10.0.0.1:6379";
        assert_eq!(address(":6380", asked), Some(("10.0.0.1".into(), 6380)));
        assert_eq!(address("?:6380", asked), Some(("10.0.0.1".into(), 6380)));
        assert_eq!(address("::1:6380", asked), Some(("::1".into(), 6380)));
        let nil = Value::Array(vec![
            Value::Int(0),
            Value::Int(5460),
            Value::Array(vec![Value::Nil, Value::Int(7000)]),
        ]);
        let ranges = ranges(&Value::Array(vec![nil]), asked).unwrap();
        assert_eq!(
            (ranges[0].last, ranges[0].host.as_str()),
            (5460, "10.0.0.1")
        );
    }
}
