//! A plugin's sample as a request that its source accepts, without a signer for any scheme.
//!
//! The plugin runs on the sample with a dummy in the signature's place; the host notes what it was asked to
//! verify and what would have fitted, which goes into the place, and the plugin must accept the outcome. Knows
//! no scheme and no HTTP. Secrets stay in the keyring: only what any request of the provider shows comes out, a
//! signature, or the token itself where that is the scheme.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method};

use super::manifest::Sample;
use super::{Asked, Fault, Manifest, Plugin, Setup, WasmPlugin};
use crate::delivery::{Delivery, Verdict};
use crate::encoding::Encoding;

/// What is put into a sample, and where it goes.
#[derive(Debug, Clone)]
pub struct Draft {
    /// The path of the source, such as `/in/acme/github`.
    pub path: String,
    /// What `{id}` stands for.
    pub id: String,
    /// What `{timestamp}` stands for, in ms since 1970; written in seconds.
    pub now_ms: u64,
    /// Headers in the place of the sample's of the same name, or beside them. May hold placeholders.
    pub headers: Vec<(String, String)>,
    /// A body in the place of the sample's, sent as it is.
    pub body: Option<Bytes>,
}

/// A request, ready to be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The method.
    pub method: Method,
    /// Path and query.
    pub target: String,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// Why there is no request that the source accepts.
#[derive(Debug, thiserror::Error)]
pub enum SampleError {
    /// The manifest has none.
    #[error("the plugin `{0}` has no sample in its manifest")]
    None(String),
    /// It cannot be sent over HTTP once it is filled in.
    #[error("the sample's {what} cannot be sent: {value:?}")]
    NotHttp {
        /// The method or a header.
        what: &'static str,
        /// Its value.
        value: String,
    },
    /// Only the provider can sign it.
    #[error(
        "the plugin verifies with the public key `{0}`: only the provider has the private key that signs"
    )]
    PublicKey(String),
    /// It is not a signature that is asked for.
    #[error(
        "the plugin verifies a JSON Web Token under `{0}`, whose claims only the provider knows"
    )]
    Token(String),
    /// There is nothing to sign it with.
    #[error(
        "the source has no value of the secret `{0}`, which the sample is signed with; what a public key \
         verifies only the provider can sign"
    )]
    NoSecret(String),
    /// It is refused, signed or before it could be.
    #[error(
        "the plugin refuses {what}: {reason}\nhint: `--header NAME:VALUE` and `--body FILE` change it"
    )]
    Refused {
        /// The sample, with a signature or without.
        what: &'static str,
        /// The plugin's reason.
        reason: String,
    },
    /// The plugin failed.
    #[error(transparent)]
    Fault(#[from] Fault),
}

/// Fills in and signs the plugin's sample, so that the source that is set up like this accepts it.
pub fn sign(
    plugin: &WasmPlugin,
    setup: &Arc<Setup>,
    draft: &Draft,
) -> Result<Request, SampleError> {
    let manifest = plugin.manifest();
    let none = || SampleError::None(manifest.name.clone());
    let filling = Filling {
        sample: manifest.sample.as_ref().ok_or_else(none)?,
        options: options(manifest, setup),
        draft,
    };
    let unsigned = filling.request(&Dummy)?;
    let (handled, asked) = plugin.rehearse(&unsigned.delivery(draft), setup)?;
    let Some(signature) = signature(asked)? else {
        return accepted(unsigned, &handled.verdict, "its own sample");
    };
    let signed = filling.request(&signature)?;
    let handled = plugin.handle(&signed.delivery(draft), setup)?;
    accepted(signed, &handled.verdict, "its own sample, signed")
}

fn accepted(
    request: Request,
    verdict: &Verdict,
    what: &'static str,
) -> Result<Request, SampleError> {
    match verdict {
        Verdict::Accept(_) | Verdict::Respond(_) => Ok(request),
        Verdict::Reject(rejection) => Err(SampleError::Refused {
            what,
            reason: rejection.reason.clone(),
        }),
    }
}

/// The first signature that can be made of what the plugin asked for; none where it asked for nothing.
fn signature(asked: Vec<Asked>) -> Result<Option<Fitting>, SampleError> {
    let mut obstacle = None;
    for asked in asked {
        let met = match asked {
            Asked::Mac {
                encoding,
                fitting: Some(bytes),
                ..
            } => return Ok(Some(Fitting { bytes, encoding })),
            Asked::Token {
                fitting: Some(bytes),
                ..
            } => {
                let encoding = Encoding::Bytes;
                return Ok(Some(Fitting { bytes, encoding }));
            }
            Asked::Mac { secret, .. } | Asked::Token { secret, .. } => {
                SampleError::NoSecret(secret)
            }
            Asked::PublicKey(name) => SampleError::PublicKey(name),
            Asked::Jwt(name) => SampleError::Token(name),
        };
        obstacle = obstacle.or(Some(met));
    }
    obstacle.map_or(Ok(None), Err)
}

