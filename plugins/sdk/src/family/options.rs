//! Reading the source's options, and the ones that every generic plugin has: where id, type, order and time
//! are in a delivery.
//!
//! A bad option refuses every delivery, with a reason that begins with `configuration:` and names it.

use super::locator::{Given, Locator};
use crate::{Event, Rejection, delivery, source, time};

/// Reads a time's text into milliseconds since 1970.
pub type TimeUnit = fn(&str) -> Option<u64>;

/// The refusal for a bad option.
pub fn wrong(option: &str, problem: &str) -> Rejection {
    Rejection::malformed(["configuration: ", option, " ", problem].concat())
}

/// An option's text; none where it is absent or empty.
pub fn text(name: &str) -> Option<String> {
    source::option(name).filter(|text| !text.is_empty())
}

/// An option's text, without which the source is of no use.
///
/// # Errors
///
/// Where it is absent or empty.
pub fn required(name: &str) -> Result<String, Rejection> {
    text(name).ok_or_else(|| wrong(name, "is required"))
}

/// An option that is `true` or `false`, which it is where it is absent.
///
/// # Errors
///
/// Where it is neither.
pub fn flag(name: &str) -> Result<bool, Rejection> {
    match text(name).as_deref() {
        None | Some("false") => Ok(false),
        Some("true") => Ok(true),
        Some(_) => Err(wrong(name, "is neither true nor false")),
    }
}

/// An option that is a locator.
///
/// # Errors
///
/// Where it is none.
pub fn locator(name: &str) -> Result<Option<Locator>, Rejection> {
    let Some(text) = text(name) else {
        return Ok(None);
    };
    Locator::parse(&text)
        .map(Some)
        .map_err(|problem| wrong(name, problem))
}

/// An option that says how a time is written.
///
/// # Errors
///
/// Where it names no such way.
pub fn unit(name: &str, default: TimeUnit) -> Result<TimeUnit, Rejection> {
    match text(name).as_deref() {
        None => Ok(default),
        Some("s") => Ok(time::from_seconds),
        Some("ms") => Ok(time::from_millis),
        Some("rfc3339") => Ok(time::from_rfc3339),
        Some(_) => Err(wrong(name, "is none of s, ms, rfc3339")),
    }
}

/// Where the facts about an event are.
pub struct Facts {
    /// The event's id.
    pub id: Option<Locator>,
    event_type: Option<Locator>,
    ordering_key: Option<Locator>,
    sequence: Option<Locator>,
    occurred_at: Option<Locator>,
    occurred_at_unit: TimeUnit,
}

impl Facts {
    /// Reads the options; `default_unit` is how the time of what happened is written unless they say so.
    ///
    /// # Errors
    ///
    /// Where one is bad.
    pub fn read(default_unit: TimeUnit) -> Result<Self, Rejection> {
        Ok(Self {
            id: locator("id")?,
            event_type: locator("type")?,
            ordering_key: locator("ordering_key")?,
            sequence: locator("sequence")?,
            occurred_at: locator("occurred_at")?,
            occurred_at_unit: unit("occurred_at_unit", default_unit)?,
        })
    }

    /// None of them.
    #[cfg(test)]
    pub(super) fn nothing() -> Self {
        Self {
            id: None,
            event_type: None,
            ordering_key: None,
            sequence: None,
            occurred_at: None,
            occurred_at_unit: time::from_seconds,
        }
    }

    pub(super) fn locators(&self) -> impl Iterator<Item = &Locator> {
        let own = [&self.id, &self.event_type, &self.ordering_key];
        let rest = [&self.sequence, &self.occurred_at];
        own.into_iter().chain(rest).flatten()
    }

    /// The event that they tell of.
    ///
    /// # Errors
    ///
    /// Malformed where a value cannot be read for sure.
    pub fn event(&self, given: Given<'_>, signed_at: Option<u64>) -> Result<Event, Rejection> {
        let find = |locator: &Option<Locator>| {
            let locator = locator.as_ref();
            locator.map_or(Ok(None), |locator| locator.find(given))
        };
        Ok(Event {
            id: find(&self.id)?,
            event_type: find(&self.event_type)?,
            ordering_key: find(&self.ordering_key)?,
            sequence: find(&self.sequence)?,
            signed_at,
            occurred_at: find(&self.occurred_at)?.and_then(|text| self.occurred_at(&text)),
            ..Event::default()
        })
    }

    /// When it happened. Only told to consumers, so what cannot be read costs no delivery.
    fn occurred_at(&self, text: &str) -> Option<u64> {
        let millis = (self.occurred_at_unit)(text);
        if millis.is_none() {
            source::log(
                source::Level::Warn,
                "occurred_at: not of the configured unit",
            );
        }
        millis
    }
}

/// Where the time of signing is, and how it is written.
pub struct Timestamp {
    /// The place.
    pub locator: Option<Locator>,
    /// Its unit.
    pub unit: TimeUnit,
    /// How old a signature may be by the provider's own word, in ms; none: the source's tolerance alone counts.
    pub max_age: Option<u64>,
}

impl Timestamp {
    /// Reads the options `timestamp`, `timestamp_unit` and `max_age`.
    ///
    /// # Errors
    ///
    /// Where one is bad.
    pub fn read() -> Result<Self, Rejection> {
        let max_age = text("max_age").map(|text| {
            time::from_seconds(&text).ok_or_else(|| wrong("max_age", "is not a number of seconds"))
        });
        Ok(Self {
            locator: locator("timestamp")?,
            unit: unit("timestamp_unit", time::from_seconds)?,
            max_age: max_age.transpose()?,
        })
    }

    /// When it was signed. A delivery without its timestamp is refused: it would never grow too old.
    ///
    /// # Errors
    ///
    /// Where it is absent, of another unit, or too old.
    pub fn signed_at(&self, given: Given<'_>) -> Result<Option<u64>, Rejection> {
        let Some(locator) = &self.locator else {
            return Ok(None);
        };
        let signed_at = (self.unit)(&locator.require(given)?)
            .ok_or_else(|| Rejection::malformed("timestamp: not of the configured unit"))?;
        match self.max_age {
            Some(age) if delivery::now() > signed_at.saturating_add(age) => {
                Err(Rejection::stale("timestamp: older than the option max_age"))
            }
            _ => Ok(Some(signed_at)),
        }
    }
}
