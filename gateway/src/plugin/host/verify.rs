//! Verification on the host's side: the plugin names keys and says what was signed; the host fills in, computes
//! and compares. Everything is charged before it is done.

use std::borrow::Cow;
use std::sync::Arc;

use wasmtime::component::Linker;

use super::{
    Asked, Call, Context, HostResult, ITEM, MAC, SIGNATURE, charge, external_url, not_supported,
    refused, wit,
};
use crate::crypto::{self, Hash, Key, Mac, Piece, PublicKey, Scheme};
use crate::delivery::Delivery;
use crate::encoding::Encoding;
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
            charge(&mut cx, secret.len() + keys.len() * (value.len() + MAC))?;
            cx.data_mut().note(|| Asked::Token(secret.clone()));
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
        |_: Context<'_>, _: JwtRequest| -> HostResult<Option<String>> {
            Err(not_supported("verify-jwt".into()))
        },
    )
}

fn keys<'a>(setup: &'a Setup, secret: &str) -> Result<&'a [Key], Fault> {
    let unknown = || {
        refused(format!(
            "it names the secret {secret:?}, which the source does not have"
        ))
    };
    setup.keys.get(secret).ok_or_else(unknown)
}

fn remember(context: &mut Context<'_>, secret: String, place: Option<usize>) -> bool {
    if let Some(place) = place {
        context.data_mut().matched = Some((secret, place));
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
    charge(context, keys.len() * (length + MAC) + arguments)?;
    let pieces: Vec<_> = parts.iter().map(Part::piece).collect();
    let encoding = Encoding::from(signature.encoding);
    context.data_mut().note(|| Asked::Mac {
        secret: secret.clone(),
        encoding,
        fitting: keys.first().map(|key| crypto::sign(mac, key, &pieces)),
    });
    let signature = encoding.decode(&signature.text);
    let place = signature.and_then(|signature| crypto::verify_mac(mac, keys, &pieces, &signature));
    Ok(remember(context, secret, place))
}

fn public_keys<'a>(setup: &'a Setup, name: &str) -> Result<&'a [PublicKey], Fault> {
    let unknown = || {
        refused(format!(
            "it names the public key {name:?}, which the source does not have"
        ))
    };
    setup.keys.public(name).ok_or_else(unknown)
}

fn verify_signature(
    context: &mut Context<'_>,
    scheme: Scheme,
    key: wit::Key,
    message: &[wit::Segment],
    signature: &wit::Signature,
) -> wasmtime::Result<bool> {
    let wit::Key::Named(name) = key else {
        return Err(not_supported("verify-signature with a key by URL".into()));
    };
    if message.iter().any(|s| matches!(s, wit::Segment::Secret(_))) {
        return Err(refused("what a public key signs holds no secret".into()).into());
    }
    let call = Shared::of(context, message);
    let keys = public_keys(&call.setup, &name)?;
    let parts = call.parts(context, message, None)?;
    let length: usize = parts.iter().map(Part::length).sum();
    let arguments = name.len() + signature.text.len();
    // Once to put the pieces together, and once for every key.
    charge(
        context,
        length + keys.len() * (length + SIGNATURE) + arguments,
    )?;
    context.data_mut().note(|| Asked::PublicKey(name.clone()));
    let message = whole(&parts);
    let signature = Encoding::from(signature.encoding).decode(&signature.text);
    let place = signature
        .and_then(|signature| crypto::verify_signature(scheme, keys, &message, &signature));
    Ok(remember(context, name, place))
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
    if message.iter().any(|s| matches!(s, wit::Segment::Secret(_))) {
        return Err(refused("a public digest holds no secret".into()).into());
    }
    let call = Shared::of(context, message);
    let parts = call.parts(context, message, None)?;
    charge(context, parts.iter().map(Part::length).sum())?;
    let pieces = parts.iter().filter_map(|part| match part {
        Part::Bytes(bytes) => Some(&**bytes),
        Part::ThisKey | Part::Key(_) => None,
    });
    Ok(hash.of_pieces(pieces))
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
