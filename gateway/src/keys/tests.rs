//! Keys by URL from a real server on this machine, over real TLS, found through the table of addresses.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex as StdMutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use super::https::Https;
use super::*;
use crate::clock::ManualClock;
use crate::telemetry::Telemetry;

const HOST: &str = "keys.provider.example";
const NOW: u64 = 1_900_000_000_000;

type Issuer = CertifiedIssuer<'static, KeyPair>;

fn authority(name: &str) -> Issuer {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.distinguished_name.push(DnType::CommonName, name);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap()
}

/// A certificate for `name` in these years, as PEM, its issuer's behind it.
fn certificate(issuer: &Issuer, name: &str, (from, to): (i32, i32)) -> String {
    let mut params = CertificateParams::new(vec![name.to_owned()]).unwrap();
    params.not_before = rcgen::date_time_ymd(from, 1, 1);
    params.not_after = rcgen::date_time_ymd(to, 1, 1);
    let key = KeyPair::generate().unwrap();
    params.signed_by(&key, issuer).unwrap().pem() + &issuer.pem()
}

/// A server that answers by path.
struct Server {
    answers: StdMutex<HashMap<String, String>>,
    asked: AtomicUsize,
    address: SocketAddr,
    authority: Issuer,
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

impl Server {
    async fn start() -> Arc<Self> {
        let authority = authority("the web's");
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
        let own = params.signed_by(&key, &authority).unwrap();
        let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![own.der().clone()], key)
            .unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Arc::new(Self {
            answers: StdMutex::default(),
            asked: AtomicUsize::new(0),
            address: listener.local_addr().unwrap(),
            authority,
        });
        let acceptor = TlsAcceptor::from(Arc::new(tls));
        let serving = Arc::clone(&server);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (acceptor, server) = (acceptor.clone(), Arc::clone(&serving));
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else {
                        return;
                    };
                    let mut head = vec![0; 4096];
                    let length = stream.read(&mut head).await.unwrap();
                    let head = String::from_utf8_lossy(&head[..length]).into_owned();
                    let path = head.split(' ').nth(1).unwrap().to_owned();
                    server.asked.fetch_add(1, Ordering::SeqCst);
                    let answer = server.answers.lock().unwrap().get(&path).cloned();
                    let answer = answer.unwrap_or_else(answer_404);
                    let _ = stream.write_all(answer.as_bytes()).await;
                    let _ = stream.shutdown().await;
                });
            }
        });
        server
    }

    fn has(&self, path: &str, answer: String) {
        self.answers.lock().unwrap().insert(path.into(), answer);
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }

    fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.authority.der().clone()).unwrap();
        roots
    }
}

fn answer_404() -> String {
    answer("404 Not Found", "", "")
}

/// A source that fetches from the server, and its clock.
fn remote(server: &Server, chain: bool) -> (Remote, Arc<ManualClock>) {
    remote_with(server.roots(), server.address, chain)
}

fn remote_with(roots: RootCertStore, at: SocketAddr, chain: bool) -> (Remote, Arc<ManualClock>) {
    let clock = ManualClock::at(NOW);
    let addresses = HashMap::from([(HOST.to_owned(), at)]);
    let https = Https::new(roots.clone(), addresses);
    let keys = Keys::new(
        Box::new(https),
        roots,
        clock.clone(),
        Arc::new(Telemetry::default()),
    );
    let spec = CertificateSpec {
        names: vec!["sign.*.sender.example".into()],
        chain,
    };
    let approved = vec![HostPattern::new("*.provider.example").unwrap()];
    (Remote::new(keys, approved, Some(spec)), clock)
}

fn url(path: &str) -> String {
    format!("https://{HOST}{path}")
}

/// What is found once what is needed was fetched.
async fn certificate_at(remote: &Remote, path: &str) -> Result<(), NoKey> {
    match remote.certificate(&url(path), NOW) {
        Err(NoKey::Needed(wanted)) => remote.fetch(wanted).await,
        other => return other.map(|_| ()),
    }
    remote.certificate(&url(path), NOW).map(|_| ())
}

