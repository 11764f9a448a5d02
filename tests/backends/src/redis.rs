//! Redis as a private process: a server with any options, or a cluster of three.

use std::io::{self, BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};

use rustix::process::Signal;

use crate::process::{Process, StartError, free_port};

const BY_HAND: &str = "by hand: apt-get install redis-server";

/// An option that stands for a free port: `--tls-port`, `free`.
pub const FREE: &str = "free";

/// Attempts to get a port that somebody else took in between.
const ATTEMPTS: usize = 5;

/// The slots of a cluster of three.
const SLOTS: [(&str, &str); 3] = [("0", "5460"), ("5461", "10922"), ("10923", "16383")];

/// A Redis server on a free port, whose data goes with it.
#[derive(Debug)]
pub struct Redis {
    process: Process,
    port: u16,
    others: Vec<u16>,
}

impl Redis {
    /// Starts a server with options beside the defaults: no snapshots, no log, this machine only. For each
    /// option that is [`FREE`] it gets a further free port.
    pub fn start(options: &[&str]) -> Result<Self, StartError> {
        let mut last = None;
        for _ in 0..ATTEMPTS {
            match Self::attempt(options) {
                Err(StartError::Late { said, .. }) if said.contains("Address already in use") => {
                    last = Some(said);
                }
                other => return other,
            }
        }
        Err(refused(last.unwrap_or_default()))
    }

    fn attempt(options: &[&str]) -> Result<Self, StartError> {
        let system = |reason| StartError::System {
            program: "redis-server".into(),
            reason,
        };
        let (port, mut others) = (free_port().map_err(system)?, Vec::new());
        let mut arguments = defaults(port);
        for option in options {
            if *option == FREE {
                others.push(free_port().map_err(system)?);
            }
            arguments.push(match (*option, others.last()) {
                (FREE, Some(port)) => port.to_string(),
                (option, _) => option.to_owned(),
            });
        }
        let process = Process::start("redis-server", &arguments, BY_HAND)?;
        process.says("Ready to accept connections")?;
        Ok(Self {
            process,
            port,
            others,
        })
    }

    /// The ports in place of [`FREE`] options, in their order.
    pub fn others(&self) -> &[u16] {
        &self.others
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        (Ipv4Addr::LOCALHOST, self.port).into()
    }

    /// Its address as the gateway's configuration wants it.
    pub fn url(&self) -> String {
        format!("redis://{}", self.address())
    }

    /// Asks it for something over a connection of its own. The answer as `redis-cli` would show it: lines
    /// without their marks, errors with a leading `-`.
    pub fn ask(&self, command: &[&str]) -> io::Result<String> {
        let mut stream = TcpStream::connect(self.address())?;
        stream.write_all(&encode(command))?;
        read_answer(&mut BufReader::new(stream))
    }

    /// Asks it for something that it must not refuse.
    pub fn tell(&self, command: &[&str]) -> Result<String, StartError> {
        match self.ask(command) {
            Ok(answer) if !answer.starts_with('-') => Ok(answer),
            Ok(answer) => Err(refused(answer)),
            Err(error) => Err(refused(error.to_string())),
        }
    }

    /// Waits until it logs this.
    pub fn says(&self, awaited: &str) -> Result<(), StartError> {
        self.process.says(awaited)
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        self.process.signal(signal)
    }
}

/// A cluster of three primaries without replicas.
#[derive(Debug)]
pub struct RedisCluster {
    /// The servers, in the order of their slots.
    pub nodes: Vec<Redis>,
}

impl RedisCluster {
    /// Starts the servers, shares the slots out, and waits until each knows of all.
    pub fn start() -> Result<Self, StartError> {
        let nodes = SLOTS.iter().map(|_| Self::node());
        let nodes = nodes.collect::<Result<Vec<_>, _>>()?;
        for (node, (first, last)) in nodes.iter().zip(SLOTS) {
            node.tell(&["CLUSTER", "ADDSLOTSRANGE", first, last])?;
        }
        for node in &nodes[1..] {
            let [port, bus] = [node.port, node.others[0]].map(|port| port.to_string());
            nodes[0].tell(&["CLUSTER", "MEET", "127.0.0.1", &port, &bus])?;
        }
        for node in &nodes {
            node.says("Cluster state changed: ok")?;
        }
        Ok(Self { nodes })
    }

    fn node() -> Result<Redis, StartError> {
        Redis::start(&["--cluster-enabled", "yes", "--cluster-port", FREE])
    }

    /// One address, from which the others are learnt.
    pub fn url(&self) -> String {
        self.nodes[0].url()
    }
}

/// A sentinel that watches one primary by the name `main`.
#[derive(Debug)]
pub struct Sentinel(Redis);

impl Sentinel {
    /// Starts it, alone: its own word is enough for a failover.
    pub fn start(primary: &Redis) -> Result<Self, StartError> {
        let system = |reason| StartError::System {
            program: "redis-server".into(),
            reason,
        };
        let port = free_port().map_err(system)?;
        let config = format!(
            "port {port}\nbind 127.0.0.1\nsentinel monitor main 127.0.0.1 {} 1\n\
             sentinel failover-timeout main 5000\n",
            primary.port
        );
        let process = Process::start_with("redis-server", BY_HAND, |directory| {
            let path = directory.join("sentinel.conf");
            std::fs::write(&path, &config)?;
            Ok(vec![path.display().to_string(), "--sentinel".to_owned()])
        })?;
        process.says("+monitor master main")?;
        Ok(Self(Redis {
            process,
            port,
            others: Vec::new(),
        }))
    }

    /// It, as a server.
    pub fn server(&self) -> &Redis {
        &self.0
    }
}

fn defaults(port: u16) -> Vec<String> {
    let port = port.to_string();
    let defaults = [
        "--port",
        &port,
        "--bind",
        "127.0.0.1",
        "--save",
        "",
        "--appendonly",
        "no",
    ];
    defaults.map(str::to_owned).to_vec()
}

fn refused(answer: String) -> StartError {
    StartError::Refused {
        program: "redis-server".into(),
        answer,
    }
}

fn encode(command: &[&str]) -> Vec<u8> {
    let mut bytes = format!("*{}\r\n", command.len()).into_bytes();
    for part in command {
        bytes.extend(format!("${}\r\n{part}\r\n", part.len()).into_bytes());
    }
    bytes
}

fn read_answer(from: &mut BufReader<TcpStream>) -> io::Result<String> {
    let mut line = String::new();
    from.read_line(&mut line)?;
    let (mark, rest) = line.trim_end().split_at_checked(1).unwrap_or_default();
    let count: i64 = rest.parse().unwrap_or(-1);
    match mark {
        "" => Err(io::ErrorKind::UnexpectedEof.into()),
        "-" => Ok(format!("-{rest}")),
        "$" if count >= 0 => {
            let mut text = vec![0; usize::try_from(count).unwrap_or_default() + 2];
            from.read_exact(&mut text)?;
            text.truncate(text.len() - 2);
            Ok(String::from_utf8_lossy(&text).into_owned())
        }
        "*" => {
            let parts = (0..count).map(|_| read_answer(from));
            Ok(parts.collect::<io::Result<Vec<_>>>()?.join("\n"))
        }
        "$" => Ok(String::new()),
        _ => Ok(rest.to_owned()),
    }
}
