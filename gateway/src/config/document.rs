//! The file as TOML: from text to what it says, and from a key's path to its line. Only this file and the
//! option values name the TOML crate.
//!
//! Reading stops at no mistake: what is wrong is noted, taken out, and the rest is read again, so that all
//! mistakes are told at once. Values are never repeated in what is told, since one may be a secret.

use std::collections::HashMap;

use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, Deserializer, Error};

use super::Config;
use super::problem::{KeyPath, Problem, Problems, nearest};

/// The most mistakes that are told of one file: each costs one more reading.
const MAX_MISTAKES: usize = 50;

/// Where everything stands.
pub(super) struct Document {
    /// The line of every key.
    lines: HashMap<KeyPath, usize>,
}

impl Document {
    /// Reads the text; none where it is not TOML at all.
    pub(super) fn read(text: &str, problems: &mut Problems) -> Option<(Self, Config)> {
        let (root, errors) = DeTable::parse_recoverable(text);
        let lines = LineIndex::of(text);
        if !errors.is_empty() {
            for error in &errors {
                problems.add(syntax_error(error, &lines));
            }
            return None;
        }
        let mut document = Self {
            lines: HashMap::new(),
        };
        document.enter(root.get_ref(), &KeyPath::default(), &lines);
        Some((document, config(root, &lines, problems)))
    }

    fn enter(&mut self, table: &DeTable<'_>, above: &KeyPath, lines: &LineIndex) {
        for (key, value) in table {
            let path = above.then(key.get_ref());
            if let DeValue::Table(below) = value.get_ref() {
                self.enter(below, &path, lines);
            }
            self.lines.insert(path, lines.line(key.span().start));
        }
    }

    /// Gives every problem the line of its key, or of the table that lacks it.
    pub(super) fn locate(&self, problems: &mut Problems) {
        for problem in problems.iter_mut().filter(|problem| problem.line.is_none()) {
            let mut tables = std::iter::successors(Some(problem.path.clone()), KeyPath::above);
            problem.line = tables.find_map(|path| self.lines.get(&path).copied());
        }
    }
}

/// Where lines end, in bytes.
struct LineIndex(Vec<usize>);

impl LineIndex {
    fn of(text: &str) -> Self {
        Self(
            text.bytes()
                .enumerate()
                .filter(|(_, b)| *b == b'\n')
                .map(|(at, _)| at)
                .collect(),
        )
    }

    /// The line of the byte at this offset, from 1.
    fn line(&self, offset: usize) -> usize {
        self.0.partition_point(|end| *end < offset) + 1
    }
}

fn syntax_error(error: &Error, lines: &LineIndex) -> Problem {
    // "nothing" is what may follow where something else does.
    let message = error.message().trim_end_matches(", expected nothing");
    let what = format!("it is not TOML: {message}");
    let problem = Problem::error(KeyPath::default(), what);
    match error.span() {
        Some(span) => problem.at(lines.line(span.start)),
        None => problem,
    }
}

/// What the file says where it can be understood, and the defaults elsewhere.
fn config(mut root: Spanned<DeTable<'_>>, lines: &LineIndex, problems: &mut Problems) -> Config {
    refuse_lists(root.get_mut(), &KeyPath::default(), problems);
    for _ in 0..MAX_MISTAKES {
        let error = match Config::deserialize(Deserializer::from(root.clone())) {
            Ok(config) => return config,
            Err(error) => error,
        };
        let path = error
            .span()
            .and_then(|span| take_out(root.get_mut(), &span));
        let known = path.is_some();
        let mut problem = described(path.unwrap_or_default(), error.message());
        problem.line = error.span().map(|span| lines.line(span.start));
        problems.add(problem);
        if !known {
            break;
        }
    }
    Config::default()
}

