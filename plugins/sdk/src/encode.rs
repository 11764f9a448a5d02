//! Bytes as text and back: hexadecimal, base64, and strings as JSON.
//!
//! For what is public, or goes on to the host: secrets and MACs are never written or compared here.

use crate::bindings::hookgate::provider::types::Rejection;

/// Lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits
        .filter_map(|digit| char::from_digit(u32::from(digit), 16))
        .collect()
}

/// The bytes of base64, of either alphabet, padded or not. None where it is none: an impossible length,
/// another character, or bits that stand for nothing.
pub fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let unpadded = match text {
        [rest @ .., b'=', b'='] | [rest @ .., b'='] if text.len().is_multiple_of(4) => rest,
        text => text,
    };
    let mut bytes = Vec::with_capacity(unpadded.len() / 4 * 3 + 2);
    for group in unpadded.chunks(4) {
        let bits = group.iter().try_fold(0u32, |bits, character| {
            Some(bits << 6 | u32::from(sextet(*character)?))
        })?;
        let count = match group.len() {
            4 => 3,
            3 => 2,
            2 => 1,
            _ => return None,
        };
        let [_, all @ ..] = (bits << (6 * (4 - group.len()))).to_be_bytes();
        let (kept, rest) = all.split_at(count);
        if rest.iter().any(|byte| *byte != 0) {
            return None;
        }
        bytes.extend_from_slice(kept);
    }
    Some(bytes)
}

fn sextet(character: u8) -> Option<u8> {
    Some(match character {
        b'A'..=b'Z' => character - b'A',
        b'a'..=b'z' => character - b'a' + 26,
        b'0'..=b'9' => character - b'0' + 52,
        b'+' | b'-' => 62,
        b'/' | b'_' => 63,
        _ => return None,
    })
}

/// Whether a challenge may be signed: at most 256 letters, digits and `+/=_-`, of which no content that the
/// provider signs is made. The host takes no others.
///
/// # Errors
///
/// Malformed where it is another; `name` says which.
pub fn check_challenge(name: &str, challenge: &str) -> Result<(), Rejection> {
    let known = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=_-".contains(&byte);
    if (1..=256).contains(&challenge.len()) && challenge.bytes().all(known) {
        return Ok(());
    }
    Err(Rejection::malformed(
        [name, ": not 1 to 256 letters, digits and +/=_-"].concat(),
    ))
}

/// The text as a JSON string, quotes included.
pub fn json_string(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for character in text.chars() {
        match character {
            '"' => quoted.push_str("\\\""),
            '\\' => quoted.push_str("\\\\"),
            // `<` too: whoever takes the answer for a page finds no tag in it.
            '\0'..='\x1f' | '<' => {
                quoted.push_str("\\u00");
                quoted.push_str(&hex(&[character as u8]));
            }
            _ => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hexadecimal_is_lower_case() {
        assert_eq!(hex(&[0, 0x1f, 0xff]), "001fff");
    }

    #[test]
    fn base64_is_read_whatever_its_alphabet_and_padding() {
        for text in ["++8=", "--8=", "--8"] {
            assert_eq!(from_base64(text.as_bytes()).unwrap(), [0xfb, 0xef]);
        }
        assert_eq!(from_base64(b"").unwrap(), b"");
        assert_eq!(from_base64(b"YQ==").unwrap(), b"a");
        assert_eq!(from_base64(b"YWJj").unwrap(), b"abc");
        assert_eq!(from_base64(b"YWJjZA").unwrap(), b"abcd");
    }

    #[test]
    fn what_is_no_base64_is_refused() {
        for text in [
            "A", "YQ=", "YQ===", "YR==", "Y Q=", "Y=Q=", "=", "====", "YWJj\n",
        ] {
            assert_eq!(from_base64(text.as_bytes()), None, "{text:?}");
        }
    }

    #[test]
    fn a_json_string_cannot_be_left() {
        assert_eq!(
            json_string("a\"b\\c\n</é"),
            "\"a\\\"b\\\\c\\u000a\\u003c/é\""
        );
    }
}
