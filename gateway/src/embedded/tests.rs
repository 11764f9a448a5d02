use std::fs;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};

use redb::StorageBackend;
use redb::backends::InMemoryBackend;

use super::*;
use crate::clock::ManualClock;
use crate::delivery::{Message, Response};
use crate::store::{RECORD_VERSION, State, Token, whole_seconds_up};

const NOON: u64 = 1_700_000_000_000;
const WINDOW: Duration = Duration::from_secs(300);
const TTL_MS: u64 = 1_000_000;

fn open(directory: &Path, clock: &Arc<ManualClock>) -> Result<Embedded, OpenError> {
    let clock: SharedClock = Arc::<ManualClock>::clone(clock);
    Embedded::open(directory, clock, WINDOW)
}

fn acceptance(key: &str, body: &str, now: u64) -> Acceptance {
    let response = Response {
        status: None,
        headers: vec![],
        body: key.to_owned().into(),
    };
    Acceptance {
        key: key.to_owned(),
        claim: Claim {
            version: RECORD_VERSION,
            state: State::Accepted,
            token: Token::new(),
            lease_until: 0,
            first_at: now,
            accepted_at: Some(now),
            generation: 0,
            group: "acme.gh".into(),
            queue: QUEUE_NAME.into(),
            body_sha256: "00".repeat(32),
            response: Some(response),
            expires_at: whole_seconds_up(now + TTL_MS),
        },
        message: Message {
            deduplication_id: key.to_owned(),
            group_id: "acme.gh".into(),
            attributes: vec![("ce-id".into(), key.to_owned())],
            body: body.to_owned().into(),
        },
        closes: None,
    }
}

fn bodies(embedded: &Embedded) -> Vec<String> {
    let held = embedded.list(0, usize::MAX).unwrap();
    held.iter()
        .map(|held| String::from_utf8(held.message.body.to_vec()).unwrap())
        .collect()
}

#[tokio::test]
async fn what_was_accepted_is_there_after_opening_again_and_in_order() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(NOON));
    let embedded = open(directory.path(), &clock).unwrap();
    for n in 0..10 {
        let accepted = embedded
            .accept(acceptance(&format!("k{n}"), &format!("b{n}"), NOON))
            .await;
        assert_eq!(accepted.unwrap(), Accepted::New);
    }
    close(embedded).await;
    let embedded = open(directory.path(), &clock).unwrap();
    assert_eq!(
        bodies(&embedded),
        (0..10).map(|n| format!("b{n}")).collect::<Vec<_>>()
    );
    let again = embedded
        .accept(acceptance("k3", "other", NOON))
        .await
        .unwrap();
    let Accepted::Duplicate(claim) = again else {
        panic!("{again:?}")
    };
    assert_eq!(claim.response.unwrap().body, "k3");
    let next = embedded
        .accept(acceptance("k10", "b10", NOON))
        .await
        .unwrap();
    assert_eq!(next, Accepted::New);
    let held = embedded.list(10, 5).unwrap();
    assert_eq!((held.len(), held[0].sequence), (1, 11));
}

/// Waits until the writer has let go of the file.
async fn close(embedded: Embedded) {
    let database = Arc::clone(&embedded.database);
    drop(embedded);
    while Arc::strong_count(&database) > 1 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn of_concurrent_copies_one_is_new_and_the_others_are_duplicates() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(NOON));
    let embedded = Arc::new(open(directory.path(), &clock).unwrap());
    let copies = (0..32).map(|n| {
        let embedded = Arc::clone(&embedded);
        tokio::spawn(async move {
            embedded
                .accept(acceptance("k", &format!("b{n}"), NOON))
                .await
        })
    });
    let mut new = 0;
    for copy in copies.collect::<Vec<_>>() {
        new += usize::from(copy.await.unwrap().unwrap() == Accepted::New);
    }
    assert_eq!((new, bodies(&embedded).len()), (1, 1));
}

#[tokio::test]
async fn an_expired_claim_counts_as_absent_and_is_swept() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(NOON));
    let embedded = open(directory.path(), &clock).unwrap();
    embedded.accept(acceptance("old", "b", NOON)).await.unwrap();
    clock.advance(Duration::from_millis(TTL_MS));
    let later = NOON + TTL_MS;
    embedded
        .accept(acceptance("other", "b", later))
        .await
        .unwrap();
    assert_eq!(embedded.look("old").await.unwrap(), None);
    assert_eq!(
        embedded
            .accept(acceptance("old", "b", later))
            .await
            .unwrap(),
        Accepted::New
    );
    assert!(embedded.look("other").await.unwrap().is_some());
    assert_eq!(bodies(&embedded).len(), 3);
}

