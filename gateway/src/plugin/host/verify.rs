//! Verification on the host's side: the plugin names keys and says what was signed; the host fills in, computes
//! and compares. Everything is charged before it is done.

use std::borrow::Cow;
use std::sync::Arc;

use wasmtime::component::Linker;

use super::{
    Asked, Call, Context, HostResult, ITEM, SET_UP, SIGNATURE, Said, charge, external_url, refused,
    wit,
};
use crate::crypto::jwt::{JwtAlgorithm, JwtKeys};
use crate::crypto::{self, Hash, Key, Mac, Piece, PublicKey, Scheme};
use crate::delivery::Delivery;
use crate::encoding::Encoding;
use crate::keys::{KeyRef, NoKey, Remote};
use crate::plugin::{Fault, Setup};

pub(super) fn add_to(linker: &mut Linker<Call>) -> wasmtime::Result<()> {
    type DigestRequest = (wit::DigestAlgorithm, Vec<wit::Segment>);
    type MacRequest = (wit::MacAlgorithm, String, Vec<wit::Segment>, wit::Signature);
    type TokenRequest = (String, Vec<u8>);
    type SignatureRequest = (
        wit::SignatureScheme,
        wit::Key,
        Vec<wit::Segment>,
        wit::Signature,
    );
    type JwtRequest = (Vec<wit::JwtAlgorithm>, wit::Key, Vec<u8>);
    let mut to = linker.instance("hookgate:provider/verification@1.0.0")?;
    to.func_wrap(
        "digest",
        |mut cx: Context<'_>, (hash, message): DigestRequest| -> HostResult<_> {
            Ok((digest(&mut cx, hash.into(), &message)?,))
        },
    )?;
    to.func_wrap(
        "verify-mac",
        |mut cx: Context<'_>, request: MacRequest| -> HostResult<_> {
            let (algorithm, secret, message, signature) = request;
            Ok((verify_mac(
                &mut cx,
                algorithm.into(),
                secret,
                &message,
                &signature,
            )?,))
        },
    )?;
    to.func_wrap(
        "verify-token",
        |mut cx: Context<'_>, request: TokenRequest| -> HostResult<_> {
            let (secret, value) = request;
            let setup = Arc::clone(&cx.data().setup);
            let keys = keys(&setup, &secret)?;
            charge(&mut cx, secret.len() + keys.len() * (value.len() + SET_UP))?;
            cx.data_mut().note(|| Asked::Token {
                secret: secret.clone(),
                fitting: keys.first().map(crypto::show_token),
            });
            let place = crypto::verify_token(keys, &value);
            Ok((remember(&mut cx, secret, place),))
        },
    )?;
    to.func_wrap(
        "verify-signature",
        |mut cx: Context<'_>, request: SignatureRequest| -> HostResult<_> {
            let (scheme, key, message, signature) = request;
            Ok((verify_signature(
                &mut cx,
                scheme.into(),
                key,
                &message,
                &signature,
            )?,))
        },
    )?;
    to.func_wrap(
        "verify-jwt",
        |mut cx: Context<'_>, request: JwtRequest| -> HostResult<_> {
            let (algorithms, key, token) = request;
            Ok((verify_jwt(&mut cx, &algorithms, key, &token)?,))
        },
    )?;
    to.func_wrap(
        "crc32",
        |mut cx: Context<'_>, (message,): (Vec<wit::Segment>,)| -> HostResult<_> {
            let mut hasher = crc32fast::Hasher::new();
            public_pieces(&mut cx, &message, |piece| hasher.update(piece))?;
            Ok((hasher.finalize(),))
        },
    )
}

pub(super) fn keys<'a>(setup: &'a Setup, secret: &str) -> Result<&'a [Key], Fault> {
    let unknown = || {
        refused(format!(
            "it names the secret {secret:?}, which the source does not have"
        ))
    };
    setup.keys.get(secret).ok_or_else(unknown)
}

fn remember(context: &mut Context<'_>, secret: String, place: Option<usize>) -> bool {
    if let Some(place) = place {
        let call = context.data_mut();
        call.matched = Some((secret, place));
        call.verified = true;
    }
    place.is_some()
}

