//! Where secrets are, and how their values are had.
//!
//! A value is read, made into a key and forgotten; it never stands in the configuration, in a message or in
//! debug output. What surrounds the process comes through [`Surroundings`], so that tests own it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use serde::de::{Deserialize, Deserializer, Error, SeqAccess, Visitor};

use super::problem::{file_hint, io_reason};
use crate::store::redis::Password;

/// The environment and the files around the process.
pub trait Surroundings {
    /// The environment variable's value, or none where it is not set.
    fn variable(&self, name: &str) -> Option<Vec<u8>>;

    /// The file's bytes.
    fn file(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// The process's own surroundings.
#[derive(Debug, Clone, Copy, Default)]
pub struct Process;

impl Surroundings for Process {
    fn variable(&self, name: &str) -> Option<Vec<u8>> {
        std::env::var_os(name).map(std::ffi::OsString::into_encoded_bytes)
    }

    fn file(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}

/// A secret's value. Shown nowhere.
pub(super) struct SecretValue(Vec<u8>);

impl SecretValue {
    pub(super) fn expose(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for SecretValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretValue(withheld)")
    }
}

/// Where one value of a secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecretRef {
    /// In this environment variable.
    Env(String),
    /// In this file, whose one trailing newline is no part of it.
    File(PathBuf),
}

impl SecretRef {
    fn parse(text: &str) -> Option<Self> {
        match text.split_once(':')? {
            (_, "") => None,
            ("env", name) => Some(Self::Env(name.to_owned())),
            ("file", path) => Some(Self::File(path.into())),
            _ => None,
        }
    }

    /// The reference with a path that starts at this directory.
    #[must_use]
    pub(super) fn below(&self, directory: &Path) -> Self {
        match self {
            Self::Env(name) => Self::Env(name.clone()),
            Self::File(path) => Self::File(directory.join(path)),
        }
    }

    /// A password: the value as text, or why it cannot be had.
    pub fn password(&self, from: &impl Surroundings) -> Result<Password, String> {
        let value = self.read(from)?;
        let text = std::str::from_utf8(value.expose());
        let text = text.map_err(|_| format!("{self} is not text"))?;
        Ok(Password::new(text))
    }

    /// The value, or why it cannot be had.
    pub(super) fn read(&self, from: &impl Surroundings) -> Result<SecretValue, String> {
        match self {
            Self::Env(name) => from.variable(name).map(SecretValue).ok_or_else(|| {
                format!("the environment variable {name} is not set\nhint: set it for the gateway's process")
            }),
            Self::File(path) => {
                let read = from.file(path).map_err(|error| {
                    let (path, reason) = (path.display(), io_reason(&error));
                    format!("cannot read the file {path}: {reason}
hint: {}", file_hint(&error))
                })?;
                Ok(SecretValue(without_newline(read)))
            }
        }
    }
}

impl fmt::Display for SecretRef {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Env(name) => write!(f, "env:{name}"),
            Self::File(path) => write!(f, "file:{}", path.display()),
        }
    }
}

fn without_newline(mut value: Vec<u8>) -> Vec<u8> {
    if value.last() == Some(&b'\n') {
        value.pop();
        if value.last() == Some(&b'\r') {
            value.pop();
        }
    }
    value
}

impl<'de> Deserialize<'de> for SecretRef {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        let text = String::deserialize(from)?;
        // The text may be the secret itself: it is not repeated.
        Self::parse(&text).ok_or_else(|| {
            D::Error::custom(
                "it is neither `env:NAME` nor `file:PATH`\n\
                 hint: a secret itself never stands here, only where it is",
            )
        })
    }
}

/// Where the active values of a secret are.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SecretRefs(pub Vec<SecretRef>);

impl<'de> Deserialize<'de> for SecretRefs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        from.deserialize_any(References)
    }
}

struct References;

impl<'de> Visitor<'de> for References {
    type Value = SecretRefs;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of where its values are, such as [\"env:NAME\", \"file:PATH\"]")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<SecretRefs, A::Error> {
        let mut refs = Vec::new();
        while let Some(text) = list.next_element::<String>()? {
            // The text may be the secret itself: it is not repeated.
            refs.push(SecretRef::parse(&text).ok_or_else(|| {
                A::Error::custom(
                    "one of its values is neither `env:NAME` nor `file:PATH`\n\
                     hint: a secret itself never stands here, only where it is",
                )
            })?);
        }
        if refs.is_empty() {
            return Err(A::Error::custom(
                "it has no values\nhint: name where one is, such as [\"env:NAME\"]",
            ));
        }
        Ok(SecretRefs(refs))
    }
}
