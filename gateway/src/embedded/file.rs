//! The database's directory: made once, opened with care.
//!
//! A marker tells "never been" from "gone": where it stands, a missing or empty file is an error, never a new
//! database.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use redb::{Builder, Database, DatabaseError, StorageError};

use super::format::{RecordError, Tables, next_sequence};

const DATABASE: &str = "hookgate.redb";
const MARKER: &str = "FORMAT";
const MARK: &str = "SEQUENCE";
const MARKER_TEXT: &str = "Hookgate embedded store and queue, format 1\n";
/// Pages that are kept in memory, in bytes.
const CACHE: usize = 64 << 20;

/// Why the database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The directory or a file in it cannot be used.
    #[error("cannot use {}: {reason}\nhint: {}", path.display(), hint(reason))]
    Io {
        /// What was used.
        path: PathBuf,
        /// The system's word for it.
        #[source]
        reason: io::Error,
    },
    /// Another process has it.
    #[error(
        "{} is open in another process\n\
         hint: stop the other gateway, or give this one its own `store.path`",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The directory was used before, but the file is not there.
    #[error(
        "{} is missing, although its directory was used before\n\
         hint: restore it from a backup; only if its events may be lost, remove {} and start anew",
        path.display(), marker.display()
    )]
    Missing {
        /// The file.
        path: PathBuf,
        /// The marker.
        marker: PathBuf,
    },
    /// Made by another format.
    #[error(
        "{} says {:?}, which this gateway does not read\n\
         hint: start the version that wrote it, or give this one its own `store.path`",
        marker.display(), found.trim_end()
    )]
    Format {
        /// The marker.
        marker: PathBuf,
        /// What it says.
        found: String,
    },
    /// The file holds less than was acknowledged.
    #[error(
        "{} ends at message {held}, but message {last} was acknowledged: its last commits are damaged\n\
         hint: keep a copy and restore from a backup; then, or if what is missing may be lost, remove {}",
        path.display(), mark.display()
    )]
    Behind {
        /// The database.
        path: PathBuf,
        /// Where the last sequence is noted.
        mark: PathBuf,
        /// The last message that was acknowledged.
        last: u64,
        /// The last message that is there.
        held: u64,
    },
    /// The file is damaged.
    #[error(
        "{} is damaged: {reason}\n\
         hint: its contents were not changed; keep a copy and restore from a backup",
        path.display()
    )]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What was found.
        reason: String,
    },
}

fn hint(reason: &io::Error) -> &'static str {
    match reason.kind() {
        io::ErrorKind::PermissionDenied => "the gateway's user needs to read and write it",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            "free some space; what was acknowledged is safe"
        }
        io::ErrorKind::NotADirectory | io::ErrorKind::AlreadyExists => {
            "`store.path` names a directory, not a file"
        }
        _ => "check `store.path`",
    }
}

/// An open database.
pub(super) struct Opened {
    pub(super) database: Database,
    /// The sequence of the next message.
    pub(super) next: u64,
    /// Where that is noted after each commit, if anywhere.
    pub(super) mark: Option<Mark>,
}

/// Opens the database of this directory and checks every page of it; makes it where there has never been one.
pub(super) fn open(directory: &Path) -> Result<Opened, OpenError> {
    let database = open_file(directory)?;
    let path = directory.join(DATABASE);
    let next = next_sequence(&database).map_err(|error| OpenError::Damaged {
        path: path.clone(),
        reason: error.to_string(),
    })?;
    let mark_path = directory.join(MARK);
    let mark = Mark::open(&mark_path).map_err(|reason| OpenError::Io {
        path: mark_path.clone(),
        reason,
    })?;
    match mark.next {
        Some(marked) if marked > next => Err(OpenError::Behind {
            path,
            mark: mark_path,
            last: marked - 1,
            held: next - 1,
        }),
        _ => Ok(Opened {
            database,
            next,
            mark: Some(mark),
        }),
    }
}

/// The next sequence, noted in a file of its own after each commit. It is not synced: it may be behind the
/// database, after a power cut, but never ahead of it. Where it is ahead, acknowledged commits are gone: the
/// database takes a damaged last commit for one that was never finished.
pub(super) struct Mark {
    file: File,
    next: Option<u64>,
}

impl Mark {
    fn open(path: &Path) -> io::Result<Self> {
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)?;
        let mut bytes = [0; 8];
        let next = match file.read_exact_at(&mut bytes, 0) {
            Ok(()) => Some(u64::from_be_bytes(bytes)),
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => None,
            Err(error) => return Err(error),
        };
        Ok(Self { file, next })
    }

    /// Notes the next sequence, behind the commit that made it so.
    pub(super) fn set(&self, next: u64) -> io::Result<()> {
        self.file.write_all_at(&next.to_be_bytes(), 0)
    }
}

fn open_file(directory: &Path) -> Result<Database, OpenError> {
    let io_error = |path: &Path| {
        let path = path.to_owned();
        move |reason| OpenError::Io { path, reason }
    };
    fs::create_dir_all(directory).map_err(io_error(directory))?;
    let (path, marker) = (directory.join(DATABASE), directory.join(MARKER));
    match fs::read_to_string(&marker) {
        Ok(text) if text == MARKER_TEXT => existing(path, marker),
        Ok(found) => Err(OpenError::Format { marker, found }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let database = fresh(&path)?;
            write_marker(directory, &marker).map_err(io_error(&marker))?;
            Ok(database)
        }
        Err(reason) => Err(OpenError::Io {
            path: marker,
            reason,
        }),
    }
}

fn existing(path: PathBuf, marker: PathBuf) -> Result<Database, OpenError> {
    match fs::metadata(&path) {
        Ok(metadata) if metadata.len() > 0 => {
            builder().open(&path).map_err(|error| refused(&path, error))
        }
        Ok(_) => Err(OpenError::Missing { path, marker }),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(OpenError::Missing { path, marker })
        }
        Err(reason) => Err(OpenError::Io { path, reason }),
    }
}

fn fresh(path: &Path) -> Result<Database, OpenError> {
    let database = builder()
        .create(path)
        .map_err(|error| refused(path, error))?;
    make_tables(&database).map_err(|error| OpenError::Damaged {
        path: path.to_owned(),
        reason: error.to_string(),
    })?;
    Ok(database)
}

pub(super) fn make_tables(database: &Database) -> Result<(), RecordError> {
    let transaction = database.begin_write()?;
    drop(Tables::open(&transaction)?);
    Ok(transaction.commit()?)
}

fn builder() -> Builder {
    let mut builder = Builder::new();
    // Without it, damage inside a cleanly closed file would show as wrong answers.
    builder
        .set_check_integrity_on_open(true)
        .set_cache_size(CACHE);
    builder
}

/// The marker follows the database onto the disk, never the other way round.
fn write_marker(directory: &Path, marker: &Path) -> io::Result<()> {
    File::open(directory)?.sync_all()?;
    fs::write(marker, MARKER_TEXT)?;
    File::open(marker)?.sync_all()?;
    File::open(directory)?.sync_all()
}

fn refused(path: &Path, error: DatabaseError) -> OpenError {
    let path = path.to_owned();
    match error {
        DatabaseError::DatabaseAlreadyOpen | DatabaseError::LockProtocolMismatch => {
            OpenError::InUse { path }
        }
        DatabaseError::Storage(StorageError::Io(reason))
            if reason.kind() != io::ErrorKind::InvalidData
                && reason.kind() != io::ErrorKind::UnexpectedEof =>
        {
            OpenError::Io { path, reason }
        }
        other => OpenError::Damaged {
            path,
            reason: other.to_string(),
        },
    }
}
