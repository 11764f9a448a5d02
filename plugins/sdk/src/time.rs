//! Time as providers write it, read into milliseconds since 1970.
//!
//! A unit is never guessed from a number's size: a provider's documentation names it. Signs, spaces
//! and anything after the number are refused, since the text is part of what was signed.

/// Milliseconds from a decimal number of seconds. None where it is not one, or too large.
pub fn from_seconds(text: &str) -> Option<u64> {
    from_millis(text)?.checked_mul(1000)
}

/// Milliseconds from a decimal number of milliseconds. None where it is not one, or too large.
pub fn from_millis(text: &str) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    text.bytes().try_fold(0u64, |number, byte| {
        number.checked_mul(10)?.checked_add(u64::from(digit(byte)?))
    })
}

/// Milliseconds from an RFC 3339 time, its fraction cut after the third digit.
///
/// Without a zone it is read as UTC, which is what providers that leave it out mean. None where it is
/// no such time, or before 1970.
pub fn from_rfc3339(text: &str) -> Option<u64> {
    let mut reader = Reader(text.as_bytes());
    let days = reader.date()?;
    reader.one_of(b"Tt ")?;
    let millis = reader.time_of_day()?;
    let offset = reader.offset_minutes()?;
    let total = days * 86_400_000 + millis - offset * 60_000;
    u64::try_from(total).ok()
}

fn digit(byte: u8) -> Option<u8> {
    byte.is_ascii_digit().then(|| byte - b'0')
}

/// The part of the text that is not read yet.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    /// Days since 1970.
    fn date(&mut self) -> Option<i64> {
        let year = self.number(4)?;
        self.one_of(b"-")?;
        let month = self.between(2, 1, 12)?;
        self.one_of(b"-")?;
        let day = self.between(2, 1, days_of_month(year, month))?;
        Some(days_since_1970(year, month, day))
    }

    /// Milliseconds since midnight. A leap second counts as the next minute's first second.
    fn time_of_day(&mut self) -> Option<i64> {
        let hour = self.between(2, 0, 23)?;
        self.one_of(b":")?;
        let minute = self.between(2, 0, 59)?;
        self.one_of(b":")?;
        let second = self.between(2, 0, 60)?;
        let millis = self.fraction_millis()?;
        Some(((hour * 60 + minute) * 60 + second) * 1000 + millis)
    }

    fn fraction_millis(&mut self) -> Option<i64> {
        if self.one_of(b".").is_none() {
            return Some(0);
        }
        let mut millis = i64::from(self.digit()?) * 100;
        let mut weight = 10;
        while let Some(digit) = self.digit() {
            millis += i64::from(digit) * weight;
            weight /= 10;
        }
        Some(millis)
    }

    /// Minutes east of UTC; the text ends here.
    fn offset_minutes(&mut self) -> Option<i64> {
        let minutes = match self.next() {
            None | Some(b'Z' | b'z') => 0,
            Some(b'+') => self.offset()?,
            Some(b'-') => -self.offset()?,
            Some(_) => return None,
        };
        self.0.is_empty().then_some(minutes)
    }

    fn offset(&mut self) -> Option<i64> {
        let hours = self.between(2, 0, 23)?;
        self.one_of(b":")?;
        Some(hours * 60 + self.between(2, 0, 59)?)
    }

    fn between(&mut self, digits: usize, least: i64, most: i64) -> Option<i64> {
        let number = self.number(digits)?;
        (least..=most).contains(&number).then_some(number)
    }

    fn number(&mut self, digits: usize) -> Option<i64> {
        (0..digits).try_fold(0, |number, _| Some(number * 10 + i64::from(self.digit()?)))
    }

    fn digit(&mut self) -> Option<u8> {
        let value = digit(*self.0.first()?)?;
        self.next();
        Some(value)
    }

    fn one_of(&mut self, bytes: &[u8]) -> Option<u8> {
        let byte = *self.0.first()?;
        bytes.contains(&byte).then(|| self.next())?
    }

    fn next(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }
}

fn days_of_month(year: i64, month: i64) -> i64 {
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        _ => 31,
    }
}

/// Counts from March, so that the leap day is a year's last and needs no case of its own.
fn days_since_1970(year: i64, month: i64, day: i64) -> i64 {
    let (year, month) = if month > 2 {
        (year, month - 3)
    } else {
        (year - 1, month + 9)
    };
    let leap_days = year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400);
    365 * year + leap_days + (153 * month + 2) / 5 + day - 719_469
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_become_milliseconds() {
        assert_eq!(from_seconds("1533204620"), Some(1_533_204_620_000));
        assert_eq!(from_seconds("0"), Some(0));
    }

    #[test]
    fn what_is_no_plain_number_is_refused() {
        for text in ["", "+1", "-1", " 1", "1 ", "1.5", "1e3", "0x1", "١"] {
            assert_eq!(from_seconds(text), None, "{text:?}");
            assert_eq!(from_millis(text), None, "{text:?}");
        }
    }

    #[test]
    fn too_large_a_number_is_refused() {
        assert_eq!(from_millis("18446744073709551615"), Some(u64::MAX));
        assert_eq!(from_millis("18446744073709551616"), None);
        assert_eq!(from_seconds("18446744073709552"), None);
    }

    #[test]
    fn rfc3339_is_read_with_zone_and_fraction() {
        let cases = [
            ("1970-01-01T00:00:00Z", 0),
            ("2020-01-01T00:00:00-07:00", 1_577_862_000_000),
            ("2022-07-13T20:30:59.037339943Z", 1_657_744_259_037),
            ("2000-02-29 23:59:60.9+00:00", 951_868_800_900),
            ("2024-03-01T05:30:00+05:30", 1_709_251_200_000),
            ("9999-12-31T23:59:59z", 253_402_300_799_000),
        ];
        for (text, millis) in cases {
            assert_eq!(from_rfc3339(text), Some(millis), "{text}");
        }
    }

    #[test]
    fn a_time_without_zone_is_utc() {
        assert_eq!(
            from_rfc3339("2024-03-27T15:42:29.551"),
            Some(1_711_554_149_551)
        );
    }

    #[test]
    fn what_is_no_rfc3339_time_is_refused() {
        let cases = [
            "",
            "2024",
            "2024-13-01T00:00:00Z",
            "2023-02-29T00:00:00Z",
            "2024-01-01T24:00:00Z",
            "2024-01-01T00:00:00.Z",
            "2024-01-01T00:00:00Zx",
            "2024-01-01T00:00:00+0530",
            "1969-12-31T23:59:59Z",
            "2024-01-01T00:00Z",
            "2024-1-1T00:00:00Z",
        ];
        for text in cases {
            assert_eq!(from_rfc3339(text), None, "{text:?}");
        }
    }
}
