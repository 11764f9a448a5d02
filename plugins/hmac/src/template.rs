//! The option `signed`: what the provider signs, as text with placeholders in braces.
//!
//! Parses only; the pieces are filled from the delivery elsewhere. `{{` and `}}` are braces. A template
//! that names nothing of the delivery is refused: one signature would then fit every delivery.

use crate::locator::Locator;

/// A piece of the signed content.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    Literal(String),
    Body,
    BodySha256,
    Method,
    Target,
    Url,
    /// What the option `timestamp` finds, as sent.
    Timestamp,
    /// What the option `id` finds.
    Id,
    Located(Locator),
}

/// Reads a template. The error says what is wrong with it.
pub(crate) fn parse(template: &str) -> Result<Vec<Piece>, String> {
    let mut pieces = Vec::new();
    let mut rest = template;
    while let Some((literal, brace, after)) = split_at_brace(rest) {
        push_literal(&mut pieces, literal);
        rest = if let Some(after) = after.strip_prefix(brace) {
            push_literal(&mut pieces, brace);
            after
        } else {
            let (piece, after) = placeholder(brace, after)?;
            pieces.push(piece);
            after
        };
    }
    push_literal(&mut pieces, rest);
    if pieces
        .iter()
        .all(|piece| matches!(piece, Piece::Literal(_)))
    {
        return Err("names nothing of the delivery".into());
    }
    Ok(pieces)
}

fn split_at_brace(text: &str) -> Option<(&str, &str, &str)> {
    let at = text.find(['{', '}'])?;
    Some((text.get(..at)?, text.get(at..at + 1)?, text.get(at + 1..)?))
}

fn push_literal(pieces: &mut Vec<Piece>, text: &str) {
    match pieces.last_mut() {
        _ if text.is_empty() => {}
        Some(Piece::Literal(literal)) => literal.push_str(text),
        _ => pieces.push(Piece::Literal(text.into())),
    }
}

fn placeholder<'a>(brace: &str, after: &'a str) -> Result<(Piece, &'a str), String> {
    if brace == "}" {
        return Err("holds a } without {; write }} for a brace".into());
    }
    let (name, rest) = after
        .split_once('}')
        .ok_or("holds a { without }; write {{ for a brace")?;
    Ok((named(name)?, rest))
}

fn named(name: &str) -> Result<Piece, String> {
    Ok(match name {
        "body" => Piece::Body,
        "body-sha256" => Piece::BodySha256,
        "method" => Piece::Method,
        "target" => Piece::Target,
        "url" => Piece::Url,
        "timestamp" => Piece::Timestamp,
        "id" => Piece::Id,
        _ if !name.bytes().any(|byte| byte == b':') => {
            return Err(["holds an unknown {", name, "}"].concat());
        }
        _ => Piece::Located(
            Locator::parse(name)
                .map_err(|problem| ["holds {", name, "}, which ", problem].concat())?,
        ),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_and_literals_keep_their_order() {
        let pieces = parse("v0:{timestamp}:{body}{header:X-Id}").unwrap();
        let expected = [
            Piece::Literal("v0:".into()),
            Piece::Timestamp,
            Piece::Literal(":".into()),
            Piece::Body,
            Piece::Located(Locator::Header("X-Id".into())),
        ];
        assert_eq!(pieces, expected);
    }

    #[test]
    fn doubled_braces_are_literal() {
        let expected = [
            Piece::Literal("{body}".into()),
            Piece::Body,
            Piece::Literal("}{".into()),
        ];
        assert_eq!(parse("{{body}}{body}}}{{").unwrap(), expected);
    }

    #[test]
    fn broken_templates_are_refused() {
        for text in [
            "{body",
            "body}",
            "{}",
            "{nonsense}",
            "{body}{",
            "{body}}",
            "{json:a}",
        ] {
            assert!(parse(text).is_err(), "{text:?}");
        }
    }

    #[test]
    fn a_template_of_literals_alone_is_refused() {
        assert!(parse("").is_err());
        assert!(parse("{{body}}").is_err());
    }
}