#[tokio::test]
async fn an_open_record_is_closed_by_its_token_with_its_generation_once_inside_the_window() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(NOON));
    let embedded = open(directory.path(), &clock).unwrap();
    let mut open_record = acceptance("k", "b", NOON);
    open_record.claim.state = State::Processing;
    open_record.claim.generation = 1;
    let token = open_record.claim.token;
    embedded.accept(open_record.clone()).await.unwrap();

    let found = embedded.accept(acceptance("k", "b", NOON)).await.unwrap();
    assert!(matches!(found, Accepted::Open(claim) if claim.token == token));
    let mut closing = acceptance("k", "b", NOON);
    closing.closes = Some(token);
    closing.claim.generation = 1;
    closing.message.deduplication_id = "k~1".into();
    assert_eq!(
        embedded.accept(closing.clone()).await.unwrap(),
        Accepted::New
    );
    assert_eq!(bodies(&embedded).len(), 2);

    // The claim is lost, as another store could lose it: the window still knows the deduplication id.
    let mut again = closing.clone();
    again.key = "k2".into();
    again.closes = None;
    embedded.accept(again.clone()).await.unwrap();
    assert_eq!(bodies(&embedded).len(), 2, "inside the window");
    clock.advance(WINDOW);
    again.key = "k3".into();
    embedded.accept(again).await.unwrap();
    assert_eq!(bodies(&embedded).len(), 3, "behind the window");
}

#[tokio::test]
async fn a_second_opener_is_refused_while_the_first_lives() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(NOON));
    let first = open(directory.path(), &clock).unwrap();
    let refused = open(directory.path(), &clock).err().unwrap();
    assert!(matches!(refused, OpenError::InUse { .. }), "{refused}");
    assert!(refused.to_string().contains("hint: stop the other gateway"));
    close(first).await;
    assert!(open(directory.path(), &clock).is_ok());
}

/// A closed database with a hundred messages.
async fn filled() -> (tempfile::TempDir, PathBuf) {
    let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(NOON));
    let embedded = open(directory.path(), &clock).unwrap();
    for n in 0..100 {
        let body = format!("b{n}").repeat(100);
        embedded
            .accept(acceptance(&format!("k{n}"), &body, NOON))
            .await
            .unwrap();
    }
    close(embedded).await;
    let path = directory.path().join("hookgate.redb");
    (directory, path)
}

#[tokio::test]
async fn a_file_that_is_gone_or_empty_is_an_error_and_never_a_new_database() {
    let (directory, path) = filled().await;
    let clock = ManualClock::at(NOON);
    fs::write(&path, b"").unwrap();
    let empty = open(directory.path(), &clock).err().unwrap();
    assert!(matches!(empty, OpenError::Missing { .. }), "{empty}");
    fs::remove_file(&path).unwrap();
    let gone = open(directory.path(), &clock).err().unwrap();
    assert!(matches!(gone, OpenError::Missing { .. }), "{gone}");
    assert!(!path.exists(), "nothing was made");
}

#[tokio::test]
async fn damage_is_an_error_or_leaves_every_message_as_it_was() {
    let (directory, path) = filled().await;
    let clock = ManualClock::at(NOON);
    let whole = fs::read(&path).unwrap();
    let expected = bodies(&open(directory.path(), &clock).unwrap());
    let mut damaged = 0;
    // A page torn by a crash of the machine or a dying disk, at every page of the file.
    for start in (0..whole.len()).step_by(4096) {
        let mut torn = whole.clone();
        torn[start..start + 2048].fill(0xa5);
        fs::write(&path, &torn).unwrap();
        match open(directory.path(), &clock) {
            Err(OpenError::Damaged { .. }) => damaged += 1,
            Err(other) => panic!("page {start}: {other}"),
            Ok(embedded) => {
                assert_eq!(bodies(&embedded), expected, "page {start}");
                close(embedded).await;
            }
        }
    }
    assert!(damaged > 10, "{damaged}");
    for length in [1, 4096, whole.len() / 2, whole.len() - 1] {
        fs::write(&path, &whole[..length]).unwrap();
        let refused = open(directory.path(), &clock).err().unwrap();
        assert!(
            matches!(refused, OpenError::Damaged { .. }),
            "{length}: {refused}"
        );
    }
    fs::write(&path, b"not a database at all").unwrap();
    let refused = open(directory.path(), &clock).err().unwrap().to_string();
    assert!(
        refused.contains("hint: its contents were not changed"),
        "{refused}"
    );
}

