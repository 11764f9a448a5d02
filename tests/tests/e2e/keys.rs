//! Keys by URL through the real binary: SNS, whose certificates and confirmations are at a server of this test.
//!
//! The gateway finds SNS's host through `[fetch] addresses` and trusts the test's authority alone; all else is as
//! in production: TLS, the allow list, the cache, and a plugin that runs anew once its key is there.

#![allow(
    clippy::unwrap_used,
    reason = "what helps a test fails as loudly as the test"
)]

use std::collections::HashMap;
use std::fs;
use std::sync::{Arc, Mutex};

use data_encoding::BASE64;
use hookgate_tests::gateway::Gateway;
use hookgate_tests::provider::{Answer, Connection, Signed};
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use ring::rand::SystemRandom;
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

use crate::world;

const HOST: &str = "sns.eu-west-1.amazonaws.com";
const TOPIC: &str = "arn:aws:sns:eu-west-1:123456789012:orders";
/// What signs as SNS would, and its certificate: of these tests alone.
const KEY: &[u8] = include_bytes!("../../fixtures/sns.pk8");
const CERTIFICATE: &str = include_str!("../../fixtures/sns.pem");

/// What is at each path of SNS's host, and the paths that were asked for.
#[derive(Default)]
struct Sns {
    documents: Mutex<HashMap<String, (u16, String)>>,
    asked: Mutex<Vec<String>>,
}

impl Sns {
    fn has(&self, path: &str, status: u16, document: &str) {
        self.documents
            .lock()
            .unwrap()
            .insert(path.into(), (status, document.into()));
    }

    fn asked(&self, path: &str) -> usize {
        self.asked
            .lock()
            .unwrap()
            .iter()
            .filter(|asked| *asked == path)
            .count()
    }

    fn answer(&self, head: &str) -> String {
        let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
        let found = self.documents.lock().unwrap().get(&path).cloned();
        let (status, document) = found.unwrap_or((404, String::new()));
        self.asked.lock().unwrap().push(path);
        format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{document}",
            document.len()
        )
    }
}

/// Serves SNS's host; where it listens, and the authority that vouches for it, as PEM.
async fn serve(sns: Arc<Sns>) -> (std::net::SocketAddr, String) {
    let mut params = CertificateParams::new(Vec::new()).unwrap();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(vec![HOST.to_owned()])
        .unwrap()
        .signed_by(&key, &authority)
        .unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![own.der().clone()],
            PrivateKeyDer::try_from(key.serialize_der()).unwrap(),
        )
        .unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(tls));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, sns) = (acceptor.clone(), Arc::clone(&sns));
            tokio::spawn(async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut head = vec![0; 4096];
                let length = stream.read(&mut head).await.unwrap_or(0);
                let answer = sns.answer(&String::from_utf8_lossy(&head[..length]));
                let _ = stream.write_all(answer.as_bytes()).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    (address, authority.pem())
}

/// A message of SNS's, signed.
fn message(fields: &[(&str, &str)], certificate: &str) -> Signed {
    let signed: String = fields
        .iter()
        .map(|(name, value)| format!("{name}\n{value}\n"))
        .collect();
    let pair = RsaKeyPair::from_pkcs8(KEY).unwrap();
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(
        &RSA_PKCS1_SHA256,
        &SystemRandom::new(),
        signed.as_bytes(),
        &mut signature,
    )
    .unwrap();
    let mut body: serde_json::Map<_, _> = fields
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).into()))
        .collect();
    body.insert("SignatureVersion".into(), "2".into());
    body.insert("Signature".into(), BASE64.encode(&signature).into());
    body.insert("SigningCertURL".into(), certificate.into());
    let body = serde_json::Value::Object(body).to_string();
    Signed::post(
        "acme/sns",
        &[("content-type", "text/plain; charset=UTF-8")],
        body,
    )
}

fn notification(id: &str, certificate: &str) -> Signed {
    let fields = [
        ("Message", "an order was paid"),
        ("MessageId", id),
        ("Timestamp", "2026-01-01T00:00:00.000Z"),
        ("TopicArn", TOPIC),
        ("Type", "Notification"),
    ];
    message(&fields, certificate)
}

