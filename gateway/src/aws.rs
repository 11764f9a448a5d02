//! What the clients of AWS share: configuration, connections, and what an error says of the request.
//!
//! The SDK never retries by itself: the protocol's retries compare tokens and look at leases. A request whose
//! connection is closed must not arrive later than the timeout, so unacknowledged bytes are given up by then
//! (TCP_USER_TIMEOUT); the SDK's own connections offer no such bound, which is why there are others here.

use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aws_config::retry::RetryConfig;
use aws_config::stalled_stream_protection::StalledStreamProtectionConfig;
use aws_config::timeout::TimeoutConfig;
use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_smithy_runtime_api::client::http::{
    HttpClient, HttpConnector, HttpConnectorFuture, HttpConnectorSettings, SharedHttpClient,
    SharedHttpConnector,
};
use aws_smithy_runtime_api::client::orchestrator::{HttpRequest, HttpResponse};
use aws_smithy_runtime_api::client::result::ConnectorError;
use aws_smithy_runtime_api::client::runtime_components::RuntimeComponents;
use aws_smithy_types::body::SdkBody;
use aws_smithy_types::date_time::{DateTime, Format as DateFormat};
use hyper_rustls::{ConfigBuilderExt, HttpsConnector, HttpsConnectorBuilder};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector as TcpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
use rustls::ClientConfig;

use crate::backend::Finding;
use crate::clock::SharedClock;
use crate::clock::skew::Skew;

/// The resolution of HTTP's `Date`.
const DATE: Duration = Duration::from_secs(1);

/// Idle connections are closed before AWS does (some 20 s at the least), so that few requests meet one that
/// just ended.
const IDLE: Duration = Duration::from_secs(15);

/// How long any call waits for its answer. Claims, settlements and sends have tighter bounds of their own.
const SILENCE: Duration = Duration::from_secs(5);

/// Where AWS is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AwsSettings {
    /// The region; none takes the environment's.
    pub region: Option<String>,
    /// The endpoint of all services, for stand-ins; none takes AWS's own.
    pub endpoint: Option<String>,
}

/// What a failed call says of its request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// It was refused: nothing has changed, and the next one fares no better.
    Refused(String),
    /// It was refused for now: nothing has changed.
    Busy(String),
    /// Nobody knows what became of it.
    Ambiguous(String),
}

impl Failure {
    /// What an operator does about it.
    fn hint(&self) -> &'static str {
        let (Self::Refused(text) | Self::Busy(text) | Self::Ambiguous(text)) = self;
        let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
        if says(&["ExpiredToken"]) {
            "the credentials have expired: renew them where the gateway gets them from"
        } else if says(&[
            "InvalidSignature",
            "UnrecognizedClient",
            "InvalidClientTokenId",
        ]) {
            "AWS does not know these credentials: check them, and that this machine's clock is right"
        } else if says(&["AccessDenied", "NotAuthorized"]) {
            "allow it to the gateway's role"
        } else if says(&["redentials", "identity"]) {
            "give the gateway credentials: a role where it runs, or AWS_ACCESS_KEY_ID and \
             AWS_SECRET_ACCESS_KEY, or AWS_PROFILE"
        } else if says(&["region"]) {
            "set `aws.region`, or AWS_REGION for the gateway's process"
        } else if matches!(self, Self::Busy(_)) {
            "it is throttled: try again, or raise the quota"
        } else {
            "check the network, and `aws.region` and `aws.endpoint`"
        }
    }

    /// Whether it may pass by itself: it was no refusal by AWS.
    fn passes(&self) -> bool {
        match self {
            Self::Refused(text) => text.starts_with("dispatch failure"),
            Self::Busy(_) | Self::Ambiguous(_) => true,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (Self::Refused(text) | Self::Busy(text) | Self::Ambiguous(text)) = self;
        f.write_str(text)
    }
}