#[tokio::test]
async fn a_directory_of_another_format_or_that_is_a_file_is_refused() {
    let (directory, _) = filled().await;
    let clock = ManualClock::at(NOON);
    fs::write(directory.path().join("FORMAT"), "something else").unwrap();
    let other = open(directory.path(), &clock).err().unwrap();
    assert!(other.to_string().contains("does not read"), "{other}");
    let file = directory.path().join("hookgate.redb");
    let refused = open(&file, &clock).err().unwrap().to_string();
    assert!(
        refused.contains("names a directory, not a file"),
        "{refused}"
    );
}

/// A disk that can be full.
#[derive(Debug, Clone)]
struct Disk {
    inner: Arc<InMemoryBackend>,
    full: Arc<AtomicBool>,
}

impl Disk {
    fn room(&self) -> io::Result<()> {
        match self.full.load(Ordering::SeqCst) {
            true => Err(io::Error::from(io::ErrorKind::StorageFull)),
            false => Ok(()),
        }
    }
}

impl StorageBackend for Disk {
    fn len(&self) -> io::Result<u64> {
        self.inner.len()
    }
    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.inner.read(offset, out)
    }
    fn set_len(&self, len: u64) -> io::Result<()> {
        self.room()?;
        self.inner.set_len(len)
    }
    fn sync_data(&self) -> io::Result<()> {
        self.room()?;
        self.inner.sync_data()
    }
    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        self.room()?;
        self.inner.write(offset, data)
    }
}

impl Disk {
    fn new() -> Self {
        Self {
            inner: Arc::default(),
            full: Arc::default(),
        }
    }

    fn open(&self) -> Result<Opened, OpenError> {
        let broken = |reason: String| OpenError::Damaged {
            path: "disk".into(),
            reason,
        };
        let mut builder = Database::builder();
        let opened = builder
            .set_check_integrity_on_open(true)
            .create_with_backend(self.clone());
        let database = opened.map_err(|error| broken(error.to_string()))?;
        file::make_tables(&database).map_err(|error| broken(error.to_string()))?;
        let next = format::next_sequence(&database).map_err(|error| broken(error.to_string()))?;
        Ok(Opened {
            database,
            next,
            mark: None,
        })
    }

    fn embedded(&self, clock: &Arc<ManualClock>) -> Embedded {
        let (disk, clock): (_, SharedClock) = (self.clone(), Arc::<ManualClock>::clone(clock));
        Embedded::start(Box::new(move || disk.open()), clock, WINDOW).unwrap()
    }
}

#[tokio::test]
async fn a_full_disk_refuses_until_there_is_room_and_loses_nothing() {
    let (disk, clock) = (Disk::new(), ManualClock::at(NOON));
    let embedded = disk.embedded(&clock);
    embedded
        .accept(acceptance("before", "b1", NOON))
        .await
        .unwrap();

    disk.full.store(true, Ordering::SeqCst);
    let failed = embedded
        .accept(acceptance("during", "b2", NOON))
        .await
        .unwrap_err();
    assert!(matches!(failed, StoreError::Ambiguous(_)), "{failed}");
    let refused = embedded
        .accept(acceptance("during", "b2", NOON))
        .await
        .unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused}");
    clock.advance(Duration::from_secs(2));
    embedded
        .accept(acceptance("during", "b2", NOON))
        .await
        .unwrap_err();

    disk.full.store(false, Ordering::SeqCst);
    clock.advance(Duration::from_secs(2));
    // The provider's retry: accepted now, unless the failed commit had reached the disk after all.
    embedded
        .accept(acceptance("during", "b2", NOON))
        .await
        .unwrap();
    let again = embedded
        .accept(acceptance("before", "b1", NOON))
        .await
        .unwrap();
    assert!(matches!(again, Accepted::Duplicate(_)));
    assert_eq!(bodies(&embedded), ["b1", "b2"]);
}