fn subscription(url: &str) -> Signed {
    let fields = [
        ("Message", "You have chosen to subscribe"),
        ("MessageId", "s-1"),
        ("SubscribeURL", url),
        ("Timestamp", "2026-01-01T00:00:00.000Z"),
        ("Token", "2336412f37"),
        ("TopicArn", TOPIC),
        ("Type", "SubscriptionConfirmation"),
    ];
    message(&fields, &at("/good.pem"))
}

fn at(path: &str) -> String {
    format!("https://{HOST}{path}")
}

/// A gateway whose source is SNS's, which is at a server of this test.
async fn gateway(sns: &Arc<Sns>) -> (Gateway, tempfile::TempDir) {
    let (address, authority) = serve(Arc::clone(sns)).await;
    let directory = world::directory();
    let config = format!(
        "{}\n[fetch]\ncertificate_authorities = \"authority.pem\"\naddresses.\"{HOST}\" = \"{address}\"\n\n\
         [tenants.acme.sources.sns]\nplugin = \"aws-sns\"\nkey_hosts = [\"{HOST}\"]\noptions.topics = \"{TOPIC}\"\n\
         max_age = \"23days\"\n",
        world::head()
    );
    world::configure(directory.path(), &config).unwrap();
    fs::write(directory.path().join("authority.pem"), authority).unwrap();
    let link = directory.path().join("plugins/aws-sns.wasm");
    std::os::unix::fs::symlink(world::plugin("aws-sns"), link).unwrap();
    (
        Gateway::start(directory.path(), &[]).await.unwrap(),
        directory,
    )
}

#[tokio::test]
async fn sns_is_verified_by_certificates_that_are_fetched_and_its_subscription_is_confirmed() {
    let sns = Arc::new(Sns::default());
    let (gateway, _directory) = gateway(&sns).await;
    let mut to = Connection::to(gateway.ingress);
    let mut send = async |signed: &Signed| -> Answer { to.deliver(signed).await.unwrap() };

    // Its host is asked, answers badly, and the sender is told to come again.
    sns.has("/good.pem", 503, "");
    assert_eq!(
        send(&notification("n-0", &at("/good.pem"))).await.status,
        503
    );
    sns.has("/other.pem", 200, CERTIFICATE);
    assert_eq!(
        send(&notification("n-1", &at("/other.pem"))).await.status,
        202
    );
    let again = send(&notification("n-1", &at("/other.pem"))).await;
    assert_eq!((again.status, again.duplicate), (200, true));
    assert_eq!(sns.asked("/other.pem"), 1, "fetched once");

    // Not of SNS, not approved, not there, not a certificate.
    for certificate in [
        "https://evil.example/a.pem".to_owned(),
        "https://sns.eu-west-2.amazonaws.com/a.pem".to_owned(),
        at("/none.pem"),
        at("/text.pem"),
    ] {
        sns.has("/text.pem", 200, "hello");
        let answer = send(&notification("n-2", &certificate)).await;
        assert_eq!(answer.status, 401, "{certificate}");
    }
    let mut tampered = notification("n-3", &at("/other.pem"));
    tampered.body = String::from_utf8_lossy(&tampered.body)
        .replace("was paid", "is free")
        .into();
    assert_eq!(send(&tampered).await.status, 401);

    // The subscription: confirmed before it is answered, and not by what somebody else's host says.
    sns.has("/good.pem", 200, CERTIFICATE);
    let confirm = "/?Action=ConfirmSubscription&Token=2336412f37";
    world::until("the failure is no longer remembered", || {
        let signed = notification("n-4", &at("/good.pem"));
        async move {
            Connection::to(gateway.ingress)
                .deliver(&signed)
                .await
                .unwrap()
                .is_promise()
        }
    })
    .await;
    assert_eq!(
        send(&subscription(
            "https://evil.example/?Action=ConfirmSubscription"
        ))
        .await
        .status,
        400
    );
    sns.has(confirm, 500, "");
    assert_eq!(
        send(&subscription(&at(confirm))).await.status,
        503,
        "not confirmed, so not answered"
    );
    sns.has(confirm, 200, "<ConfirmSubscriptionResponse/>");
    assert_eq!(send(&subscription(&at(confirm))).await.status, 200);
    assert_eq!(sns.asked(confirm), 2);
    assert_eq!(
        gateway.events().await.unwrap().len(),
        2,
        "handshakes are no events"
    );
    let fetched = gateway
        .metric("hookgate_key_fetches_total{result=\"ok\"}")
        .await
        .unwrap();
    assert_eq!(fetched, 2);
}
