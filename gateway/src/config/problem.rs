//! What is wrong with a configuration, and how an operator is told.
//!
//! All problems are told at once, errors first, each with the line, the key's path in the file, and a hint
//! where there is one. A problem's text never holds a secret's value.

use std::fmt;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

/// How bad a problem is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The gateway, or the source that it is about, cannot work.
    Error,
    /// It works, but perhaps not as it was meant.
    Warning,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

/// The keys that lead to a value in the file.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct KeyPath(Vec<String>);

impl KeyPath {
    /// The path of these keys.
    pub fn new(keys: &[&str]) -> Self {
        keys.iter().copied().map(str::to_owned).collect()
    }

    /// The path of a key below.
    #[must_use]
    pub fn then(&self, key: &str) -> Self {
        self.0.iter().cloned().chain([key.to_owned()]).collect()
    }

    /// The path of the table that the key is in; none above the file itself.
    pub(super) fn above(&self) -> Option<Self> {
        let (_, above) = self.0.split_last()?;
        Some(Self(above.to_vec()))
    }

    /// The keys, outermost first.
    pub fn keys(&self) -> &[String] {
        &self.0
    }
}

impl FromIterator<String> for KeyPath {
    fn from_iter<I: IntoIterator<Item = String>>(keys: I) -> Self {
        Self(keys.into_iter().collect())
    }
}

impl fmt::Display for KeyPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bare = |key: &str| {
            !key.is_empty()
                && key
                    .bytes()
                    .all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
        };
        for (place, key) in self.0.iter().enumerate() {
            let dot = if place > 0 { "." } else { "" };
            if bare(key) {
                write!(f, "{dot}{key}")?;
            } else {
                write!(f, "{dot}{key:?}")?;
            }
        }
        Ok(())
    }
}

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// How bad it is.
    pub severity: Severity,
    /// Where in the file; empty where it is about the file as a whole.
    pub path: KeyPath,
    /// The line in the file, from 1.
    pub line: Option<usize>,
    /// What is wrong.
    pub what: String,
    /// What to do about it.
    pub hint: Option<String>,
}

impl Problem {
    /// An error. Of a text that ends with a `hint:` line, that line is the hint.
    pub fn error(path: KeyPath, what: impl Into<String>) -> Self {
        let what = what.into();
        let (what, hint) = match what.split_once("\nhint: ") {
            Some((what, hint)) => (what.to_owned(), Some(hint.to_owned())),
            None => (what, None),
        };
        Self {
            severity: Severity::Error,
            path,
            line: None,
            what,
            hint,
        }
    }

    /// A warning.
    pub fn warning(path: KeyPath, what: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(path, what)
        }
    }

    /// The problem with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    /// The problem at a line.
    #[must_use]
    pub(super) fn at(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }
}

/// Without severity and hint: for a log line that has them elsewhere.
impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.keys().is_empty() {
            write!(f, "{}: ", self.path)?;
        }
        f.write_str(&self.what)
    }
}

/// Everything that is wrong with a file. Its `Display` is the report.
#[derive(Debug, Clone)]
pub struct Problems {
    file: PathBuf,
    list: Vec<Problem>,
}

impl Problems {
    /// None yet.
    pub fn of(file: &Path) -> Self {
        Self {
            file: file.to_owned(),
            list: Vec::new(),
        }
    }

    /// None yet, of the same file.
    #[must_use]
    pub fn none(&self) -> Self {
        Self::of(&self.file)
    }

    /// Adds one.
    pub fn add(&mut self, problem: Problem) {
        self.list.push(problem);
    }

    pub(super) fn add_all(&mut self, found: Vec<Problem>) {
        self.list.extend(found);
    }

    /// Adds one unless its place has an error already, which it would only follow from.
    pub(super) fn add_new(&mut self, problem: Problem) {
        if !self.has_error_at(&problem.path) {
            self.list.push(problem);
        }
    }

    /// Adds those of a later stage.
    pub fn extend(&mut self, later: Self) {
        self.list.extend(later.list);
    }

    /// Whether anything keeps the gateway or a source from working.
    pub fn has_errors(&self) -> bool {
        self.list
            .iter()
            .any(|problem| problem.severity == Severity::Error)
    }

