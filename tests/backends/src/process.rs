//! A server as a process that does not outlive the tests: whatever way they end, its standard input ends
//! with them, and a shell that waits for that kills it and removes its directory.

use std::io::{self, BufRead, BufReader};
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

/// Generous: a busy machine must not fail a test.
const START: Duration = Duration::from_mins(1);

/// Runs `$@`, says its id before it says anything, and ends it with our own end. Deaf to the terminal's
/// interrupt, or it would leave the server behind.
const KEEPER: &str = r#"directory=$1; shift
trap '' INT TERM HUP
sh -c 'echo $$; exec "$@" 2>&1' server "$@" &
exec >/dev/null 2>&1
read -r _
kill -9 $! && wait $!
rm -rf "$directory""#;

/// Why there is no server.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its program is not there.
    #[error("{program} is not installed\nhint: `make backends` installs it; {by_hand}")]
    Missing {
        /// The program.
        program: String,
        /// How to install it without make.
        by_hand: &'static str,
    },
    /// The system refused something.
    #[error("cannot start {program}: {reason}")]
    System {
        /// The program.
        program: String,
        /// The system's word for it.
        reason: io::Error,
    },
    /// It ended, or did not come up in time.
    #[error("{program} did not say {awaited:?}, but:\n{said}")]
    Late {
        /// The program.
        program: String,
        /// What was waited for.
        awaited: String,
        /// What it said.
        said: String,
    },
    /// It refused what it was asked for at the start.
    #[error("{program} refused: {answer}")]
    Refused {
        /// The program.
        program: String,
        /// Its answer.
        answer: String,
    },
}

/// A server. Killed when it is dropped, and when the tests end in any other way.
#[derive(Debug)]
pub struct Process {
    keeper: Child,
    pid: Pid,
    program: String,
    directory: PathBuf,
    lines: Mutex<Receiver<String>>,
}

impl Process {
    /// Starts a program in a new directory. `by_hand` says how to install it.
    pub fn start(
        program: &str,
        arguments: &[String],
        by_hand: &'static str,
    ) -> Result<Self, StartError> {
        Self::start_with(program, by_hand, |_| Ok(arguments.to_vec()))
    }

    /// Starts a program whose arguments depend on its directory, where it finds what was put there.
    pub fn start_with(
        program: &str,
        by_hand: &'static str,
        arguments: impl FnOnce(&Path) -> io::Result<Vec<String>>,
    ) -> Result<Self, StartError> {
        if !is_installed(program) {
            let program = program.to_owned();
            return Err(StartError::Missing { program, by_hand });
        }
        let system = |reason| StartError::System {
            program: program.to_owned(),
            reason,
        };
        let directory = new_directory().map_err(system)?;
        let arguments = arguments(&directory).map_err(system)?;
        let mut keeper = keeper(program, &arguments, &directory).map_err(system)?;
        let stdout = keeper
            .stdout
            .take()
            .ok_or_else(|| system(io::Error::other("no output")))?;
        let mut stdout = BufReader::new(stdout);
        let pid = read_pid(&mut stdout).map_err(system)?;
        Ok(Self {
            keeper,
            pid,
            program: program.to_owned(),
            directory,
            lines: Mutex::new(follow(stdout)),
        })
    }

    /// Waits until it says this.
    pub fn says(&self, awaited: &str) -> Result<(), StartError> {
        let (until, mut said) = (Instant::now() + START, String::new());
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match lines.recv_timeout(left) {
                Ok(line) if line.contains(awaited) => return Ok(()),
                Ok(line) => said = said + &line + "\n",
                Err(_) => {
                    return Err(StartError::Late {
                        program: self.program.clone(),
                        awaited: awaited.to_owned(),
                        said,
                    });
                }
            }
        }
    }

    /// Sends it a signal, such as STOP and CONT.
    pub fn signal(&self, signal: Signal) -> io::Result<()> {
        Ok(kill_process(self.pid, signal)?)
    }

    /// Its directory, which goes when it goes.
    pub fn directory(&self) -> &Path {
        &self.directory
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// A port that nobody has at this moment.
pub fn free_port() -> io::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    Ok(listener.local_addr()?.port())
}

fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(program).is_file())
}

fn new_directory() -> io::Result<PathBuf> {
    let name = format!("hookgate-{}-{:016x}", std::process::id(), fastrand::u64(..));
    let directory = std::env::temp_dir().join(name);
    std::fs::create_dir(&directory)?;
    Ok(directory)
}

fn keeper(program: &str, arguments: &[String], directory: &Path) -> io::Result<Child> {
    Command::new("sh")
        .args(["-c", KEEPER, "keeper"])
        .arg(directory)
        .arg(program)
        .args(arguments)
        .current_dir(directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
}

fn read_pid(stdout: &mut BufReader<ChildStdout>) -> io::Result<Pid> {
    let mut line = String::new();
    stdout.read_line(&mut line)?;
    let id = line.trim().parse().ok().and_then(Pid::from_raw);
    id.ok_or_else(|| io::Error::other(format!("no process id: {line:?}")))
}

/// Reads on in a thread, or a full pipe would stop the server.
fn follow(stdout: BufReader<ChildStdout>) -> Receiver<String> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in stdout.lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    lines
}
