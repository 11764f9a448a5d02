//! What the queue has to be, how messages share batches, and what each failure is taken for.

use std::net::{Ipv4Addr, SocketAddr};
use std::time::Duration;

use aws_sdk_sqs::types::QueueAttributeName;
use hookgate::backend::Finding;
use hookgate::clock::{SharedClock, Span, SystemClock};
use hookgate::delivery::Message;
use hookgate::queue::sqs::SqsQueue;
use hookgate::queue::{EventQueue as _, QueueError, Retention, Sent};
use hookgate_backends::proxy::{Fault, FaultProxy, Plan, Protocol};

use super::bench::{FIFO, Fifo, queue, sqs, stand_in};
use super::dynamodb::told;
use crate::contract::{QueueBench as _, fresh, message};

const LEASE: Duration = Duration::from_secs(20);

/// A queue behind a proxy that breaks this.
async fn broken(plan: Plan) -> (FaultProxy, Fifo) {
    let at = SocketAddr::from((Ipv4Addr::LOCALHOST, stand_in().port()));
    let proxy = FaultProxy::start(at, Protocol::Http, plan).await.unwrap();
    let fifo = queue("events.fifo", &FIFO, &format!("http://{}", proxy.address())).await;
    (proxy, fifo)
}

fn lease() -> Span {
    let clock: SharedClock = std::sync::Arc::new(SystemClock);
    Span::start(&clock, LEASE)
}

async fn send(fifo: &Fifo, message: &Message) -> Result<Sent, QueueError> {
    fifo.queue.send(message, &lease()).await
}

/// Sends all at once.
async fn send_all(fifo: &Fifo, messages: &[Message]) -> Vec<Result<Sent, QueueError>> {
    let leases: Vec<_> = messages.iter().map(|_| lease()).collect();
    let sends = messages.iter().zip(&leases);
    let sends = sends.map(|(message, lease)| Box::pin(fifo.queue.send(message, lease)));
    let mut sends: Vec<_> = sends.map(|send| (send, None)).collect();
    std::future::poll_fn(|context| {
        for (send, sent) in &mut sends {
            if sent.is_none()
                && let std::task::Poll::Ready(ready) = send.as_mut().poll(context)
            {
                *sent = Some(ready);
            }
        }
        match sends.iter().all(|(_, sent)| sent.is_some()) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    })
    .await;
    sends.into_iter().filter_map(|(_, sent)| sent).collect()
}

fn messages(count: usize, size: usize) -> Vec<Message> {
    let name = fresh("batch");
    let body = "x".repeat(size);
    (0..count)
        .map(|n| message(&format!("{name}-{n}"), &format!("{name}-g{n}"), &body))
        .collect()
}