    /// Whether there is an error at exactly this place.
    pub(super) fn has_error_at(&self, path: &KeyPath) -> bool {
        self.list
            .iter()
            .any(|p| p.severity == Severity::Error && p.path == *path)
    }

    /// The problems in the order they were found.
    pub fn iter(&self) -> impl Iterator<Item = &Problem> {
        self.list.iter()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Problem> {
        self.list.iter_mut()
    }
}

impl fmt::Display for Problems {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let file = self.file.display();
        let mut sorted: Vec<_> = self.list.iter().collect();
        sorted.sort_by_key(|problem| (problem.severity, problem.line));
        for problem in sorted {
            write!(f, "{file}:")?;
            if let Some(line) = problem.line {
                write!(f, "{line}:")?;
            }
            writeln!(f, " {}: {problem}", problem.severity)?;
            for line in problem
                .hint
                .iter()
                .flat_map(|hint| hint.lines().enumerate())
            {
                let label = if line.0 == 0 { "hint: " } else { "      " };
                writeln!(f, "  {label}{}", line.1)?;
            }
        }
        match self.list.len() {
            0 => write!(f, "no problems in {file}"),
            1 => write!(f, "1 problem in {file}"),
            count => write!(f, "{count} problems in {file}"),
        }
    }
}

/// The text of the environment variable that stands in the file's place, or a problem with it as a whole.
pub(super) fn set(name: &str, value: Option<Vec<u8>>, problems: &mut Problems) -> Option<String> {
    // An empty one is a deployment's mistake, and not a wish for all of the defaults.
    if let Some(value) = value.filter(|value| !value.is_empty()) {
        return readable(Ok(value), problems);
    }
    let problem = if name.is_empty() {
        Problem::error(KeyPath::default(), "it names no environment variable")
            .hint("write it as env:NAME")
    } else {
        let what = format!("the environment variable {name} is not set, or empty");
        Problem::error(KeyPath::default(), what)
            .hint("put the configuration's text into it, or name a file")
    };
    problems.add(problem);
    None
}

/// The file's text, or a problem with the file as a whole.
pub(super) fn readable(read: io::Result<Vec<u8>>, problems: &mut Problems) -> Option<String> {
    let whole = KeyPath::default();
    let problem = match read.map(String::from_utf8) {
        Ok(Ok(text)) => return Some(text),
        Ok(Err(error)) => {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            Problem::error(whole, "it is not UTF-8, which TOML is written in")
                .at(before.split(|b| *b == b'\n').count())
        }
        Err(error) if error.kind() == ErrorKind::NotFound => {
            Problem::error(whole, "there is no such file")
                .hint("check the path; one that is not absolute starts at the working directory")
        }
        Err(error) => Problem::error(whole, format!("cannot read it: {}", io_reason(&error)))
            .hint(file_hint(&error)),
    };
    problems.add(problem);
    None
}

/// What to do about a file that the configuration names.
pub(super) fn file_hint(error: &io::Error) -> &'static str {
    match error.kind() {
        ErrorKind::NotFound => {
            "check the path; one that is not absolute starts at the configuration file's directory"
        }
        ErrorKind::PermissionDenied => "let the gateway's user read it",
        ErrorKind::NotADirectory => "name a directory, not a file",
        _ => "check what is there",
    }
}

/// An error's reason without the system's number for it.
pub(super) fn io_reason(error: &io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or_default();
    let mut letters = text.chars();
    letters
        .next()
        .map(|first| first.to_lowercase().chain(letters).collect())
        .unwrap_or_default()
}

/// A hint that names what is near, or else all that is known.
pub(super) fn nearest<'a>(
    name: &str,
    what: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> String {
    let known: Vec<_> = known.into_iter().collect();
    let near = known
        .iter()
        .map(|known| (strsim::damerau_levenshtein(name, known), known))
        .min();
    match near {
        None => format!("there are no {what}"),
        // A third of the letters may be wrong: more is another word.
        Some((distance, near)) if distance <= near.len() / 3 => format!("did you mean `{near}`?"),
        _ => format!("{what}: {}", known.join(", ")),
    }
}
