//! Text with placeholders in braces: what a provider signs (the option `signed`).
//!
//! Parses only; the pieces are filled from the delivery elsewhere. `{{` and `}}` are braces. A template
//! that names nothing of the delivery is refused: one signature would then fit every delivery.

use super::locator::Locator;

/// A piece of the signed content.
#[derive(Debug, PartialEq, Eq)]
pub enum Piece {
    /// Text as it is.
    Literal(String),
    /// The body as received.
    Body,
    /// The body's SHA-256 in hexadecimal.
    BodySha256,
    /// The request's method.
    Method,
    /// Path and query.
    Target,
    /// The URL that the provider called.
    Url,
    /// The secret itself, which plain digests hash together with the content.
    Secret,
    /// What the option `constant` says.
    Constant,
    /// What the option `timestamp` finds, as sent.
    Timestamp,
    /// What the option `id` finds.
    Id,
    /// What a locator finds.
    Located(Locator),
}

/// Reads a template.
///
/// # Errors
///
/// What is wrong with it.
pub fn parse(template: &str) -> Result<Vec<Piece>, String> {
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
    let is_fixed =
        |piece: &Piece| matches!(piece, Piece::Literal(_) | Piece::Secret | Piece::Constant);
    if pieces.iter().all(is_fixed) {
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
        "secret" => Piece::Secret,
        "constant" => Piece::Constant,
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
        assert!(parse("{constant}{secret}").is_err());
    }
}