/// What could not be done, and what to do about it.
pub fn unusable(what: &str, failure: &Failure) -> Finding {
    let finding = Finding::error(format!("cannot {what}: {failure}")).hint(failure.hint());
    match failure.passes() {
        true => finding.passing(),
        false => finding,
    }
}

/// The configuration of the clients of AWS: credentials from the environment, a profile, the container or the
/// instance, in that order.
pub async fn configuration(settings: &AwsSettings, timeout: Duration) -> SdkConfig {
    // Claims and sends are given up sooner, by who makes them; nothing else may wait for ever.
    let timeouts = TimeoutConfig::builder()
        .connect_timeout(timeout)
        .operation_timeout(SILENCE.max(3 * timeout))
        .build();
    let mut loader = aws_config::defaults(BehaviorVersion::latest())
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        .stalled_stream_protection(StalledStreamProtectionConfig::disabled())
        .http_client(Connections::client(timeout, None));
    if let Some(region) = &settings.region {
        loader = loader.region(Region::new(region.clone()));
    }
    if let Some(endpoint) = &settings.endpoint {
        loader = loader.endpoint_url(endpoint);
    }
    loader.load().await
}

/// What the error of a call says of its request.
pub fn failure<E>(error: &SdkError<E, HttpResponse>) -> Failure
where
    E: ProvideErrorMetadata + Error + 'static,
{
    match error {
        SdkError::ServiceError(refusal) => {
            let meta = refusal.err().meta();
            let code = meta.code().unwrap_or("an unknown error");
            let text = format!("{code}: {}", meta.message().unwrap_or("no message"));
            let status = refusal.raw().status();
            if is_throttle(code) || status.as_u16() == 429 {
                Failure::Busy(text)
            } else if status.is_server_error() {
                Failure::Ambiguous(text)
            } else {
                Failure::Refused(text)
            }
        }
        SdkError::ConstructionFailure(_) => Failure::Refused(shown(error)),
        SdkError::DispatchFailure(failure) => {
            let source = failure.as_connector_error().and_then(Error::source);
            if source.is_some_and(<dyn Error>::is::<Lost>) {
                Failure::Ambiguous(shown(error))
            } else {
                Failure::Refused(shown(error))
            }
        }
        _ => Failure::Ambiguous(shown(error)),
    }
}

/// An error and its causes, each once.
fn shown(error: &(dyn Error + 'static)) -> String {
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(error) = cause {
        texts.push(error.to_string());
        cause = error.source();
    }
    texts.dedup();
    texts.join(": ")
}

/// Codes that say "later" and are answered before anything was done (DynamoDB and SQS API references, common
/// errors).
pub fn is_throttle(code: &str) -> bool {
    const CODES: [&str; 11] = [
        "OverLimit",
        "ProvisionedThroughputExceededException",
        "ReplicatedWriteConflictException",
        "RequestLimitExceeded",
        "RequestThrottled",
        "SlowDown",
        "Throttling",
        "ThrottlingException",
        "TooManyRequestsException",
        "TransactionConflictException",
        "KmsThrottled",
    ];
    let code = code.rsplit(['#', '.']).next().unwrap_or(code);
    CODES.contains(&code)
}

/// The request may have been sent.
#[derive(Debug)]
struct Lost(Box<dyn Error + Send + Sync>);

impl fmt::Display for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the connection ended before the answer")
    }
}

impl Error for Lost {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(self.0.as_ref())
    }
}

/// The answer did not come in time.
#[derive(Debug, thiserror::Error)]
#[error("no answer in time")]
struct Late;

type HyperClient = Client<HttpsConnector<TcpConnector>, SdkBody>;
type Timeouts = (Option<Duration>, Option<Duration>);

/// Whose time answers tell, and the clock it is compared with.
pub type Compared = (Arc<Skew>, SharedClock);

