//! One event's whole life on remote backends: delivered, delivered again, looked at, forgotten, sent once
//! more.

use super::site::{Kind, Site};

async fn story(kind: Kind) {
    let site = Site::new(kind).await;
    let member = site.member(&site.direct(), "").await;
    let directory = member.directory.path();
    let check = site.run(directory, &["check"]).await;
    assert!(
        check.starts_with("Some(0)") && !check.contains("error"),
        "{kind:?}: {check}"
    );

    let first = member.deliver(&site.letter("l-1", "c-1")).await;
    assert_eq!((first.status, first.duplicate), (202, false), "{kind:?}");
    let again = member.deliver(&site.letter("l-1", "c-1")).await;
    assert_eq!((again.status, again.duplicate), (200, true), "{kind:?}");
    assert_eq!(first.body, again.body, "{kind:?}");
    assert_eq!(
        member.deliver(&site.order("o-1", "c-1")).await.status,
        202,
        "{kind:?}"
    );

    crate::world::until("the claim is settled", async || {
        site.state(directory, "letters/l-1").await.as_deref() == Some("accepted")
    })
    .await;
    let event = format!("{}/letters/l-1", site.tenant());
    let forgotten = site.run(directory, &["claims", "forget", &event]).await;
    assert!(forgotten.starts_with("Some(0)"), "{kind:?}: {forgotten}");
    assert_eq!(
        site.state(directory, "letters/l-1").await.as_deref(),
        Some("processing")
    );
    let second = member.deliver(&site.letter("l-1", "c-1")).await;
    assert_eq!((second.status, second.duplicate), (202, false), "{kind:?}");
    let again = member.deliver(&site.letter("l-1", "c-1")).await;
    assert_eq!((again.status, &again.body), (200, &second.body), "{kind:?}");
    assert!(member.gateway.terminate().await.expect("an end").success());

    let messages = site.messages().await;
    let told: Vec<_> = messages
        .iter()
        .map(|message| {
            (
                message.id.as_str(),
                message.head["generation"].as_u64().unwrap_or(0),
                message.is_flagged(),
            )
        })
        .collect();
    assert_eq!(
        told,
        [("l-1", 0, false), ("o-1", 0, false), ("l-1", 1, false)],
        "{kind:?}"
    );
    assert_eq!(messages[0].group, messages[2].group, "{kind:?}");
    assert_eq!(
        messages[0].body.as_bytes(),
        &site.letter("l-1", "c-1").body[..],
        "{kind:?}"
    );
}

#[tokio::test]
async fn an_event_is_delivered_known_forgotten_and_sent_once_more() {
    for kind in Kind::ALL {
        story(kind).await;
    }
}
