//! Any provider that sends an HMAC in a header, described by the source's options alone.
//!
//! The options say which header holds the signature, how it is written, what is signed, and where id,
//! type, time and order are in a delivery. Knows no provider: what a program is needed for has a plugin
//! of its own.

mod locator;
mod options;
mod template;

use hookgate_sdk::{
    BodyDigest, DigestAlgorithm, Elements, Encoding, Event, Message, Provider, Rejection, Segment,
    Signature, Verdict, delivery, source,
};

use locator::Locator;
use options::{Options, wrong};
use template::Piece;

/// How providers that sign a digest of the body write it.
const BODY_SHA256: BodyDigest = BodyDigest {
    algorithm: DigestAlgorithm::Sha256,
    encoding: Encoding::Hex,
};

struct Hmac;

hookgate_sdk::provider!(Hmac);

impl Provider for Hmac {
    const MANIFEST: &'static str = include_str!("../manifest.json");

    fn handle() -> Result<Verdict, Rejection> {
        let options = Options::read()?;
        let header = delivery::signature_header(&options.header)?;
        let elements = match options.separator {
            Some(separator) => Elements::new(&header, separator),
            None => Elements::single(&header),
        };
        let given = Given {
            options: &options,
            elements,
        };
        given.verify()?;
        given.event()?.accept()
    }
}

/// The options, and the elements of this delivery's signature header.
struct Given<'a> {
    options: &'a Options,
    elements: Elements<'a>,
}

impl Given<'_> {
    fn verify(&self) -> Result<(), Rejection> {
        let segments = self.options.signed.iter().map(|piece| self.segment(piece));
        let message = segments.collect::<Result<Message, _>>()?;
        let signatures = self.elements.with_prefix(&self.options.prefix);
        let signatures = signatures.map(|text| Signature::encoded(self.options.encoding, text));
        message.verify_mac(self.options.algorithm, "secret", signatures)
    }

    fn segment(&self, piece: &Piece) -> Result<Segment, Rejection> {
        Ok(match piece {
            Piece::Literal(text) => literal(text.clone()),
            Piece::Body => Segment::Body,
            Piece::BodySha256 => Segment::BodyDigest(BODY_SHA256),
            Piece::Method => Segment::Method,
            Piece::Target => Segment::Target,
            Piece::Url => external_url()?,
            Piece::Timestamp => literal(self.require(self.options.timestamp.as_ref())?),
            Piece::Id => literal(self.require(self.options.id.as_ref())?),
            Piece::Located(locator) => literal(locator.require(self.elements)?),
        })
    }

    fn event(&self) -> Result<Event, Rejection> {
        let options = self.options;
        Ok(Event {
            id: self.find(options.id.as_ref())?,
            event_type: self.find(options.event_type.as_ref())?,
            ordering_key: self.find(options.ordering_key.as_ref())?,
            sequence: self.find(options.sequence.as_ref())?,
            signed_at: self.signed_at()?,
            occurred_at: self.occurred_at()?,
            ..Event::default()
        })
    }

    /// When it was signed. A delivery without its timestamp is refused: it would never grow too old.
    fn signed_at(&self) -> Result<Option<u64>, Rejection> {
        let Some(locator) = &self.options.timestamp else {
            return Ok(None);
        };
        let text = locator.require(self.elements)?;
        let millis = (self.options.timestamp_unit)(&text);
        millis
            .map(Some)
            .ok_or_else(|| Rejection::malformed("timestamp: not of the configured unit"))
    }

    /// When it happened. Only told to consumers, so what cannot be read costs no delivery.
    fn occurred_at(&self) -> Result<Option<u64>, Rejection> {
        let Some(text) = self.find(self.options.occurred_at.as_ref())? else {
            return Ok(None);
        };
        let millis = (self.options.occurred_at_unit)(&text);
        if millis.is_none() {
            source::log(
                source::Level::Warn,
                "occurred_at: not of the configured unit",
            );
        }
        Ok(millis)
    }

    fn find(&self, locator: Option<&Locator>) -> Result<Option<String>, Rejection> {
        locator.map_or(Ok(None), |locator| locator.find(self.elements))
    }

    fn require(&self, locator: Option<&Locator>) -> Result<String, Rejection> {
        locator
            .ok_or_else(|| wrong("signed", "needs a locator"))?
            .require(self.elements)
    }
}

fn literal(text: String) -> Segment {
    Segment::Literal(text.into_bytes())
}

fn external_url() -> Result<Segment, Rejection> {
    match delivery::external_url() {
        Some(_) => Ok(Segment::ExternalUrl),
        None => Err(wrong(
            "signed",
            "holds {url}, but the source has no public_url",
        )),
    }
}
