//! What a look at a live backend finds, for the operator.

use std::fmt;

/// How grave a finding is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gravity {
    /// Good to know.
    Note,
    /// It works, with a consequence.
    Warning,
    /// Events would be lost, doubled or refused.
    Error,
}

/// Something about a live backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// How grave it is.
    pub gravity: Gravity,
    /// What was found.
    pub what: String,
    /// What to do about it; empty where nothing need be.
    pub hint: String,
    /// Whether it may pass by itself, as an outage does.
    pub passes: bool,
}

impl Finding {
    /// Events would be lost, doubled or refused.
    pub fn error(what: impl Into<String>) -> Self {
        Self::new(Gravity::Error, what)
    }

    /// It works, with a consequence.
    pub fn warning(what: impl Into<String>) -> Self {
        Self::new(Gravity::Warning, what)
    }

    /// Good to know.
    pub fn note(what: impl Into<String>) -> Self {
        Self::new(Gravity::Note, what)
    }

    /// Something of that gravity.
    pub fn new(gravity: Gravity, what: impl Into<String>) -> Self {
        Self {
            gravity,
            what: what.into(),
            hint: String::new(),
            passes: false,
        }
    }

    /// With what to do about it.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = hint.into();
        self
    }

    /// As something that may pass by itself.
    #[must_use]
    pub fn passing(mut self) -> Self {
        self.passes = true;
        self
    }

    /// Whether it is an error.
    pub fn is_error(&self) -> bool {
        self.gravity == Gravity::Error
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.hint.is_empty() {
            write!(f, "\nhint: {}", self.hint)?;
        }
        Ok(())
    }
}