/// The options as the plugin finds them: the source's, else the manifest's defaults, else empty.
fn options(manifest: &Manifest, setup: &Setup) -> BTreeMap<String, String> {
    let default = |name: &str, default: &Option<String>| {
        let given = setup.options.get(name).or(default.as_ref());
        (
            format!("{{option:{name}}}"),
            given.cloned().unwrap_or_default(),
        )
    };
    let all = manifest.options.iter();
    all.map(|option| default(&option.name, &option.default))
        .collect()
}

/// What stands in the signature's place.
trait Signature {
    fn text(&self, encoding: Option<Encoding>) -> String;
}

/// Text of the right form that is no signature.
struct Dummy;

impl Signature for Dummy {
    fn text(&self, encoding: Option<Encoding>) -> String {
        text(encoding.unwrap_or(Encoding::Hex), &[0; 32])
    }
}

/// The signature that fits.
struct Fitting {
    bytes: Vec<u8>,
    encoding: Encoding,
}

impl Signature for Fitting {
    fn text(&self, encoding: Option<Encoding>) -> String {
        text(encoding.unwrap_or(self.encoding), &self.bytes)
    }
}

fn rfc3339(ms: u64) -> String {
    let time = std::time::UNIX_EPOCH + std::time::Duration::from_millis(ms);
    humantime::format_rfc3339_seconds(time).to_string()
}

fn text(encoding: Encoding, bytes: &[u8]) -> String {
    String::from_utf8_lossy(&encoding.encode(bytes)).into_owned()
}

/// A sample being filled in.
struct Filling<'a> {
    sample: &'a Sample,
    /// By placeholder.
    options: BTreeMap<String, String>,
    draft: &'a Draft,
}

impl Filling<'_> {
    fn request(&self, signature: &impl Signature) -> Result<Request, SampleError> {
        let fill = |text: &str| self.fill(text, signature);
        let body = self.draft.body.clone();
        Ok(Request {
            method: not_http("method", &self.sample.method, Method::try_from)?,
            target: format!("{}{}", self.draft.path, fill(&self.sample.target)),
            headers: self.headers(fill)?,
            body: body.unwrap_or_else(|| fill(&self.sample.body).into()),
        })
    }

    fn fill(&self, text: &str, signature: &impl Signature) -> String {
        let seconds = (self.draft.now_ms / 1000).to_string();
        let mut text = text
            .replace("{id}", &self.draft.id)
            .replace("{timestamp}", &seconds)
            .replace("{timestamp:ms}", &self.draft.now_ms.to_string())
            .replace("{timestamp:rfc3339}", &rfc3339(self.draft.now_ms))
            .replace("{signature:hex}", &signature.text(Some(Encoding::Hex)))
            .replace(
                "{signature:base64}",
                &signature.text(Some(Encoding::Base64)),
            )
            .replace("{signature}", &signature.text(None));
        for (placeholder, value) in &self.options {
            text = text.replace(placeholder, value);
        }
        text
    }

    fn headers(&self, fill: impl Fn(&str) -> String) -> Result<HeaderMap, SampleError> {
        let filled = |(name, value): &(String, String)| (fill(name), fill(value));
        let own: Vec<_> = self.draft.headers.iter().map(filled).collect();
        let mut all: Vec<_> = self.sample.headers.iter().map(filled).collect();
        all.retain(|(name, _)| !own.iter().any(|(own, _)| own.eq_ignore_ascii_case(name)));
        let mut headers = HeaderMap::new();
        for (name, value) in all.iter().chain(&own) {
            let name = not_http("header", name, HeaderName::try_from)?;
            let value = not_http("header's value", value, HeaderValue::try_from)?;
            headers.append(name, value);
        }
        Ok(headers)
    }
}

fn not_http<'a, T, E>(
    what: &'static str,
    value: &'a str,
    read: impl Fn(&'a str) -> Result<T, E>,
) -> Result<T, SampleError> {
    read(value).map_err(|_| SampleError::NotHttp {
        what,
        value: value.to_owned(),
    })
}

impl Request {
    /// The delivery that the gateway will make of it.
    pub fn delivery(&self, draft: &Draft) -> Arc<Delivery> {
        let path = self.target.split('?').next().unwrap_or_default();
        let rest = path.strip_prefix(&draft.path).unwrap_or_default();
        Arc::new(Delivery {
            id: uuid::Uuid::nil(),
            received_at: draft.now_ms,
            method: self.method.clone(),
            target: self.target.clone(),
            rest: rest.to_owned(),
            headers: self.headers.clone(),
            body: self.body.clone(),
        })
    }
}
