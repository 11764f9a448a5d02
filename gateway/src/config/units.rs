//! Quantities as an operator writes them: text with a unit, so that no number can be read as another one.
//!
//! Knows nothing of what the quantities are for. A number alone is refused with a hint that shows its unit.

use std::fmt;
use std::time::Duration;

use bytesize::ByteSize;
use serde::de::{Deserialize, Deserializer, Error, Visitor};

/// The longest duration that there is: beyond it sums with the time of day would overflow somewhere.
pub(crate) const LONGEST: Duration = Duration::from_secs(1000 * 366 * 24 * 60 * 60);

/// A duration of at most [`LONGEST`], written as `"300s"` or `"5m"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Time(pub Duration);

/// A number of bytes, written as `"1MiB"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size(pub usize);

/// A duration, or `"auto"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ttl {
    Auto,
    Fixed(Duration),
}

impl Time {
    pub(crate) const fn seconds(seconds: u64) -> Self {
        Self(Duration::from_secs(seconds))
    }
}

/// Text with a unit.
trait Quantity: Sized {
    const EXPECTED: &'static str;
    /// The unit that a number alone most likely has.
    const UNIT: &'static str;
    const EXAMPLES: &'static str;

    fn parse(text: &str) -> Option<Self>;
}

impl Quantity for Time {
    const EXPECTED: &'static str = "a duration";
    const UNIT: &'static str = "s";
    const EXAMPLES: &'static str = "\"500ms\" or \"5m\"";

    fn parse(text: &str) -> Option<Self> {
        let duration = humantime::parse_duration(text).ok()?;
        (duration <= LONGEST).then_some(Self(duration))
    }
}

impl Quantity for Size {
    const EXPECTED: &'static str = "a size";
    const UNIT: &'static str = "B";
    const EXAMPLES: &'static str = "\"512KiB\" or \"1MiB\"";

    fn parse(text: &str) -> Option<Self> {
        let size: ByteSize = text.parse().ok()?;
        usize::try_from(size.as_u64()).ok().map(Self)
    }
}

impl Quantity for Ttl {
    const EXPECTED: &'static str = "a duration or \"auto\"";
    const UNIT: &'static str = Time::UNIT;
    const EXAMPLES: &'static str = "\"12h\" or \"20days\"";

    fn parse(text: &str) -> Option<Self> {
        match text {
            "auto" => Some(Self::Auto),
            _ => Time::parse(text).map(|time| Self::Fixed(time.0)),
        }
    }
}

struct Written<Q>(std::marker::PhantomData<Q>);

impl<Q: Quantity> Written<Q> {
    fn no_unit<E: Error>(number: impl fmt::Display) -> E {
        let (unit, examples) = (Q::UNIT, Q::EXAMPLES);
        E::custom(format!(
            "{number} has no unit\nhint: write \"{number}{unit}\", or with another unit as in {examples}"
        ))
    }
}

impl<Q: Quantity> Visitor<'_> for Written<Q> {
    type Value = Q;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, such as {}", Q::EXPECTED, Q::EXAMPLES)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Q, E> {
        if !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit()) {
            return Err(Self::no_unit(text));
        }
        Q::parse(text).ok_or_else(|| {
            E::custom(format!(
                "{text:?} is not {}\nhint: write it as {}",
                Q::EXPECTED,
                Q::EXAMPLES
            ))
        })
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Q, E> {
        Err(Self::no_unit(number))
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Q, E> {
        Err(Self::no_unit(number))
    }
}

macro_rules! deserialize_with_unit {
    ($($quantity:ty),*) => {$(
        impl<'de> Deserialize<'de> for $quantity {
            fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
                from.deserialize_any(Written::<Self>(std::marker::PhantomData))
            }
        }
    )*};
}

deserialize_with_unit!(Time, Size, Ttl);

/// A duration as it would be written.
pub(crate) fn shown(duration: Duration) -> String {
    // Whole seconds below ten minutes as such: what the protocol speaks of.
    match duration.subsec_nanos() {
        0 if duration.as_secs() < 600 => format!("{}s", duration.as_secs()),
        _ => humantime::format_duration(duration)
            .to_string()
            .replace(' ', ""),
    }
}