/// Empties the lists that stand where sections, tenants and sources must: the deserializer would read a
/// list's elements as the fields of a table, in their order.
fn refuse_lists(table: &mut DeTable<'_>, above: &KeyPath, problems: &mut Problems) {
    for (key, value) in table.iter_mut() {
        let path = above.then(key.get_ref());
        match value.get_mut() {
            _ if !is_table(&path) => {}
            DeValue::Table(below) => refuse_lists(below, &path, problems),
            list @ DeValue::Array(_) => {
                *list = DeValue::Table(DeTable::new());
                let what = "it is a list, but must be a table";
                problems
                    .add(Problem::error(path.clone(), what).hint(format!("write it as [{path}]")));
            }
            _ => {}
        }
    }
}

fn is_table(path: &KeyPath) -> bool {
    let keys: Vec<_> = path.keys().iter().map(String::as_str).collect();
    matches!(
        keys[..],
        [_] | ["tenants", _] | ["tenants", _, "sources"] | ["tenants", _, "sources", _]
    )
}

/// Removes the entry that holds what stands at `span`, and says which that was.
fn take_out(table: &mut DeTable<'_>, span: &std::ops::Range<usize>) -> Option<KeyPath> {
    let mut found = None;
    for (key, value) in table.iter_mut() {
        let name = key.get_ref().to_string();
        if key.span() == *span || value.span() == *span || is_element(value.get_ref(), span) {
            found = Some((key.clone(), KeyPath::new(&[&name])));
            break;
        }
        if let DeValue::Table(below) = value.get_mut()
            && let Some(path) = take_out(below, span)
        {
            let keys = path.keys().iter().cloned();
            return Some(std::iter::once(name).chain(keys).collect());
        }
    }
    let (key, path) = found?;
    table.remove(&key);
    Some(path)
}

fn is_element(value: &DeValue<'_>, span: &std::ops::Range<usize>) -> bool {
    matches!(value, DeValue::Array(list) if list.iter().any(|element| element.span() == *span))
}

/// The deserializer's word for a mistake in an operator's.
fn described(path: KeyPath, message: &str) -> Problem {
    if let Some((name, known)) = unknown(message, "unknown field ") {
        return Problem::error(path, "unknown key").hint(nearest(name, "keys here", known));
    }
    if let Some((name, known)) = unknown(message, "unknown variant ") {
        return Problem::error(path, "it is not one of the values that it can have")
            .hint(nearest(name, "values", known));
    }
    Problem::error(path, withheld(message))
}

/// The name and the known ones of serde's "unknown field `name`, expected one of `a`, `b`". What was expected is
/// behind the last such words: the name is what somebody wrote, marks and all, and as a value it may be a secret.
fn unknown<'a>(message: &'a str, kind: &str) -> Option<(&'a str, impl Iterator<Item = &'a str>)> {
    let rest = message.strip_prefix(kind)?;
    let (name, known) = rest.rsplit_once(", expected ").unwrap_or((rest, ""));
    Some((name.trim_matches('`'), known.split('`').skip(1).step_by(2)))
}

/// A mistake of type, without the value: "invalid type: string \"…\", expected a map".
fn withheld(message: &str) -> String {
    let mistake = |kind: &str| {
        let (found, expected) = message.strip_prefix(kind)?.split_once(", expected ")?;
        // Where the value itself holds these words, what was expected is behind the last of them.
        let expected = expected
            .rsplit_once(", expected ")
            .map_or(expected, |(_, last)| last);
        let found = found.split([' ', '`', '"']).next().unwrap_or(found);
        Some((in_toml(found), in_toml(expected)))
    };
    if let Some((found, expected)) = mistake("invalid type: ") {
        return format!("it is {found}, but must be {expected}");
    }
    match mistake("invalid value: ") {
        Some((_, expected)) => format!("it must be {expected}"),
        None => message.to_owned(),
    }
}

fn in_toml(kind: &str) -> &str {
    match kind {
        "string" | "a string" => "text",
        "integer" => "a number",
        "floating" => "a number with a fraction",
        "boolean" => "true or false",
        "a boolean" => "`true` or `false`",
        "sequence" | "a sequence" => "a list",
        "map" | "a map" => "a table",
        "usize" | "u64" | "u32" => "a whole number, not negative and not too large",
        other if other.starts_with("struct ") => "a table",
        "path" => "a path",
        other => other,
    }
}
