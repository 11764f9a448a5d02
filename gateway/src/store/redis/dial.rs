//! How a server is reached: its address, TLS, who we are, and how long we wait. With Sentinel, which server
//! that is.

use std::sync::Arc;
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::io::tcp::{TcpSettings, socket2::TcpKeepalive};
use redis::{
    AsyncConnectionConfig, Client, ConnectionAddr, ConnectionInfo, IntoConnectionInfo,
    RedisConnectionInfo, RedisError, TlsCertificates, Value,
};

use super::fault::Fault;
use super::{OpenError, Password, RedisSettings};

/// Requests that may wait to be written to one connection.
const WAITING: usize = 1024;

/// After so much silence the system asks whether the other end is still there.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// What all connections have in common.
pub(super) struct Dial {
    tls: bool,
    authorities: Option<Vec<u8>>,
    login: RedisConnectionInfo,
    connect: Duration,
    call: Duration,
}

/// An address as its URL says it.
pub(super) struct Address {
    pub host: String,
    pub port: u16,
    tls: bool,
    db: i64,
}

impl Address {
    pub fn parse(url: &str) -> Result<Self, OpenError> {
        let bad = |reason: &str| OpenError::Address {
            url: withhold(url),
            reason: reason.to_owned(),
        };
        if url.contains('@') {
            return Err(bad("user name and password are settings of their own"));
        }
        let info = url
            .into_connection_info()
            .map_err(|error| bad(&error.to_string()))?;
        let db = info.redis_settings().db();
        match info.addr().clone() {
            ConnectionAddr::Tcp(host, port) => Ok(Self {
                host,
                port,
                tls: false,
                db,
            }),
            ConnectionAddr::TcpTls { insecure: true, .. } => {
                Err(bad("a certificate that is not checked protects nothing"))
            }
            ConnectionAddr::TcpTls { host, port, .. } => Ok(Self {
                host,
                port,
                tls: true,
                db,
            }),
            _ => Err(bad("it has to be redis://host:port or rediss://host:port")),
        }
    }
}

/// A URL without what may be a password.
pub(super) fn withhold(url: &str) -> String {
    match url.rsplit_once('@') {
        Some((_, address)) => format!("…@{address}"),
        None => url.to_owned(),
    }
}

impl Dial {
    pub fn new(settings: &RedisSettings, addresses: &[Address]) -> Result<Self, OpenError> {
        let first = addresses.first().ok_or(OpenError::NoNode)?;
        let alike = |address: &Address| (address.tls, address.db) == (first.tls, first.db);
        if !addresses.iter().all(alike) {
            return Err(OpenError::Mixed(
                "the servers' addresses differ in TLS or database\nhint: redis:// or rediss:// for all",
            ));
        }
        let authorities = settings.certificate_authorities.as_ref().map(|path| {
            std::fs::read(path).map_err(|reason| OpenError::Authorities {
                path: path.clone(),
                reason,
            })
        });
        let login = login(settings.username.as_deref(), settings.password.as_ref());
        Ok(Self {
            tls: first.tls,
            authorities: authorities.transpose()?,
            login: login.set_db(first.db),
            connect: settings.timeouts.connect,
            call: settings.timeouts.call,
        })
    }

    /// The same for the sentinels, which have a password of their own, or none.
    pub fn for_sentinels(&self, password: Option<&Password>) -> Self {
        Self {
            tls: self.tls,
            authorities: self.authorities.clone(),
            login: login(None, password),
            connect: self.connect,
            call: self.call,
        }
    }

    fn client(&self, host: &str, port: u16) -> Result<Client, RedisError> {
        let host = host.to_owned();
        let address = match self.tls {
            false => ConnectionAddr::Tcp(host, port),
            true => ConnectionAddr::TcpTls {
                host,
                port,
                insecure: false,
                tls_params: None,
            },
        };
        let info = self.info(address)?;
        match &self.authorities {
            Some(pem) if self.tls => Client::build_with_tls(
                info,
                TlsCertificates {
                    client_tls: None,
                    root_cert: Some(pem.clone()),
                },
            ),
            _ => Client::open(info),
        }
    }

    fn info(&self, address: ConnectionAddr) -> Result<ConnectionInfo, RedisError> {
        let tcp = TcpSettings::default()
            .set_nodelay(true)
            .set_keepalive(TcpKeepalive::new().with_time(KEEPALIVE))
            .set_user_timeout(self.call);
        let info = address.into_connection_info()?;
        Ok(info
            .set_redis_settings(self.login.clone())
            .set_tcp_settings(tcp))
    }

    async fn connect(
        &self,
        host: &str,
        port: u16,
        extra: Duration,
    ) -> Result<MultiplexedConnection, Fault> {
        let config = AsyncConnectionConfig::new()
            .set_connection_timeout(Some(self.connect))
            .set_response_timeout(Some(self.call + extra))
            .set_pipeline_buffer_size(WAITING);
        let connected = async {
            let client = self.client(host, port)?;
            client
                .get_multiplexed_async_connection_with_config(&config)
                .await
        };
        connected
            .await
            .map_err(|error| Fault::of_connecting(&name(host, port), &error))
    }
}