#[tokio::test]
async fn a_queue_with_dead_letters_tells_how_long_it_keeps_messages() {
    let fifo = sqs().await;
    let dead = fifo.client.create_queue().queue_name("dead.fifo");
    let dead = dead
        .attributes(QueueAttributeName::FifoQueue, "true")
        .attributes(QueueAttributeName::MessageRetentionPeriod, "1209600");
    let dead = dead.send().await.unwrap().queue_url.unwrap();
    let arn = fifo.client.get_queue_attributes().queue_url(dead);
    let arn = arn
        .attribute_names(QueueAttributeName::QueueArn)
        .send()
        .await
        .unwrap();
    let arn = arn.attributes.unwrap()[&QueueAttributeName::QueueArn].clone();
    let policy = format!(r#"{{"deadLetterTargetArn":"{arn}","maxReceiveCount":"3"}}"#);
    let set = fifo.client.set_queue_attributes().queue_url(&fifo.url);
    let set = set
        .attributes(QueueAttributeName::RedrivePolicy, policy)
        .attributes(QueueAttributeName::MessageRetentionPeriod, "345600");
    set.send().await.unwrap();
    let (facts, findings) = fifo.queue.check().await;
    assert_eq!(told(&findings), "");
    let day = Duration::from_hours(24);
    let kept = Retention {
        queue: 4 * day,
        dead_letters: Some(14 * day),
    };
    assert_eq!(facts.unwrap().retention, kept);
    assert!(
        fifo.receive_all().await.is_empty(),
        "checking sends nothing"
    );
}

#[tokio::test]
async fn queues_that_events_should_not_go_to_are_told() {
    let at = stand_in().endpoint();
    let mut all = Vec::new();
    for (name, attributes) in [
        ("standard", &[][..]),
        ("bare.fifo", &FIFO[..1]),
        (
            "odd.fifo",
            &[
                FIFO[0].clone(),
                (QueueAttributeName::ContentBasedDeduplication, "true"),
                (QueueAttributeName::DelaySeconds, "5"),
            ],
        ),
    ] {
        let fifo = queue(name, attributes, &at).await;
        let account = fifo.url.split('/').nth(3).unwrap();
        let told = told(&fifo.queue.check().await.1);
        all.push(told.replace(&at, "http://AT").replace(account, "ACCOUNT"));
    }
    insta::assert_snapshot!(all.join("\n\n"));
}

#[tokio::test]
async fn a_missing_queue_and_missing_permissions_are_told() {
    let mut all = Vec::new();
    for (operation, code) in [
        ("GetQueueAttributes", "com.amazonaws.sqs#QueueDoesNotExist"),
        ("GetQueueAttributes", "AccessDenied"),
        ("SendMessageBatch", "AccessDenied"),
        ("GetQueueAttributes", "ExpiredToken"),
        ("GetQueueAttributes", "InvalidClientTokenId"),
    ] {
        let (_proxy, fifo) = broken(Plan::always(Fault::aws(400, code)).on(operation)).await;
        let (_, findings) = fifo.queue.check().await;
        let errors: Vec<_> = findings.into_iter().filter(Finding::is_error).collect();
        all.push(told(&errors).replace(&fifo.url, "URL"));
    }
    insta::assert_snapshot!(all.join("\n\n"));
}

#[tokio::test]
async fn messages_that_come_together_share_batches_of_ten() {
    let (proxy, fifo) = broken(Plan::healthy()).await;
    let messages = messages(100, 100);
    let sent = send_all(&fifo, &messages).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    // The first goes alone, at once; the others fill what follows.
    let requests = proxy.requests();
    assert!((10..=14).contains(&requests), "{requests}");
    assert_eq!(fifo.receive_all().await.len(), 100);
}

#[tokio::test]
async fn a_batch_holds_no_more_than_a_mebibyte() {
    let (proxy, fifo) = broken(Plan::healthy()).await;
    let messages = messages(9, 300 * 1024);
    let sent = send_all(&fifo, &messages).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    assert!(
        proxy.requests() >= 3,
        "three to a batch: {}",
        proxy.requests()
    );
    assert_eq!(fifo.receive_all().await.len(), 9);
}

#[tokio::test]
async fn one_bad_message_of_a_batch_fails_alone() {
    let fifo = sqs().await;
    let mut messages = messages(6, 10);
    // What the gateway itself never lets through.
    messages[3].body = "\u{1}".into();
    let sent = send_all(&fifo, &messages).await;
    for (n, sent) in sent.iter().enumerate() {
        match (n, sent) {
            (3, Err(QueueError::Refused(why))) => {
                assert!(why.contains("InvalidMessageContents"), "{why}");
            }
            (3, other) => panic!("{other:?}"),
            (_, sent) => assert!(sent.is_ok(), "{sent:?}"),
        }
    }
    assert_eq!(fifo.receive_all().await.len(), 5);
}

#[tokio::test]
async fn a_batch_that_is_refused_whole_is_sent_one_by_one() {
    let refusal = Fault::aws(400, "com.amazonaws.sqs#InvalidParameterValue");
    let (proxy, fifo) = broken(Plan::script([refusal]).on("SendMessageBatch")).await;
    let messages = messages(6, 10);
    let sent = send_all(&fifo, &messages).await;
    assert!(sent.iter().all(Result::is_ok), "{sent:?}");
    assert_eq!(
        (proxy.fired().len(), proxy.requests()),
        (1, 7),
        "one whole, six alone"
    );
    assert_eq!(fifo.receive_all().await.len(), 6);
}

#[tokio::test]
async fn throttles_are_busy_refusals_definite_and_the_rest_is_not() {
    let (proxy, fifo) = broken(Plan::healthy()).await;
    let kind = |sent: &Result<Sent, QueueError>| match sent {
        Ok(_) => "sent",
        Err(QueueError::Refused(_)) => "refused",
        Err(QueueError::Busy(_)) => "busy",
        Err(QueueError::Ambiguous(_)) => "ambiguous",
        Err(QueueError::LeaseEnded) => "lease ended",
    };
    for (fault, expected) in [
        (
            Fault::aws(400, "com.amazonaws.sqs#RequestThrottled"),
            "busy",
        ),
        (Fault::aws(400, "KmsThrottled"), "busy"),
        (Fault::aws(400, "AccessDenied"), "refused"),
        (
            Fault::aws(400, "com.amazonaws.sqs#QueueDoesNotExist"),
            "refused",
        ),
        (Fault::aws(500, "InternalFailure"), "ambiguous"),
        (Fault::aws(503, "ServiceUnavailable"), "ambiguous"),
        (Fault::CutBefore, "ambiguous"),
        (Fault::CutAfter, "ambiguous"),
        (Fault::None, "sent"),
    ] {
        proxy.set(Plan::script([fault.clone()]).on("SendMessageBatch"));
        let sent = send(&fifo, &messages(1, 10)[0]).await;
        assert_eq!(kind(&sent), expected, "{fault:?}: {sent:?}");
    }
}

#[tokio::test]
async fn a_message_whose_confirmation_is_lost_is_there_once_when_it_is_sent_again() {
    let (proxy, fifo) = broken(Plan::script([Fault::CutAfter]).on("SendMessageBatch")).await;
    let messages = messages(5, 10);
    let mut lost = 0;
    for (message, sent) in messages.iter().zip(send_all(&fifo, &messages).await) {
        if sent.is_err() {
            lost += 1;
            assert_eq!(send(&fifo, message).await.unwrap(), Sent::Held);
        }
    }
    assert!(lost > 0 && !proxy.fired().is_empty());
    assert_eq!(fifo.receive_all().await.len(), 5);
}

#[tokio::test]
async fn an_owner_whose_lease_ends_while_its_batch_waits_does_not_send() {
    let fifo = sqs().await;
    let clock: SharedClock = hookgate::clock::ManualClock::at(1_000_000);
    let ended = Span::start(&clock, Duration::ZERO);
    let manual = hookgate::clock::ManualClock::at(1_000_000);
    let shared: SharedClock = std::sync::Arc::<hookgate::clock::ManualClock>::clone(&manual);
    let late = Span::start(&shared, LEASE);
    manual.advance(LEASE + Duration::from_millis(1));
    let message = &messages(1, 10)[0];
    let refused = fifo.queue.send(message, &late).await;
    assert!(
        matches!(refused, Err(QueueError::LeaseEnded)),
        "{refused:?}"
    );
    assert!(
        fifo.queue.send(message, &ended).await.is_ok(),
        "it still runs at its last moment"
    );
}

#[tokio::test]
async fn attributes_and_text_come_out_as_they_went_in() {
    let fifo = sqs().await;
    let id = fresh("text");
    let mut message = message(&id, &id, "größe \u{1f980} \r\n\t end");
    message
        .attributes
        .push(("hookgate".into(), r#"{"v":1,"größe":"🦀"}"#.into()));
    message
        .attributes
        .push(("ce-type".into(), "github.push".into()));
    // Digests of body and attributes are compared with what SQS understood.
    send(&fifo, &message).await.unwrap();
    message.attributes.sort();
    assert_eq!(fifo.held(&[&id]).await, [message]);
}

#[tokio::test]
async fn the_depth_counts_what_is_in_flight() {
    let fifo = sqs().await;
    let sent = send_all(&fifo, &messages(7, 10)).await;
    assert_eq!(sent.len(), 7);
    let receive = fifo
        .client
        .receive_message()
        .queue_url(&fifo.url)
        .max_number_of_messages(3);
    let taken = receive.send().await.unwrap().messages.unwrap().len() as u64;
    let depth = fifo.queue.depth().await.unwrap();
    assert_eq!((depth.total(), depth.in_flight), (7, taken));
}

#[tokio::test]
async fn a_queue_that_never_answers_is_not_waited_for_for_ever() {
    let hasty = Duration::from_millis(50);
    let (proxy, fifo) = broken(Plan::always(Fault::Blackhole)).await;
    let at = format!("http://{}", proxy.address());
    let shared = hookgate::aws::configuration(&super::bench::at(&at), hasty).await;
    let credentials = aws_sdk_sqs::config::Credentials::new("test", "secret", None, None, "test");
    let credentials = aws_sdk_sqs::config::SharedCredentialsProvider::new(credentials);
    let shared = shared
        .into_builder()
        .credentials_provider(credentials)
        .build();
    let mut settings = super::bench::settings(&at, &fifo.url);
    settings.timeout = hasty;
    let queue = SqsQueue::new(&shared, &settings, super::bench::compared());
    let depth = queue.depth().await;
    assert!(matches!(depth, Err(QueueError::Ambiguous(_))), "{depth:?}");
    let (facts, findings) = queue.check().await;
    assert_eq!(facts, None);
    assert!(findings.iter().all(|found| found.passes), "{findings:?}");
    let sent = queue.send(&messages(1, 10)[0], &lease()).await;
    assert!(matches!(sent, Err(QueueError::Ambiguous(_))), "{sent:?}");
}

#[tokio::test]
async fn a_taker_sends_to_the_recorded_queue_while_that_exists() {
    let fifo = sqs().await;
    let create = fifo.client.create_queue().queue_name("before.fifo");
    let create = create.attributes(QueueAttributeName::FifoQueue, "true");
    let before = create.send().await.unwrap().queue_url.unwrap();
    let id = fresh("recorded");
    let copy = message(&id, &id, "body");
    let sent = fifo.queue.send_recorded(&before, &copy, &lease()).await;
    assert_eq!(sent.unwrap(), Sent::Held);
    assert!(fifo.receive_all().await.is_empty());
    let received = fifo
        .client
        .receive_message()
        .queue_url(&before)
        .send()
        .await
        .unwrap();
    assert_eq!(received.messages.unwrap().len(), 1);
    let delete = fifo.client.delete_queue().queue_url(&before);
    delete.send().await.unwrap();
    for gone in [before.as_str(), "memory"] {
        let id = fresh("gone");
        let copy = message(&id, &id, "body");
        let sent = fifo.queue.send_recorded(gone, &copy, &lease()).await;
        assert_eq!(sent.unwrap(), Sent::Held);
        assert_eq!(fifo.held(&[&id]).await, [copy]);
    }
}

#[tokio::test]
async fn a_recorded_queue_that_may_no_longer_be_sent_to_keeps_no_event() {
    let denied = Fault::aws(400, "AccessDenied");
    let (proxy, fifo) = broken(Plan::script([denied]).on("SendMessageBatch")).await;
    let id = fresh("denied");
    let copy = message(&id, &id, "body");
    let before = fifo.url.replace("events.fifo", "before.fifo");
    let sent = fifo.queue.send_recorded(&before, &copy, &lease()).await;
    assert_eq!(sent.unwrap(), Sent::Held);
    assert_eq!(proxy.fired().len(), 1, "the recorded one came first");
    assert_eq!(fifo.held(&[&id]).await, [copy]);
}