/// Connections to AWS, kept for later requests.
pub struct Connections {
    /// When unacknowledged bytes are given up.
    timeout: Duration,
    compared: Option<Compared>,
    tls: ClientConfig,
    /// The SDK asks for connections with one of very few pairs of timeouts.
    made: Mutex<HashMap<Timeouts, SharedHttpConnector>>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

impl Connections {
    /// Connections that give unacknowledged bytes up after `timeout`.
    pub fn client(timeout: Duration, compared: Option<Compared>) -> SharedHttpClient {
        let tls = match client_config().with_native_roots() {
            Ok(builder) => builder.with_no_client_auth(),
            // Every connection with TLS fails then, and says why.
            Err(error) => {
                tracing::warn!(%error, "no certificates of authorities were found: TLS to AWS will fail");
                client_config()
                    .with_root_certificates(rustls::RootCertStore::empty())
                    .with_no_client_auth()
            }
        };
        SharedHttpClient::new(Self {
            timeout,
            compared,
            tls,
            made: Mutex::default(),
        })
    }

    fn connector(&self, connect: Option<Duration>, read: Option<Duration>) -> Connector {
        let mut tcp = TcpConnector::new();
        tcp.enforce_http(false);
        tcp.set_nodelay(true);
        tcp.set_connect_timeout(connect);
        #[cfg(target_os = "linux")]
        tcp.set_tcp_user_timeout(Some(self.timeout));
        let https = HttpsConnectorBuilder::new()
            .with_tls_config(self.tls.clone())
            .https_or_http()
            .enable_http1()
            .wrap_connector(tcp);
        let mut builder = Client::builder(TokioExecutor::new());
        builder
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(IDLE);
        Connector {
            client: builder.build(https),
            read,
            compared: self.compared.clone(),
        }
    }
}

fn client_config() -> rustls::ConfigBuilder<ClientConfig, rustls::WantsVerifier> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("ring has the default protocol versions")
}

impl HttpClient for Connections {
    fn http_connector(
        &self,
        settings: &HttpConnectorSettings,
        _: &RuntimeComponents,
    ) -> SharedHttpConnector {
        let timeouts = (settings.connect_timeout(), settings.read_timeout());
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let connector = made
            .entry(timeouts)
            .or_insert_with(|| SharedHttpConnector::new(self.connector(timeouts.0, timeouts.1)));
        connector.clone()
    }
}

#[derive(Clone)]
struct Connector {
    client: HyperClient,
    read: Option<Duration>,
    compared: Option<Compared>,
}

impl fmt::Debug for Connector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connector").finish_non_exhaustive()
    }
}

impl HttpConnector for Connector {
    fn call(&self, request: HttpRequest) -> HttpConnectorFuture {
        let connector = self.clone();
        HttpConnectorFuture::new(async move { connector.send(request).await })
    }
}

impl Connector {
    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, ConnectorError> {
        let request = request
            .try_into_http1x()
            .map_err(|error| ConnectorError::user(error.into()))?;
        let asked = self.compared.as_ref().map(|(_, clock)| clock.wall_ms());
        let sent = self.client.request(request);
        let sent = match self.read {
            Some(read) => tokio::time::timeout(read, sent)
                .await
                .map_err(|_| ConnectorError::timeout(Lost(Late.into()).into()))?,
            None => sent.await,
        };
        let response = sent.map_err(|error| {
            if error.is_connect() {
                ConnectorError::io(error.into()).never_connected()
            } else {
                ConnectorError::io(Lost(error.into()).into())
            }
        })?;
        if let (Some((skew, clock)), Some(asked)) = (&self.compared, asked)
            && let Some(stamp) = date(response.headers())
        {
            skew.observe(asked, clock.wall_ms(), stamp, DATE);
        }
        HttpResponse::try_from(response.map(SdkBody::from_body_1_x))
            .map_err(|error| ConnectorError::other(Lost(error.into()).into(), None))
    }
}

/// The answer's `Date`, in ms since 1970.
fn date(headers: &http::HeaderMap) -> Option<u64> {
    let text = headers.get("date")?.to_str().ok()?;
    let date = DateTime::from_str(text, DateFormat::HttpDate).ok()?;
    u64::try_from(date.to_millis().ok()?).ok()
}