fn request(key: &str) -> ClaimRequest {
    ClaimRequest {
        key: key.to_owned(),
        token: Token::new(),
        lease: Duration::from_secs(30),
        group: "acme.gh".into(),
        queue: QUEUE_NAME.into(),
        body_sha256: "00".repeat(32),
        ttl: Duration::from_millis(TTL_MS),
        take_over: None,
    }
}

async fn send(embedded: &Embedded, key: &str) -> Sent {
    let message = acceptance(key, "b", NOON).message;
    let lease = Span::start(&embedded.clock, Duration::from_secs(30));
    embedded.send(&message, &lease).await.unwrap()
}

#[tokio::test]
async fn claims_of_an_earlier_boot_are_dead_and_what_was_settled_or_sent_is_not() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(NOON));
    let embedded = open(directory.path(), &clock).unwrap();
    for key in ["settled", "sent", "claimed"] {
        let claimed = embedded.claim(&request(key)).await.unwrap();
        assert!(matches!(claimed, Claimed::Owner(_)));
    }
    send(&embedded, "settled").await;
    send(&embedded, "sent").await;
    let claim = acceptance("settled", "b", NOON).claim;
    let key = "settled".to_owned();
    embedded.settle(&Settlement { key, claim }).await.unwrap();
    close(embedded).await;

    let embedded = open(directory.path(), &clock).unwrap();
    let settled = embedded.claim(&request("settled")).await.unwrap();
    assert!(matches!(settled, Claimed::Duplicate(_)), "{settled:?}");
    for key in ["sent", "claimed"] {
        let claimed = embedded.claim(&request(key)).await.unwrap();
        assert!(matches!(claimed, Claimed::Owner(_)), "{claimed:?}");
    }
    assert_eq!(send(&embedded, "sent").await, Sent::Deduplicated);
    assert_eq!(send(&embedded, "claimed").await, Sent::New);
    assert_eq!(bodies(&embedded).len(), 3);
}

#[tokio::test]
async fn what_the_window_forgot_is_swept() {
    let (directory, clock) = (tempfile::tempdir().unwrap(), ManualClock::at(NOON));
    let embedded = open(directory.path(), &clock).unwrap();
    let remembered = || {
        let database = embedded.database.load_full().unwrap();
        format::remembered(&database).unwrap()
    };
    send(&embedded, "k1").await;
    clock.advance(WINDOW / 2);
    send(&embedded, "k2").await;
    assert_eq!(remembered(), (2, 2));
    clock.advance(WINDOW / 2);
    send(&embedded, "k3").await;
    assert_eq!(remembered(), (2, 2));
}

#[tokio::test]
async fn sweeping_rests_only_once_nothing_expired_is_left() {
    let (disk, clock) = (Disk::new(), ManualClock::at(NOON));
    let embedded = disk.embedded(&clock);
    let remembered = || {
        let database = embedded.database.load_full().unwrap();
        format::remembered(&database).unwrap().0
    };
    for n in 0..2 * batch::SWEEP {
        send(&embedded, &format!("k{n}")).await;
    }
    clock.advance(WINDOW);
    send(&embedded, "first").await;
    assert_eq!(remembered(), batch::SWEEP as u64 + 1);
    send(&embedded, "second").await;
    assert_eq!(remembered(), 2);
    // Whether there is more is only seen by looking again; then it rests for a second.
    send(&embedded, "third").await;
    clock.advance(WINDOW);
    send(&embedded, "fourth").await;
    assert_eq!(remembered(), 1);
}

#[tokio::test]
async fn a_claim_opens_a_database_again_that_an_error_closed() {
    let (disk, clock) = (Disk::new(), ManualClock::at(NOON));
    let embedded = disk.embedded(&clock);
    disk.full.store(true, Ordering::SeqCst);
    let failed = embedded.accept(acceptance("k", "b", NOON)).await;
    assert!(matches!(failed, Err(StoreError::Ambiguous(_))));
    let refused = embedded.claim(&request("k")).await.unwrap_err();
    assert!(matches!(refused, StoreError::Refused(_)), "{refused}");
    disk.full.store(false, Ordering::SeqCst);
    clock.advance(Duration::from_secs(2));
    embedded.claim(&request("k")).await.unwrap();
}