fn verify_mac(
    context: &mut Context<'_>,
    mac: Mac,
    secret: String,
    message: &[wit::Segment],
    signature: &wit::Signature,
) -> wasmtime::Result<bool> {
    let names_secret = message.iter().any(|s| matches!(s, wit::Segment::Secret(_)));
    if names_secret != matches!(mac, Mac::Plain(_)) {
        let what = "plain digests hash a secret, and only they do";
        return Err(refused(what.to_owned()).into());
    }
    let call = Shared::of(context, message);
    let keys = keys(&call.setup, &secret)?;
    let parts = call.parts(context, message, Some(&secret))?;
    let length: usize = parts.iter().map(Part::length).sum();
    let arguments = secret.len() + signature.text.len();
    charge(context, keys.len() * (length + SET_UP) + arguments)?;
    let pieces: Vec<_> = parts.iter().map(Part::piece).collect();
    let encoding = Encoding::from(signature.encoding);
    context.data_mut().note(|| Asked::Mac {
        secret: secret.clone(),
        mac,
        message: said(message, &parts),
        text: signature.text.clone(),
        encoding,
        fitting: keys.first().map(|key| crypto::sign(mac, key, &pieces)),
    });
    let signature = encoding.decode(&signature.text);
    let place = signature.and_then(|signature| crypto::verify_mac(mac, keys, &pieces, &signature));
    Ok(remember(context, secret, place))
}

/// A message as it was said and filled in.
fn said(message: &[wit::Segment], parts: &[Part<'_>]) -> Vec<Said> {
    let pairs = message.iter().zip(parts);
    pairs
        .map(|(segment, part)| match (segment, part) {
            (wit::Segment::Body, _) => Said::Body,
            (_, Part::Bytes(bytes)) => Said::Bytes(bytes.to_vec()),
            (_, Part::ThisKey | Part::Key(_)) => Said::Secret,
        })
        .collect()
}

fn public_keys<'a>(setup: &'a Setup, name: &str) -> Result<&'a [PublicKey], Fault> {
    let unknown = || {
        refused(format!(
            "it names the public key {name:?}, which the source does not have"
        ))
    };
    setup.keys.public(name).ok_or_else(unknown)
}

/// A public key, or several, as a plugin names them.
enum Public<'a> {
    Named(&'a [PublicKey], String),
    Remote(KeyRef),
}

impl<'a> Public<'a> {
    /// The keys that are meant; none where what claims to be signed with them cannot be authentic.
    fn find(
        setup: &'a Setup,
        key: wit::Key,
        token: &[u8],
        now: u64,
    ) -> Result<Option<Self>, Fault> {
        let remote = |look: &dyn Fn(&Remote) -> Result<KeyRef, NoKey>| {
            let none = NoKey::Refused("the source has no `key_hosts`".into());
            match setup.remote.as_ref().map_or(Err(none), look) {
                Ok(key) => Ok(Some(Self::Remote(key))),
                Err(NoKey::Needed(wanted)) => Err(Fault::KeyNeeded(wanted)),
                Err(NoKey::Unavailable(reason)) => Err(Fault::KeyUnavailable { reason }),
                Err(NoKey::Refused(reason)) => {
                    tracing::info!(source = setup.label, reason, "key by URL refused");
                    Ok(None)
                }
            }
        };
        match key {
            wit::Key::Named(name) => {
                let keys = public_keys(setup, &name)?;
                Ok(Some(Self::Named(keys, name)))
            }
            wit::Key::CertificateUrl(url) => remote(&|remote| remote.certificate(&url, now)),
            wit::Key::Jwks(set) => {
                let own = || crypto::jwt::key_id(token).unwrap_or_default();
                let id = if set.id.is_empty() { own() } else { set.id };
                remote(&|remote| remote.of_set(&set.url, &id))
            }
        }
    }

    fn keys(&self) -> &[PublicKey] {
        match self {
            Self::Named(keys, _) => keys,
            Self::Remote(key) => key.key().map_or(&[], std::slice::from_ref),
        }
    }