fn refused(found: Result<(), NoKey>) -> String {
    match found {
        Err(NoKey::Refused(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

fn unavailable(found: Result<(), NoKey>) -> String {
    match found {
        Err(NoKey::Unavailable(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn a_certificate_is_fetched_once_and_kept() {
    let server = Server::start().await;
    let pem = certificate(&authority("any"), "sign.eu.sender.example", (2020, 2040));
    server.has("/a.pem", answer("200 OK", "", &pem));
    let (remote, _) = remote(&server, false);
    let remote = Arc::new(remote);
    let many: Vec<_> = (0..32)
        .map(|_| {
            let remote = Arc::clone(&remote);
            tokio::spawn(async move { certificate_at(&remote, "/a.pem").await })
        })
        .collect();
    for one in many {
        assert_eq!(one.await.unwrap(), Ok(()));
    }
    assert_eq!(server.asked(), 1);
}

#[tokio::test]
async fn a_certificate_must_be_meant_valid_and_where_the_manifest_says_so_vouched_for() {
    let server = Server::start().await;
    let stranger = authority("a stranger's");
    let by = |issuer, name, years| answer("200 OK", "", &certificate(issuer, name, years));
    server.has(
        "/good.pem",
        by(&server.authority, "sign.eu.sender.example", (2020, 2040)),
    );
    server.has(
        "/stranger.pem",
        by(&stranger, "sign.eu.sender.example", (2020, 2040)),
    );
    server.has(
        "/old.pem",
        by(&stranger, "sign.eu.sender.example", (2010, 2020)),
    );
    server.has(
        "/other.pem",
        by(&server.authority, "www.eu.sender.example", (2020, 2040)),
    );
    server.has("/text.pem", answer("200 OK", "", "hello"));
    let (vouched, _) = remote(&server, true);
    assert_eq!(certificate_at(&vouched, "/good.pem").await, Ok(()));
    let reason = refused(certificate_at(&vouched, "/stranger.pem").await);
    assert!(
        reason.contains("nobody who is trusted vouches for it"),
        "{reason}"
    );
    let (plain, _) = remote(&server, false);
    assert_eq!(certificate_at(&plain, "/stranger.pem").await, Ok(()));
    let reason = refused(certificate_at(&plain, "/old.pem").await);
    assert_eq!(reason, "its certificate is not valid now");
    let reason = refused(certificate_at(&plain, "/other.pem").await);
    assert!(
        reason.starts_with("it is for www.eu.sender.example"),
        "{reason}"
    );
    let reason = refused(certificate_at(&plain, "/text.pem").await);
    assert_eq!(reason, "it is not a certificate as PEM");
}

#[tokio::test]
async fn a_refusal_is_remembered_and_a_failure_for_less_long() {
    let server = Server::start().await;
    server.has(
        "/moved",
        answer(
            "302 Found",
            "location: https://keys.provider.example/a\r\n",
            "",
        ),
    );
    server.has("/broken", answer("500 Internal Server Error", "", ""));
    server.has(
        "/large",
        answer("200 OK", "", &"x".repeat(MAX_DOCUMENT + 1)),
    );
    let (remote, clock) = remote(&server, false);
    let reason = refused(certificate_at(&remote, "/none").await);
    assert_eq!(reason, "its host answered 404 Not Found");
    let reason = refused(certificate_at(&remote, "/moved").await);
    assert_eq!(reason, "its host answered 302 Found");
    let reason = refused(certificate_at(&remote, "/large").await);
    assert_eq!(reason, "it is larger than 262144 bytes");
    let reason = unavailable(certificate_at(&remote, "/broken").await);
    assert_eq!(reason, "its host answered 500 Internal Server Error");
    assert_eq!(server.asked(), 4);
    clock.advance(KEEP_FAILED);
    refused(certificate_at(&remote, "/none").await);
    assert_eq!(server.asked(), 4, "the refusal was asked for again");
    let pem = certificate(&authority("any"), "sign.eu.sender.example", (2020, 2040));
    server.has("/broken", answer("200 OK", "", &pem));
    assert_eq!(certificate_at(&remote, "/broken").await, Ok(()));
    clock.advance(KEEP_REFUSED);
    server.has("/none", answer("200 OK", "", &pem));
    assert_eq!(certificate_at(&remote, "/none").await, Ok(()));
}

#[tokio::test]
async fn a_good_certificate_serves_on_while_its_host_is_away() {
    let server = Server::start().await;
    let pem = certificate(&authority("any"), "sign.eu.sender.example", (2020, 2040));
    server.has(
        "/a.pem",
        answer("200 OK", "cache-control: public, max-age=600\r\n", &pem),
    );
    let (remote, clock) = remote(&server, false);
    assert_eq!(certificate_at(&remote, "/a.pem").await, Ok(()));
    clock.advance(Duration::from_secs(599));
    assert_eq!(certificate_at(&remote, "/a.pem").await, Ok(()));
    assert_eq!(server.asked(), 1);
    server.has("/a.pem", answer("503 Service Unavailable", "", ""));
    clock.advance(Duration::from_secs(2));
    assert_eq!(certificate_at(&remote, "/a.pem").await, Ok(()));
    assert_eq!(server.asked(), 2);
    clock.advance(KEEP_STALE);
    unavailable(certificate_at(&remote, "/a.pem").await);
    // Gone is not away.
    server.has("/a.pem", answer_404());
    clock.advance(KEEP_FAILED);
    refused(certificate_at(&remote, "/a.pem").await);
}

/// Says no to everything but one URL.
struct Refusing(String);

impl Fetch for Refusing {
    fn get<'a>(&'a self, url: &'a str) -> Fetching<'a> {
        let refused = FetchError::Refused("its host answered 404 Not Found".into());
        let body = Bytes::from(self.0.clone());
        let max_age = None;
        let good = url.ends_with("/good.pem");
        Box::pin(async move { good.then_some(Fetched { body, max_age }).ok_or(refused) })
    }
}

#[tokio::test]
async fn a_flood_of_urls_that_are_none_drives_out_no_key_that_is_in_use() {
    let pem = certificate(&authority("any"), "sign.eu.sender.example", (2020, 2040));
    let clock = ManualClock::at(NOW);
    let telemetry = Arc::new(Telemetry::default());
    let fetch = Box::new(Refusing(pem));
    let keys = Keys::new(fetch, RootCertStore::empty(), clock.clone(), telemetry);
    let spec = CertificateSpec {
        names: vec!["sign.*.sender.example".into()],
        chain: false,
    };
    let approved = vec![HostPattern::new("*.provider.example").unwrap()];
    let remote = Remote::new(Arc::clone(&keys), approved, Some(spec));
    assert_eq!(certificate_at(&remote, "/good.pem").await, Ok(()));
    // Due to be fetched anew when the flood comes.
    clock.advance(KEEP);
    for n in 0..2 * MAX_KEPT {
        refused(certificate_at(&remote, &format!("/{n}.pem")).await);
        assert!(keys.slots.len() <= MAX_KEPT);
    }
    assert!(
        keys.slots
            .iter()
            .any(|slot| slot.key().url.ends_with("/good.pem"))
    );
    assert_eq!(certificate_at(&remote, "/good.pem").await, Ok(()));
}

#[tokio::test]
async fn a_key_that_a_set_does_not_have_is_looked_for_in_a_newer_one_but_not_at_once() {
    let server = Server::start().await;
    let set = |ids: &[&str]| {
        let key = |id: &&str| {
            format!(
                r#"{{"kty":"OKP","crv":"Ed25519","kid":"{id}","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}}"#
            )
        };
        let keys: Vec<_> = ids.iter().map(key).collect();
        let text = format!(
            r#"{{"keys":[{},{{"kty":"oct","kid":"s","k":"AAAA"}}]}}"#,
            keys.join(",")
        );
        answer("200 OK", "", &text)
    };
    server.has("/jwks", set(&["a", "b"]));
    let (remote, clock) = remote(&server, false);
    let at = url("/jwks");
    let Err(NoKey::Needed(wanted)) = remote.of_set(&at, "a") else {
        panic!("found before it was fetched");
    };
    remote.fetch(wanted.clone()).await;
    assert!(remote.of_set(&at, "a").is_ok());
    let find = |id: &str| remote.of_set(&at, id).map(|_| ());
    let unknown = Err(NoKey::Refused("the key set has no key of that id".into()));
    assert_eq!(find("c"), unknown);
    assert_eq!(find("s"), unknown, "a symmetric key was taken");
    assert_eq!(find(""), unknown, "one of several was taken without a name");
    server.has("/jwks", set(&["c"]));
    clock.advance(KEEP_SET);
    assert_eq!(find("c"), Err(NoKey::Needed(wanted.clone())));
    remote.fetch(wanted).await;
    assert_eq!(find("c"), Ok(()));
    assert_eq!(find(""), Ok(()), "the only key needs no name");
    assert_eq!(server.asked(), 2);
}

#[tokio::test]
async fn a_key_that_may_be_in_a_newer_set_is_nobodys_to_refuse_while_its_host_is_away() {
    let server = Server::start().await;
    let key = r#"{"kty":"OKP","crv":"Ed25519","kid":"a","x":"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}"#;
    let set = answer("200 OK", "", &format!(r#"{{"keys":[{key}]}}"#));
    server.has("/jwks", set);
    let (remote, clock) = remote(&server, false);
    let at = url("/jwks");
    let Err(NoKey::Needed(wanted)) = remote.of_set(&at, "a") else {
        panic!("found before it was fetched");
    };
    remote.fetch(wanted.clone()).await;
    server.has("/jwks", answer("503 Service Unavailable", "", ""));
    clock.advance(KEEP_SET);
    let find = |id: &str| remote.of_set(&at, id).map(|_| ());
    assert_eq!(find("b"), Err(NoKey::Needed(wanted.clone())));
    remote.fetch(wanted.clone()).await;
    assert_eq!(server.asked(), 2);
    // However many ask for it: its host is left alone for some seconds, and the known key goes on.
    assert!(matches!(find("b"), Err(NoKey::Unavailable(_))));
    assert_eq!(find("a"), Ok(()));
    clock.advance(KEEP_FAILED);
    assert_eq!(find("b"), Err(NoKey::Needed(wanted)));
}

#[tokio::test]
async fn hosts_that_nobody_approved_are_never_asked() {
    let server = Server::start().await;
    let (remote, _) = remote(&server, false);
    for url in [
        "https://evil.example/a.pem",
        "https://keys.provider.example.evil.example/",
        "https://keys.provider.example@evil.example/",
        "http://keys.provider.example/a.pem",
        "https://keys.provider.example:8443/a.pem",
        "https://127.0.0.1/a.pem",
        "https://[::1]/a.pem",
        "file:///etc/passwd",
    ] {
        assert!(!remote.is_approved(url), "{url}");
        assert!(
            matches!(remote.certificate(url, NOW), Err(NoKey::Refused(_))),
            "{url}"
        );
        assert!(
            matches!(remote.of_set(url, "a"), Err(NoKey::Refused(_))),
            "{url}"
        );
    }
    assert_eq!(server.asked(), 0);
}

#[tokio::test]
async fn a_server_that_cannot_prove_its_name_and_one_that_is_away_are_unavailable() {
    let server = Server::start().await;
    let (untrusting, _) = remote_with(authority("another").into_roots(), server.address, false);
    let reason = unavailable(certificate_at(&untrusting, "/a.pem").await);
    assert!(reason.contains("UnknownIssuer"), "{reason}");
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = closed.local_addr().unwrap();
    drop(closed);
    let (away, _) = remote_with(server.roots(), address, false);
    let reason = unavailable(certificate_at(&away, "/a.pem").await);
    assert!(reason.contains("Connection refused"), "{reason}");
    assert_eq!(server.asked(), 0);
}

#[tokio::test]
async fn a_name_that_dns_leads_inside_is_not_connected_to() {
    // The one name that needs no network to be found, at addresses of this machine.
    let https = Https::new(RootCertStore::empty(), HashMap::new());
    let error = https
        .get("https://localhost/")
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("it has no public address"), "{error}");
}

#[tokio::test]
async fn confirming_asks_once_and_tells_what_came_of_it() {
    let server = Server::start().await;
    server.has("/confirm?Token=1", answer("200 OK", "", "<xml/>"));
    let (remote, _) = remote(&server, false);
    assert_eq!(remote.confirm(&url("/confirm?Token=1")).await, Ok(()));
    assert_eq!(server.asked(), 1);
    let error = remote.confirm(&url("/confirm?Token=2")).await.unwrap_err();
    assert_eq!(error.to_string(), "its host answered 404 Not Found");
}

trait IntoRoots {
    fn into_roots(self) -> RootCertStore;
}

impl IntoRoots for Issuer {
    fn into_roots(self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(self.der().clone()).unwrap();
        roots
    }
}
