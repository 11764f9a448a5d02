//! Databases that cannot be used: never a smaller one, never an empty one, and never changed by the refusal.

use std::fs::{self, OpenOptions};
use std::path::{Path, PathBuf};

use hookgate_tests::gateway::Gateway;
use hookgate_tests::provider::Connection;
use insta::assert_snapshot;
use tempfile::TempDir;

use super::{SECRET, configured, said, serving};
use crate::world;

fn config() -> String {
    world::head() + &world::orders("acme", "orders", "SECRET")
}

/// A gateway that has accepted 20 orders.
async fn used() -> (TempDir, Gateway) {
    let directory = configured(&config());
    let gateway = serving(directory.path()).await;
    let mut connection = Connection::to(gateway.ingress);
    for number in 0..20 {
        let order = world::order("acme/orders", SECRET, &format!("o-{number}"), "c-1", "note");
        let answer = connection.deliver(&order).await.expect("an answer");
        assert_eq!(answer.status, 202, "{answer:?}");
    }
    (directory, gateway)
}

fn database(directory: &Path) -> PathBuf {
    directory.join("data/hookgate.redb")
}

/// The refusal of a database that was changed while nobody had it.
async fn refused(change: impl FnOnce(&Path)) -> String {
    let (directory, gateway) = used().await;
    gateway.terminate().await.expect("the gateway ends");
    let database = database(directory.path());
    change(&database);
    let before = contents(&database);
    let refusal = said(directory.path(), &["serve"]).await;
    let after = contents(&database);
    assert!(before == after, "the refusal changed the file");
    let again = said(directory.path(), &["serve"]).await;
    assert!(
        again.starts_with("$ hookgate serve\nexit code 1\n"),
        "the second time: {again}"
    );
    without_reason(&refusal)
}

/// The file without the header's flags, where an attempt at opening is noted.
fn contents(database: &Path) -> Option<Vec<u8>> {
    let mut bytes = fs::read(database).ok()?;
    if let Some(flags) = bytes.get_mut(9) {
        *flags = 0;
    }
    Some(bytes)
}

/// The database's own word for its damage depends on where its pages happened to lie.
fn without_reason(refusal: &str) -> String {
    match refusal.split_once(" is damaged: ") {
        Some((before, after)) => {
            let (_, hint) = after.split_once('\n').unwrap_or_default();
            format!("{before} is damaged: REASON\n{hint}")
        }
        None => refusal.to_owned(),
    }
}

fn flip(database: &Path, id: &str) {
    let mut bytes = fs::read(database).expect("the database is readable");
    let body = format!(r#""id":"{id}""#).into_bytes();
    // Pages that were given back may hold older copies.
    let size = body.len();
    let places = (0..bytes.len() - size).filter(|at| bytes[*at..at + size] == body[..]);
    for place in places.collect::<Vec<_>>() {
        bytes[place + 7] ^= 1;
    }
    fs::write(database, bytes).expect("the database is writable");
}

#[tokio::test]
async fn a_store_path_that_is_a_file_is_refused() {
    let directory = configured(&(config() + "\n[store]\npath = \"file\"\n"));
    fs::write(directory.path().join("file"), "not a directory").unwrap();
    assert_snapshot!(said(directory.path(), &["serve"]).await);
}

#[tokio::test]
async fn a_store_path_below_a_file_is_refused() {
    let directory = configured(&(config() + "\n[store]\npath = \"file/data\"\n"));
    fs::write(directory.path().join("file"), "not a directory").unwrap();
    assert_snapshot!(said(directory.path(), &["serve"]).await);
}

#[tokio::test]
async fn a_flipped_bit_in_a_message_is_found_at_the_start() {
    assert_snapshot!(refused(|database| flip(database, "o-7")).await);
}

#[tokio::test]
async fn a_flipped_bit_in_the_last_message_is_found_after_a_clean_stop() {
    assert_snapshot!(refused(|database| flip(database, "o-19")).await);
}

#[tokio::test]
async fn a_flipped_bit_in_the_last_message_is_found_after_a_kill() {
    let (directory, gateway) = used().await;
    gateway.kill().await.unwrap();
    flip(&database(directory.path()), "o-19");
    assert_snapshot!(said(directory.path(), &["serve"]).await);
}

#[tokio::test]
async fn a_truncated_database_is_refused() {
    let refusal = refused(|database| {
        let file = OpenOptions::new().write(true).open(database).unwrap();
        file.set_len(file.metadata().unwrap().len() / 2).unwrap();
    });
    assert_snapshot!(refusal.await);
}

#[tokio::test]
async fn a_file_that_is_no_database_is_refused() {
    let refusal = refused(|database| fs::write(database, "not a database\n").unwrap());
    assert_snapshot!(refusal.await);
}

#[tokio::test]
async fn an_emptied_database_is_refused() {
    assert_snapshot!(refused(|database| fs::write(database, "").unwrap()).await);
}

#[tokio::test]
async fn a_database_that_is_gone_is_refused() {
    assert_snapshot!(refused(|database| fs::remove_file(database).unwrap()).await);
}

#[tokio::test]
async fn another_format_is_refused() {
    let refusal = refused(|database| {
        let marker = database.with_file_name("FORMAT");
        fs::write(marker, "Hookgate embedded store and queue, format 2\n").unwrap();
    });
    assert_snapshot!(refusal.await);
}

#[tokio::test]
async fn a_second_process_is_refused_and_the_first_serves_on() {
    let (directory, gateway) = used().await;
    let refusal = said(directory.path(), &["serve"]).await;
    let order = world::order("acme/orders", SECRET, "after", "c-1", "");
    let answer = Connection::to(gateway.ingress)
        .deliver(&order)
        .await
        .unwrap();
    assert_eq!(answer.status, 202);
    assert_eq!(gateway.events().await.unwrap().len(), 21);
    assert_snapshot!(refusal);
}
