//! GET by HTTPS: what asks providers' hosts for keys.
//!
//! No redirect is followed, no private address is connected to (whatever DNS says), and size and time are
//! bounded. An operator's own table of addresses is taken at its word: private endpoints are such.

use std::collections::HashMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Empty, Limited};
use hyper_rustls::{HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::client::legacy::connect::dns::Name;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::{ClientConfig, RootCertStore};
use tower_service::Service;

use super::{Fetch, FetchError, Fetched, Fetching, MAX_DOCUMENT};

/// How long connecting may take, and all of it.
const CONNECT: Duration = Duration::from_secs(2);
const WHOLE: Duration = Duration::from_secs(4);
/// How long a connection is kept for the next request.
const IDLE: Duration = Duration::from_secs(15);

/// Asks hosts by HTTPS.
pub struct Https {
    client: Client<HttpsConnector<HttpConnector<Resolver>>, Empty<Bytes>>,
}

impl Https {
    /// A client that trusts `roots`. Hosts in `addresses` are found there and not by DNS.
    ///
    /// # Panics
    ///
    /// Never: ring has the protocol versions that rustls speaks.
    pub fn new(roots: RootCertStore, addresses: HashMap<String, SocketAddr>) -> Self {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("ring has the default protocol versions")
            .with_root_certificates(roots)
            .with_no_client_auth();
        let mut tcp = HttpConnector::new_with_resolver(Resolver(Arc::new(addresses)));
        tcp.enforce_http(false);
        tcp.set_connect_timeout(Some(CONNECT));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(tls)
            .https_only()
            .enable_http1()
            .wrap_connector(tcp);
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE);
        Self {
            client: builder.build(https),
        }
    }

    async fn ask(&self, url: &str) -> Result<Fetched, FetchError> {
        let refused = |error: http::Error| FetchError::Refused(format!("its URL is none: {error}"));
        let agent = concat!("hookgate/", env!("CARGO_PKG_VERSION"));
        let request = Request::get(url).header(header::USER_AGENT, agent);
        let request = request.body(Empty::new()).map_err(refused)?;
        let unavailable = |error: &dyn std::error::Error| FetchError::Unavailable(causes(error));
        let response = self.client.request(request).await;
        let response = response.map_err(|error| unavailable(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(no_success(status));
        }
        let max_age = max_age(response.headers());
        let body = Limited::new(response.into_body(), MAX_DOCUMENT)
            .collect()
            .await;
        let body =
            body.map_err(
                |error| match error.downcast_ref::<http_body_util::LengthLimitError>() {
                    Some(_) => {
                        FetchError::Refused(format!("it is larger than {MAX_DOCUMENT} bytes"))
                    }
                    None => unavailable(error.as_ref()),
                },
            )?;
        Ok(Fetched {
            body: body.to_bytes(),
            max_age,
        })
    }
}

impl Fetch for Https {
    fn get<'a>(&'a self, url: &'a str) -> Fetching<'a> {
        Box::pin(async move {
            let late = |_| FetchError::Unavailable(format!("no answer within {WHOLE:?}"));
            tokio::time::timeout(WHOLE, self.ask(url))
                .await
                .map_err(late)?
        })
    }
}

fn no_success(status: StatusCode) -> FetchError {
    let what = format!("its host answered {status}");
    match status {
        StatusCode::REQUEST_TIMEOUT | StatusCode::TOO_MANY_REQUESTS => {
            FetchError::Unavailable(what)
        }
        status if status.is_server_error() => FetchError::Unavailable(what),
        _ => FetchError::Refused(what),
    }
}

/// An error and its causes.
fn causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

/// `max-age` of `Cache-Control`.
fn max_age(headers: &HeaderMap) -> Option<Duration> {
    let control = headers.get(header::CACHE_CONTROL)?.to_str().ok()?;
    let mut ages = control
        .split(',')
        .filter_map(|part| part.trim().strip_prefix("max-age="));
    let seconds = ages.next_back()?.parse().ok()?;
    Some(Duration::from_secs(seconds))
}

/// Finds hosts: in the operator's table, else by DNS, public addresses only.
#[derive(Clone)]
struct Resolver(Arc<HashMap<String, SocketAddr>>);

impl Service<Name> for Resolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = io::Error;
    type Future = std::pin::Pin<Box<dyn Future<Output = io::Result<Self::Response>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let own = self.0.get(&name.as_str().to_ascii_lowercase()).copied();
        Box::pin(async move {
            if let Some(address) = own {
                return Ok(vec![address].into_iter());
            }
            // Port 0: the URL's.
            let found = tokio::net::lookup_host((name.as_str(), 0)).await?;
            let public: Vec<_> = found.filter(|address| is_public(address.ip())).collect();
            if public.is_empty() {
                return Err(io::Error::other(
                    "it has no public address; `fetch.addresses` names private endpoints",
                ));
            }
            Ok(public.into_iter())
        })
    }
}

/// Whether an address is one of the open internet (the IANA registries of special-purpose addresses).
fn is_public(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(v4) => is_public_v4(v4),
        IpAddr::V6(v6) => match v6.to_ipv4_mapped() {
            Some(v4) => is_public_v4(v4),
            None => is_public_v6(v6),
        },
    }
}

fn is_public_v4(address: Ipv4Addr) -> bool {
    let [a, b, c, _] = address.octets();
    let is_special = address.is_private()
        || address.is_loopback()
        || address.is_link_local()
        || address.is_documentation()
        || a == 0
        || a >= 224
        || (a == 100 && (64..128).contains(&b))
        || (a == 192 && b == 0 && c == 0)
        || (a == 192 && b == 88 && c == 99)
        || (a == 198 && (18..20).contains(&b));
    !is_special
}

/// Global unicast alone, less what embeds or tunnels another address.
fn is_public_v6(address: Ipv6Addr) -> bool {
    let [a, b, ..] = address.segments();
    let is_global = (0x2000..0x4000).contains(&a);
    let is_special = match a {
        0x2001 => b < 0x0200 || b == 0x0db8,
        0x2002 => true,
        0x3fff => b < 0x1000,
        _ => false,
    };
    is_global && !is_special
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_inside_are_told_from_those_outside() {
        let inside = [
            "0.0.0.0",
            "10.1.2.3",
            "100.64.0.1",
            "127.0.0.1",
            "169.254.169.254",
            "172.16.0.1",
            "192.0.0.8",
            "192.168.1.1",
            "198.18.0.1",
            "224.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::ffff:10.0.0.1",
            "::ffff:169.254.169.254",
            "64:ff9b::a00:1",
            "fc00::1",
            "fd00:ec2::254",
            "fe80::1",
            "ff02::1",
            "2001::1",
            "2001:db8::1",
            "2002:a00:1::",
        ];
        for address in inside {
            assert!(!is_public(address.parse().unwrap()), "{address}");
        }
        for address in [
            "1.1.1.1",
            "52.94.0.1",
            "100.128.0.1",
            "2600:1f18::1",
            "::ffff:8.8.8.8",
        ] {
            assert!(is_public(address.parse().unwrap()), "{address}");
        }
    }
}