    /// What verified keys are known by in metrics.
    fn name(self) -> String {
        match self {
            Self::Named(_, name) => name,
            Self::Remote(_) => "remote".into(),
        }
    }
}

fn verify_signature(
    context: &mut Context<'_>,
    scheme: Scheme,
    key: wit::Key,
    message: &[wit::Segment],
    signature: &wit::Signature,
) -> wasmtime::Result<bool> {
    if message.iter().any(|s| matches!(s, wit::Segment::Secret(_))) {
        return Err(refused("what a public key signs holds no secret".into()).into());
    }
    let call = Shared::of(context, message);
    charge(context, key_length(&key))?;
    let Some(public) = Public::find(&call.setup, key, &[], call.delivery.received_at)? else {
        return Ok(false);
    };
    let keys = public.keys();
    let parts = call.parts(context, message, None)?;
    let length: usize = parts.iter().map(Part::length).sum();
    // Once to put the pieces together, and once for every key.
    let each = length + SIGNATURE;
    charge(context, length + keys.len() * each + signature.text.len())?;
    if let Public::Named(_, name) = &public {
        context.data_mut().note(|| Asked::PublicKey(name.clone()));
    }
    let message = whole(&parts);
    let signature = Encoding::from(signature.encoding).decode(&signature.text);
    let place = signature
        .and_then(|signature| crypto::verify_signature(scheme, keys, &message, &signature));
    Ok(remember(context, public.name(), place))
}

fn key_length(key: &wit::Key) -> usize {
    match key {
        wit::Key::Named(name) => name.len(),
        wit::Key::CertificateUrl(url) => url.len(),
        wit::Key::Jwks(set) => set.url.len() + set.id.len(),
    }
}

fn verify_jwt(
    context: &mut Context<'_>,
    algorithms: &[wit::JwtAlgorithm],
    key: wit::Key,
    token: &[u8],
) -> wasmtime::Result<Option<String>> {
    let algorithms: Vec<_> = algorithms
        .iter()
        .map(|alg| JwtAlgorithm::from(*alg))
        .collect();
    let symmetric = algorithms.iter().filter(|alg| alg.is_symmetric()).count();
    let setup = Arc::clone(&context.data().setup);
    let now = context.data().delivery.received_at;
    charge(context, key_length(&key) + 2 * token.len() + SIGNATURE)?;
    let (name, fitting) = match key {
        _ if symmetric > 0 && symmetric < algorithms.len() => {
            let what = "it takes a token under a secret or a public key, whichever fits";
            return Err(refused(what.into()).into());
        }
        wit::Key::Named(name) if symmetric > 0 => {
            let keys = keys(&setup, &name)?;
            context.data_mut().note(|| Asked::Jwt(name.clone()));
            let keys = JwtKeys::Secret(keys);
            (name, crypto::jwt::verify_jwt(&algorithms, keys, token, now))
        }
        key => {
            let Some(public) = Public::find(&setup, key, token, now)? else {
                return Ok(None);
            };
            if let Public::Named(_, name) = &public {
                context.data_mut().note(|| Asked::PublicKey(name.clone()));
            }
            let keys = JwtKeys::Public(public.keys());
            let fitting = crypto::jwt::verify_jwt(&algorithms, keys, token, now);
            (public.name(), fitting)
        }
    };
    let (place, claims) = fitting.unzip();
    remember(context, name, place);
    Ok(claims)
}