fn login(username: Option<&str>, password: Option<&Password>) -> RedisConnectionInfo {
    let mut login =
        RedisConnectionInfo::default().set_lib_name("hookgate", env!("CARGO_PKG_VERSION"));
    if let Some(username) = username {
        login = login.set_username(username);
    }
    if let Some(password) = password {
        login = login.set_password(&password.0);
    }
    login
}

pub(super) fn name(host: &str, port: u16) -> String {
    format!("redis {host}:{port}")
}

/// A server to connect to.
pub(super) struct Target {
    name: String,
    dial: Arc<Dial>,
    place: Place,
    /// How much longer than others its calls may take.
    extra: Duration,
}

enum Place {
    Here(String, u16),
    /// Where the sentinels say.
    Primary {
        sentinels: Sentinels,
        master: String,
    },
}

struct Sentinels {
    dial: Dial,
    addresses: Arc<[Address]>,
}

impl Target {
    pub fn at(dial: &Arc<Dial>, host: &str, port: u16, extra: Duration) -> Self {
        Self {
            name: name(host, port),
            dial: Arc::clone(dial),
            place: Place::Here(host.to_owned(), port),
            extra,
        }
    }

    pub fn of_sentinels(
        dial: &Arc<Dial>,
        addresses: &Arc<[Address]>,
        (master, password): (&str, Option<&Password>),
        extra: Duration,
    ) -> Self {
        let sentinels = Sentinels {
            dial: dial.for_sentinels(password),
            addresses: Arc::clone(addresses),
        };
        Self {
            name: format!("redis {master} (by sentinel)"),
            dial: Arc::clone(dial),
            place: Place::Primary {
                sentinels,
                master: master.to_owned(),
            },
            extra,
        }
    }

    pub fn name(&self) -> &str {
        &self.name
    }

    /// How long a call may take.
    pub fn patience(&self) -> Duration {
        self.dial.call + self.extra
    }

    pub async fn connect(&self) -> Result<MultiplexedConnection, Fault> {
        match &self.place {
            Place::Here(host, port) => self.dial.connect(host, *port, self.extra).await,
            Place::Primary { sentinels, master } => {
                let (host, port) = sentinels.primary(master).await?;
                let mut connection = self.dial.connect(&host, port, self.extra).await?;
                is_primary(&mut connection, &name(&host, port)).await?;
                Ok(connection)
            }
        }
    }
}

impl Sentinels {
    /// The primary's address, from the first sentinel that knows it.
    async fn primary(&self, master: &str) -> Result<(String, u16), Fault> {
        let mut last = None;
        for address in self.addresses.iter() {
            match self.ask(address, master).await {
                Ok(primary) => return Ok(primary),
                Err(fault) => last = Some(fault),
            }
        }
        Err(last.unwrap_or_else(|| Fault::unknown_master("sentinel", master)))
    }

    async fn ask(&self, address: &Address, master: &str) -> Result<(String, u16), Fault> {
        let sentinel = format!("sentinel {}:{}", address.host, address.port);
        let connected = self
            .dial
            .connect(&address.host, address.port, Duration::ZERO);
        let mut connection = connected.await?;
        let mut ask = redis::cmd("SENTINEL");
        ask.arg("GET-MASTER-ADDR-BY-NAME").arg(master);
        let answer: Option<(String, u16)> = ask
            .query_async(&mut connection)
            .await
            .map_err(|error| Fault::of_connecting(&sentinel, &error))?;
        answer.ok_or_else(|| Fault::unknown_master(&sentinel, master))
    }
}

/// A sentinel may still name the server that a failover has just demoted.
async fn is_primary(connection: &mut MultiplexedConnection, name: &str) -> Result<(), Fault> {
    let role = redis::cmd("ROLE").query_async(connection).await;
    let role: Value = role.map_err(|error| Fault::of_connecting(name, &error))?;
    let role = match role {
        Value::Array(parts) => parts.into_iter().next(),
        _ => None,
    };
    match role {
        Some(Value::BulkString(role)) if role == b"master" => Ok(()),
        Some(Value::BulkString(role)) => {
            Err(Fault::not_primary(name, &String::from_utf8_lossy(&role)))
        }
        _ => Err(Fault::not_primary(name, "server without a role")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_in_an_address_is_refused_and_not_repeated() {
        let refused = Address::parse("redis://joe:s3cret@cache:6379")
            .err()
            .unwrap();
        assert_eq!(
            refused.to_string(),
            "…@cache:6379 is no address of a Redis: user name and password are settings of their own"
        );
    }

    #[test]
    fn only_checked_connections_count_as_tls() {
        assert!(Address::parse("rediss://cache:6380/#insecure").is_err());
        assert!(Address::parse("unix:///run/redis").is_err());
        let address = Address::parse("rediss://cache").unwrap();
        assert_eq!((address.tls, address.port), (true, 6379));
    }
}