fn whole<'a>(parts: &'a [Part<'_>]) -> Cow<'a, [u8]> {
    let bytes = |part: &'a Part<'_>| match part {
        Part::Bytes(bytes) => &**bytes,
        Part::ThisKey | Part::Key(_) => &[],
    };
    match parts {
        [one] => bytes(one).into(),
        many => many.iter().map(bytes).collect::<Vec<_>>().concat().into(),
    }
}

fn digest(
    context: &mut Context<'_>,
    hash: Hash,
    message: &[wit::Segment],
) -> wasmtime::Result<Vec<u8>> {
    let mut digest = hash.begin();
    public_pieces(context, message, |piece| digest.update(piece))?;
    Ok(digest.finish())
}

/// Takes a message without secrets, piece by piece.
fn public_pieces(
    context: &mut Context<'_>,
    message: &[wit::Segment],
    mut take: impl FnMut(&[u8]),
) -> wasmtime::Result<()> {
    if message.iter().any(|s| matches!(s, wit::Segment::Secret(_))) {
        return Err(refused("a public digest holds no secret".into()).into());
    }
    let call = Shared::of(context, message);
    let parts = call.parts(context, message, None)?;
    charge(context, parts.iter().map(Part::length).sum())?;
    for part in &parts {
        if let Part::Bytes(bytes) = part {
            take(bytes);
        }
    }
    Ok(())
}

/// What segments are filled in from, shared with the store that is charged meanwhile.
struct Shared {
    delivery: Arc<Delivery>,
    setup: Arc<Setup>,
    url: Option<String>,
}

impl Shared {
    /// The URL is put together only for a message that holds it.
    fn of(context: &Context<'_>, message: &[wit::Segment]) -> Self {
        let call = context.data();
        let is_url = |segment: &wit::Segment| matches!(segment, wit::Segment::ExternalUrl);
        let url = message.iter().any(is_url).then(|| external_url(call));
        Self {
            delivery: Arc::clone(&call.delivery),
            setup: Arc::clone(&call.setup),
            url: url.flatten(),
        }
    }

    /// The message's parts; they, and digests of the body, are charged before they are made.
    fn parts<'a>(
        &'a self,
        context: &mut Context<'_>,
        message: &'a [wit::Segment],
        secret: Option<&str>,
    ) -> wasmtime::Result<Vec<Part<'a>>> {
        let digested = message
            .iter()
            .filter(|s| matches!(s, wit::Segment::BodyDigest(_)))
            .count();
        let bytes = digested.saturating_mul(self.delivery.body.len());
        charge(context, bytes.saturating_add(message.len() * ITEM))?;
        let parts = message.iter().map(|segment| self.part(segment, secret));
        Ok(parts.collect::<Result<_, Fault>>()?)
    }

    fn part<'a>(
        &'a self,
        segment: &'a wit::Segment,
        secret: Option<&str>,
    ) -> Result<Part<'a>, Fault> {
        let bytes = |bytes: &'a [u8]| Ok(Part::Bytes(bytes.into()));
        match segment {
            wit::Segment::Literal(literal) => bytes(literal),
            wit::Segment::Body => bytes(&self.delivery.body),
            wit::Segment::BodyDigest(digest) => {
                let encoding = Encoding::from(digest.encoding);
                let digest = Hash::from(digest.algorithm).of_pieces([&*self.delivery.body]);
                Ok(Part::Bytes(encoding.encode(&digest).into()))
            }
            wit::Segment::Method => bytes(self.delivery.method.as_str().as_bytes()),
            wit::Segment::Target => bytes(self.delivery.target.as_bytes()),
            wit::Segment::ExternalUrl => {
                let none = "it verifies the external URL, but the source has no `public_url`";
                bytes(
                    self.url
                        .as_deref()
                        .ok_or_else(|| refused(none.into()))?
                        .as_bytes(),
                )
            }
            wit::Segment::Secret(name) if Some(name.as_str()) == secret => Ok(Part::ThisKey),
            wit::Segment::Secret(name) => keys(&self.setup, name)?
                .first()
                .map(Part::Key)
                .ok_or_else(|| refused(format!("the secret {name:?} has no value"))),
        }
    }
}

/// A segment, filled in.
enum Part<'a> {
    Bytes(Cow<'a, [u8]>),
    ThisKey,
    Key(&'a Key),
}

impl Part<'_> {
    fn length(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::ThisKey | Self::Key(_) => 0,
        }
    }

    fn piece(&self) -> Piece<'_> {
        match self {
            Self::Bytes(bytes) => Piece::Bytes(bytes),
            Self::ThisKey => Piece::ThisKey,
            Self::Key(key) => Piece::Key(key),
        }
    }
}
