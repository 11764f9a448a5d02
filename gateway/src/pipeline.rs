//! The one story: authenticate -> join -> claim -> enqueue -> answer -> settle.
//!
//! From the claim on, a delivery's work owns its memory and its place in the drain count. A connection does it
//! while it waits, and its end cancels nothing: the work goes on in a task of its own. Generic over the seams:
//! this file knows no plugin's runtime, no backend and no HTTP server.

mod detached;
mod running;
mod timing;
mod unstable;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::ArcSwap;
use data_encoding::HEXLOWER;
use tokio::time::{Instant, timeout};
use tokio_util::task::TaskTracker;

use crate::backend::{Accept, Acceptance, Accepted, Backend, Pair};
use crate::clock::{SharedClock, Span};
use crate::crypto;
use crate::delivery::message::{Envelope, MAX_MESSAGE, is_withheld};
use crate::delivery::{
    Delivery, Event, EventId, EventKey, Message, MessageError, RejectKind, Response, Verdict,
};
use crate::failpoint;
use crate::keys::{FetchError, Wanted};
use crate::outcome::Outcome;
use crate::plugin::Fault;
use crate::pressure::{self, Pressure};
use crate::queue::{EventQueue, QueueError, Sent};
use crate::store::{
    Claim, ClaimRequest, ClaimStore, Claimed, Grant, Lease, RECORD_VERSION, Release, Settlement,
    State, StoreError, Token, millis, whole_seconds_up,
};
use crate::telemetry::{SharedTelemetry, Step};
use crate::tenants::{
    ClaimOutage, InFlightPolicy, NoEventId, Ready, SameIdOtherBody, Source, Tenants,
};
use detached::Detached;
use running::{Entered, Place, Progress, Running};
use timing::{Backoff, Late};
use unstable::Recent;

pub use timing::Timing;

/// What a delivery holds until its task ends, such as its share of the memory budget.
pub type Hold = Box<dyn Send + Sync>;

/// The gateway: everything that deliveries share.
pub struct Gateway<B> {
    /// The live tenants.
    pub tenants: ArcSwap<Tenants>,
    /// The claim store and the queue.
    pub backend: B,
    /// Time.
    pub clock: SharedClock,
    /// Metrics.
    pub telemetry: SharedTelemetry,
    /// Bounds.
    pub timing: Timing,
    /// The largest message that the queue takes, in bytes.
    pub max_message: usize,
    /// Whether the queue takes new events.
    pub pressure: Pressure,
    /// How long claims live at least where that follows the queue, in ms.
    pub retained: AtomicU64,
    recent: Recent,
    running: Running,
    /// Whether the queue confirmed the last message that it was sent.
    queue_answers: AtomicBool,
    /// Deliveries' work, settling included.
    tasks: TaskTracker,
}

/// An authenticated event on its way into the queue.
struct Work {
    source: Arc<Source>,
    delivery: Arc<Delivery>,
    event: Event,
    key: EventKey,
    claim_key: String,
    group: String,
    body_sha256: String,
    response: Response,
    ttl: Duration,
    deadline: Instant,
    _hold: Hold,
}

/// When senders that are refused under pressure come again, in seconds: spread, so that they do not all come
/// at once.
const RETRY_AFTER: std::ops::RangeInclusive<u64> = 5..=15;

/// How many keys by URL one delivery may have fetched.
const MAX_FETCHES: u32 = 3;

/// A claim that the delivery did not get.
enum Unclaimed {
    /// The delivery is over.
    Ended(Outcome),
    /// The store did not do it.
    Outage(StoreError),
}

/// A message that the queue did not confirm.
struct Unsent {
    /// What the sender is told.
    outcome: Outcome,
    /// Whether every attempt was certainly without effect.
    definite: bool,
}

impl<B: Backend> Gateway<B> {
    /// A gateway without tenants yet.
    pub fn new(backend: B, clock: SharedClock, telemetry: SharedTelemetry, timing: Timing) -> Self {
        let limits = pressure::Limits::default();
        Self {
            pressure: Pressure::new(limits, Arc::clone(&clock), Arc::clone(&telemetry)),
            retained: AtomicU64::new(0),
            recent: Recent::default(),
            tenants: ArcSwap::default(),
            backend,
            clock,
            timing,
            max_message: MAX_MESSAGE,
            running: Running::new(telemetry.running().clone()),
            telemetry,
            queue_answers: AtomicBool::new(true),
            tasks: TaskTracker::new(),
        }
    }

    /// Takes a delivery to its outcome. Cancel safe: once its event is claimed, the work goes on.
    pub async fn deliver(
        self: &Arc<Self>,
        source: &Arc<Source>,
        delivery: Arc<Delivery>,
        arrived: Instant,
        hold: Hold,
    ) -> Outcome {
        let Ok(ready) = &source.state else {
            return Outcome::Unavailable;
        };
        let deadline = arrived + source.policy.answer_deadline;
        let event = match self.authenticate(source, ready, &delivery, deadline).await {
            Ok(event) => event,
            Err(outcome) => return outcome,
        };
        match self.identify(source, ready, delivery, event, arrived, hold) {
            Ok(work) => self.join(work).await,
            Err(outcome) => outcome,
        }
    }

    /// Waits until every delivery's task has ended, settling included, or `at_most` has passed.
    pub async fn drain(&self, at_most: Duration) -> bool {
        self.tasks.close();
        timeout(at_most, self.tasks.wait()).await.is_ok()
    }

    /// Asks the plugin, and holds the signed time against the source's tolerance.
    async fn authenticate(
        &self,
        source: &Source,
        ready: &Ready,
        delivery: &Arc<Delivery>,
        deadline: Instant,
    ) -> Result<Event, Outcome> {
        let started = Instant::now();
        let mut handled = ready.plugin.handle(delivery, &ready.setup);
        let mut fetches = MAX_FETCHES;
        while let (Err(Fault::KeyNeeded(wanted)), 1..) = (&handled, fetches) {
            fetches -= 1;
            self.fetch(ready, wanted.clone(), deadline).await?;
            handled = ready.plugin.handle(delivery, &ready.setup);
        }
        self.telemetry
            .step(&source.metrics, Step::Authenticate, started.elapsed());
        let handled =
            handled.map_err(|fault| self.plugin_failed(source, ready, delivery, &fault))?;
        if let Some((secret, place)) = &handled.key {
            self.telemetry.key_matched(&source.metrics, secret, *place);
        }
        match handled.verdict {
            Verdict::Respond(response) => Err(match handled.confirm {
                Some(url) => {
                    self.confirm(source, ready, delivery, &url, response, deadline)
                        .await
                }
                None => Outcome::Handshake(response),
            }),
            Verdict::Reject(rejection) => {
                Err(self.reject(source, delivery, rejection.kind, &rejection.reason))
            }
            Verdict::Accept(event) => match event.signed_at {
                Some(signed_at) if !self.is_timely(source, delivery, signed_at) => {
                    Err(self.reject(source, delivery, RejectKind::Stale, "signed time"))
                }
                _ => Ok(event),
            },
        }
    }

    /// Has a key by URL fetched that the plugin needs. Its own time is bounded too: this is the provider's.
    #[cold]
    async fn fetch(&self, ready: &Ready, wanted: Wanted, deadline: Instant) -> Result<(), Outcome> {
        let Some(remote) = &ready.setup.remote else {
            return Ok(());
        };
        let fetched = tokio::time::timeout_at(deadline, Box::pin(remote.fetch(wanted))).await;
        fetched.map_err(|_| Outcome::Unavailable)
    }

    /// Does what a handshake demands before it is answered.
    #[cold]
    async fn confirm(
        &self,
        source: &Source,
        ready: &Ready,
        delivery: &Delivery,
        url: &str,
        response: Response,
        deadline: Instant,
    ) -> Outcome {
        let Some(remote) = &ready.setup.remote else {
            return Outcome::Unavailable;
        };
        let (tenant, source) = (&source.tenant, &source.name);
        let late = |_| FetchError::Unavailable("not before the delivery had to be answered".into());
        let confirmed = tokio::time::timeout_at(deadline, Box::pin(remote.confirm(url))).await;
        match confirmed.map_err(late).and_then(|confirmed| confirmed) {
            Ok(()) => {
                tracing::info!(%tenant, %source, delivery = %delivery.id, "handshake confirmed");
                Outcome::Handshake(response)
            }
            Err(error) => {
                tracing::warn!(%tenant, %source, delivery = %delivery.id, %error, "handshake not confirmed");
                Outcome::Unavailable
            }
        }
    }

    fn is_timely(&self, source: &Source, delivery: &Delivery, signed_at: u64) -> bool {
        let age = i128::from(delivery.received_at) - i128::from(signed_at);
        self.telemetry
            .signed_age(i64::try_from(age).unwrap_or(i64::MAX));
        let bound = |duration| i128::from(millis(duration));
        (-bound(source.policy.max_future)..=bound(source.policy.max_age)).contains(&age)
    }

    fn reject(
        &self,
        source: &Source,
        delivery: &Delivery,
        kind: RejectKind,
        reason: &str,
    ) -> Outcome {
        self.telemetry.rejected(&source.metrics, kind.as_str());
        let (tenant, source) = (&source.tenant, &source.name);
        tracing::info!(%tenant, %source, delivery = %delivery.id, kind = kind.as_str(), reason, "rejected");
        Outcome::Rejected(kind)
    }

    fn plugin_failed(
        &self,
        source: &Source,
        ready: &Ready,
        delivery: &Delivery,
        fault: &Fault,
    ) -> Outcome {
        let plugin = &ready.plugin.manifest().name;
        self.telemetry.plugin_fault(plugin, fault.kind());
        let (tenant, source) = (&source.tenant, &source.name);
        tracing::warn!(%tenant, %source, delivery = %delivery.id, %plugin, %fault, "plugin failed");
        if fault.is_temporary() {
            Outcome::PluginSlow
        } else {
            Outcome::PluginFault
        }
    }

    /// Names the event, and settles all that does not depend on what is known of it.
    fn identify(
        &self,
        source: &Arc<Source>,
        ready: &Ready,
        delivery: Arc<Delivery>,
        event: Event,
        arrived: Instant,
        hold: Hold,
    ) -> Result<Work, Outcome> {
        let policy = &source.policy;
        let digest = crypto::sha256(&delivery.body);
        let (id, distinct, ttl) = match event.id.as_deref().and_then(EventId::from_provider) {
            Some(id) => {
                let distinct = policy.same_id_other_body == SameIdOtherBody::Distinct;
                let mut ttl = policy.claim_ttl;
                if policy.claim_ttl_follows_queue {
                    let retained = self.retained.load(Ordering::Relaxed);
                    ttl = ttl.max(Duration::from_millis(retained));
                }
                (id, distinct.then_some(digest), ttl)
            }
            None if policy.no_event_id == NoEventId::Hash => (
                EventId::of_content(&delivery.body, digest, &event.extra),
                None,
                policy.content_ttl,
            ),
            None => {
                return Err(self.reject(source, &delivery, RejectKind::NoEventId, "no event id"));
            }
        };
        let key = EventKey::new(source.tenant.clone(), source.name.clone(), id, distinct);
        let status = ready.plugin.manifest().accepted_status;
        let response = event.response.clone();
        Ok(Work {
            source: Arc::clone(source),
            claim_key: key.claim_key(),
            group: key.group_id(policy.ordering, event.ordering_key.as_deref()),
            body_sha256: HEXLOWER.encode(&digest),
            response: response.unwrap_or_else(|| default_response(&key, &delivery, status)),
            ttl,
            deadline: arrived + policy.answer_deadline,
            delivery,
            event,
            key,
            _hold: hold,
        })
    }

    /// Shares the outcome of a delivery of the same event that is at work here, or begins the work.
    async fn join(self: &Arc<Self>, work: Work) -> Outcome {
        let deadline = work.deadline;
        match self.running.enter(&work.claim_key, &work.body_sha256) {
            Entered::Follower { outcome, same_body } => {
                if !same_body {
                    self.telemetry.other_body(&work.source.metrics);
                }
                // Not held while it waits: a flood of copies must not hold a body each.
                drop(work);
                match outcome.by(deadline).await {
                    Some(Progress::Ended(outcome)) => outcome.shared(),
                    Some(Progress::Working | Progress::Waiting) => Outcome::InFlight,
                    None => Outcome::Unavailable,
                }
            }
            Entered::Leader { place, outcome } => {
                let gateway = Arc::clone(self);
                let work = async move { gateway.work(work, &place).await };
                let mut work = Detached::new(self.tasks.track_future(work));
                let mut outcome = std::pin::pin!(outcome.by(deadline));
                let outcome = tokio::select! {
                    // The work first: mostly it is over with its first poll, and nothing was waited for.
                    biased;
                    () = &mut work => outcome.await,
                    outcome = &mut outcome => outcome,
                };
                match outcome {
                    Some(Progress::Ended(outcome)) => outcome,
                    Some(Progress::Waiting) => Outcome::InFlight,
                    // Its task goes on: the provider's next attempt finds what came of it.
                    Some(Progress::Working) | None => Outcome::Unavailable,
                }
            }
        }
    }

    async fn work(&self, work: Work, place: &Place) {
        match self.backend.pair() {
            Pair::Fused(fused) => {
                let outcome = self.accept(fused, &work).await;
                self.watch_ids(&work, &outcome);
                place.publish(outcome);
            }
            Pair::Split(store, queue) => self.claim_and_send(store, queue, work, place).await,
        }
    }

    /// Ids that change with each retry make a new event of each: all that shows is one body under two ids.
    fn watch_ids(&self, work: &Work, outcome: &Outcome) {
        let is_new = matches!(outcome, Outcome::Accepted(_)) && work.event.id.is_some();
        let (tenant, source) = (&work.source.tenant, &work.source.name);
        let (of, now) = ((tenant.as_str(), source.as_str()), self.clock.wall_ms());
        let (body, id) = (&work.body_sha256, &work.claim_key);
        if is_new && self.recent.is_unstable(of, body, id, now) {
            self.telemetry.unstable_id(&work.source.metrics);
            tracing::warn!(%tenant, %source, delivery = %work.delivery.id, "known body, other id");
        }
    }

    /// Claim and message in one transaction.
    async fn accept(&self, fused: &B::Fused, work: &Work) -> Outcome {
        let started = Instant::now();
        let mut grant = work.first_grant(fused.queue_name(), self.clock.wall_ms());
        let mut closes = None;
        // An open record is found at most once: closing it is part of the transaction that follows.
        let outcome = loop {
            let late = self.is_late(&grant, Duration::ZERO);
            let message = match self.message(work, &grant, late) {
                Ok(message) => message,
                Err(outcome) => break outcome,
            };
            let claim = self.accepted_claim(work, &grant, Token::new());
            let key = work.claim_key.clone();
            match fused
                .accept(Acceptance {
                    key,
                    claim,
                    message,
                    closes,
                })
                .await
            {
                Ok(Accepted::New) => break Outcome::Accepted(work.response.clone()),
                Ok(Accepted::Duplicate(claim))
                    if closes.is_none() && self.redelivers(work, &claim) =>
                {
                    match fused.forget(&work.claim_key, claim.generation).await {
                        Ok(_) => {}
                        Err(error) => break store_failed(work, &error),
                    }
                }
                Ok(Accepted::Duplicate(claim)) => break self.duplicate(work, *claim),
                Ok(Accepted::Open(claim)) => {
                    closes = Some(claim.token);
                    grant = Grant {
                        generation: claim.generation,
                        group: claim.group,
                        queue: claim.queue,
                        first_at: claim.first_at,
                        taken_over: true,
                    };
                }
                Err(error) => break store_failed(work, &error),
            }
        };
        self.telemetry
            .step(&work.source.metrics, Step::Accept, started.elapsed());
        outcome
    }

    /// Claims, sends, answers, and settles behind the answer.
    async fn claim_and_send(&self, store: &B::Store, queue: &B::Queue, work: Work, place: &Place) {
        if let Err(outcome) = self.admit(store, &work).await {
            return place.publish(outcome);
        }
        failpoint::here(failpoint::BEFORE_CLAIM);
        let lease = match self.claim(store, queue.name(), &work, place).await {
            Ok(lease) => lease,
            Err(Unclaimed::Ended(outcome)) => return place.publish(outcome),
            Err(Unclaimed::Outage(error))
                if work.source.policy.claim_outage == ClaimOutage::Forward =>
            {
                self.forward(queue.name(), &work, &error)
            }
            Err(Unclaimed::Outage(error)) => return place.publish(store_failed(&work, &error)),
        };
        failpoint::here(failpoint::AFTER_CLAIM);
        match self.enqueue(queue, &work, &lease).await {
            Ok(()) => {
                failpoint::here(failpoint::AFTER_SEND);
                let outcome = Outcome::Accepted(work.response.clone());
                self.watch_ids(&work, &outcome);
                place.publish(outcome);
                failpoint::here(failpoint::BEFORE_SETTLE);
                let claim = self.accepted_claim(&work, &lease.grant, lease.token);
                let key = lease.key;
                let source = Arc::clone(&work.source);
                // The body and its share of the budget: settling may take as long as an outage.
                drop(work);
                // Until it is settled, the place in the running table answers duplicates.
                self.settle(store, &source, Settlement { key, claim }).await;
                failpoint::here(failpoint::AFTER_SETTLE);
            }
            Err(Unsent { outcome, definite }) => {
                failpoint::here(failpoint::BEFORE_RELEASE);
                self.release(store, lease, definite).await;
                place.publish(outcome);
            }
        }
    }

    /// Under pressure the store is only read: what is known already is answered or finished, and nothing new
    /// is begun.
    async fn admit(&self, store: &B::Store, work: &Work) -> Result<(), Outcome> {
        if self.pressure.takes(&work.source.tenant) {
            return Ok(());
        }
        let looked = timeout(self.timing.claim_timeout, store.look(&work.claim_key)).await;
        let now = self.clock.wall_ms();
        match looked {
            Ok(Ok(Some(claim))) if claim.state == State::Accepted => {
                Err(self.duplicate(work, claim))
            }
            Ok(Ok(Some(claim)))
                if claim.lease_left(now).is_some()
                    || now < claim.first_at + millis(self.timing.window) =>
            {
                Ok(())
            }
            Ok(Ok(_)) => Err(Outcome::Overloaded {
                retry_after: fastrand::u64(RETRY_AFTER),
            }),
            Ok(Err(error)) => Err(store_failed(work, &error)),
            Err(_) => Err(Outcome::Unavailable),
        }
    }

    /// Leave to send without a claim: the source prefers that to waiting for the store.
    fn forward(&self, queue: &str, work: &Work, error: &StoreError) -> Lease {
        self.telemetry.unclaimed(&work.source.metrics);
        let (tenant, source) = (&work.source.tenant, &work.source.name);
        tracing::warn!(%tenant, %source, delivery = %work.delivery.id, %error, "sent without a claim");
        let mut grant = work.first_grant(queue, self.clock.wall_ms());
        grant.taken_over = true;
        Lease {
            key: work.claim_key.clone(),
            token: Token::new(),
            grant,
            span: Span::start(&self.clock, work.source.policy.lease),
            is_claimed: false,
        }
    }

    /// Whether a delivery of an accepted event asks for one more message.
    fn redelivers(&self, work: &Work, claim: &Claim) -> bool {
        let policy = &work.source.policy;
        let (Some(after), Some(accepted_at)) = (policy.redelivery_after, claim.accepted_at) else {
            return false;
        };
        let redelivers = self.clock.wall_ms() > accepted_at.saturating_add(millis(after));
        if redelivers {
            self.telemetry.redelivered(&work.source.metrics);
            let (tenant, source) = (&work.source.tenant, &work.source.name);
            tracing::info!(%tenant, %source, delivery = %work.delivery.id, "redelivered");
        }
        redelivers
    }

    /// Becomes the owner, or finds out whose the event is.
    async fn claim(
        &self,
        store: &B::Store,
        queue: &str,
        work: &Work,
        place: &Place,
    ) -> Result<Lease, Unclaimed> {
        let started = Instant::now();
        let gives_up = work.waits_until(work.source.policy.claim_outage == ClaimOutage::Forward);
        let mut reopened = false;
        let mut request = ClaimRequest {
            key: work.claim_key.clone(),
            token: Token::new(),
            lease: work.source.policy.lease,
            group: work.group.clone(),
            queue: queue.to_owned(),
            body_sha256: work.body_sha256.clone(),
            ttl: work.ttl,
            take_over: None,
        };
        let mut pause = Backoff::new(self.timing.backoff);
        loop {
            // The lease counts from before its claim is sent; a call that is sent again starts it anew.
            let span = Span::start(&self.clock, request.lease);
            let claimed = timeout(self.timing.claim_timeout, store.claim(&request)).await;
            match claimed.unwrap_or_else(|_| Err(StoreError::Ambiguous("no answer in time".into())))
            {
                Ok(Claimed::Owner(grant)) => {
                    place.works();
                    self.telemetry
                        .step(&work.source.metrics, Step::Claim, started.elapsed());
                    return Ok(Lease {
                        key: request.key,
                        token: request.token,
                        grant,
                        span,
                        is_claimed: true,
                    });
                }
                Ok(Claimed::Duplicate(claim)) if !reopened && self.redelivers(work, &claim) => {
                    reopened = true;
                    let forgotten = store.forget(&work.claim_key, claim.generation);
                    let forgotten = timeout(self.timing.claim_timeout, forgotten).await;
                    // Where nobody knows, the next claim finds out.
                    if let Ok(Err(error)) = forgotten {
                        return Err(Unclaimed::Outage(error));
                    }
                }
                Ok(Claimed::Duplicate(claim)) => {
                    return Err(Unclaimed::Ended(self.duplicate(work, *claim)));
                }
                Ok(Claimed::InFlight { owner, .. }) => {
                    place.waits();
                    let takes_over = self.takes_over(work);
                    match pause.before(work.waits_until(takes_over)).await {
                        Ok(()) => {}
                        Err(Late) if takes_over => request.take_over = Some(owner),
                        Err(Late) => return Err(Unclaimed::Ended(Outcome::InFlight)),
                    }
                }
                Err(error @ StoreError::Refused(_)) => return Err(Unclaimed::Outage(error)),
                // Busy, or perhaps applied: then the same token meets its own write.
                Err(error) => {
                    if pause.before(gives_up).await.is_err() {
                        return Err(Unclaimed::Outage(error));
                    }
                }
            }
        }
    }

    /// Whether a delivery may take a claim over whose lease runs. Not while the queue is unhealthy: the owner
    /// may be waiting for it, and one more sender helps nobody.
    fn takes_over(&self, work: &Work) -> bool {
        work.source.policy.in_flight == InFlightPolicy::TakeOver
            && self.queue_answers.load(Ordering::Relaxed)
    }

    /// Sends until the queue confirms, with the same ids each time. An ambiguous attempt is followed by
    /// another, also behind the sender's 503, while the lease runs.
    async fn enqueue(&self, queue: &B::Queue, work: &Work, lease: &Lease) -> Result<(), Unsent> {
        let started = Instant::now();
        let mut definite = true;
        let mut pause = Backoff::new(self.timing.backoff);
        loop {
            // Made for each attempt: meanwhile the broker may forget what an earlier owner sent.
            let late = !lease.is_claimed || self.is_late(&lease.grant, lease.span.left());
            let message = self.message(work, &lease.grant, late);
            let message = message.map_err(|outcome| Unsent { outcome, definite })?;
            failpoint::here(failpoint::BEFORE_SEND);
            let Err(error) = self.send(queue, &message, lease).await else {
                self.telemetry
                    .step(&work.source.metrics, Step::Enqueue, started.elapsed());
                return Ok(());
            };
            let (tenant, source) = (&work.source.tenant, &work.source.name);
            tracing::warn!(%tenant, %source, delivery = %work.delivery.id, %error, "enqueue failed");
            definite &= error.is_definite();
            let ends = match error {
                // Once anything may have been sent, the lease alone ends the attempts.
                QueueError::Busy(_) => definite && Instant::now() >= work.deadline,
                error => error.is_definite(),
            };
            if ends {
                let outcome = Outcome::Unavailable;
                return Err(Unsent { outcome, definite });
            }
            pause.wait().await;
        }
    }

    /// One attempt, if the lease runs: the loop ends with it, whatever the queue does.
    async fn send(
        &self,
        queue: &B::Queue,
        message: &Message,
        lease: &Lease,
    ) -> Result<Sent, QueueError> {
        if !lease.span.is_running() {
            return Err(QueueError::LeaseEnded);
        }
        let started = Instant::now();
        let sent = timeout(
            self.timing.enqueue_timeout,
            queue.send_recorded(&lease.grant.queue, message, &lease.span),
        )
        .await
        .unwrap_or_else(|_| Err(QueueError::Ambiguous("no answer in time".into())));
        if !matches!(sent, Err(QueueError::LeaseEnded)) {
            self.queue_answers.store(sent.is_ok(), Ordering::Relaxed);
            let is_throttled = matches!(sent, Err(QueueError::Busy(_)));
            self.pressure.sent(started.elapsed(), is_throttled);
        }
        sent
    }

    /// Records that the message is in the queue, for as long as it takes within the bound.
    async fn settle(&self, store: &B::Store, source: &Source, settlement: Settlement) {
        let started = Instant::now();
        let mut pause = Backoff::new(self.timing.backoff);
        while started.elapsed() < self.timing.settle_for {
            let settled = timeout(self.timing.claim_timeout, store.settle(&settlement)).await;
            if matches!(settled, Ok(Ok(()))) {
                self.telemetry
                    .step(&source.metrics, Step::Settle, started.elapsed());
                return;
            }
            pause.wait().await;
        }
        self.telemetry.unsettled();
        tracing::error!(
            key = settlement.key,
            "an accepted event could not be settled"
        );
    }

    /// Gives a claim up after a failure; deletes it only where nothing can have been sent.
    async fn release(&self, store: &B::Store, lease: Lease, definite: bool) {
        let untouched = definite && !lease.grant.taken_over;
        let how = if untouched {
            Release::Delete
        } else {
            Release::EndLease
        };
        let released = store.release(&lease.key, lease.token, how);
        // What is not released lapses by itself.
        let _ = timeout(self.timing.claim_timeout, released).await;
    }

    fn message(&self, work: &Work, grant: &Grant, is_late: bool) -> Result<Message, Outcome> {
        let message = work.envelope(grant, is_late).message();
        match message.check(self.max_message) {
            Ok(()) => Ok(message),
            Err(error) => {
                let (tenant, source) = (&work.source.tenant, &work.source.name);
                tracing::warn!(%tenant, %source, delivery = %work.delivery.id, %error, "not sent");
                Err(match error {
                    MessageError::TooLarge { .. } => Outcome::TooLarge,
                    MessageError::Invalid { .. } => Outcome::PluginFault,
                })
            }
        }
    }

    /// Whether a first message of the generation may be older than the broker's memory when this one is
    /// signed: an owner may be stopped until just before its lease ends, so the lease's rest counts too, and
    /// the first claim's time may be by another clock.
    fn is_late(&self, grant: &Grant, lease_left: Duration) -> bool {
        let age = Duration::from_millis(self.clock.wall_ms().saturating_sub(grant.first_at));
        age + lease_left + self.timing.enqueue_timeout + 2 * self.timing.skew >= self.timing.window
    }

    fn accepted_claim(&self, work: &Work, grant: &Grant, token: Token) -> Claim {
        let now = self.clock.wall_ms();
        Claim {
            version: RECORD_VERSION,
            state: State::Accepted,
            token,
            lease_until: 0,
            first_at: grant.first_at,
            accepted_at: Some(now),
            generation: grant.generation,
            group: grant.group.clone(),
            queue: grant.queue.clone(),
            body_sha256: work.body_sha256.clone(),
            response: Some(work.response.clone()),
            expires_at: whole_seconds_up(now + millis(work.ttl)),
        }
    }

    fn duplicate(&self, work: &Work, claim: Claim) -> Outcome {
        if claim.body_sha256 != work.body_sha256 {
            self.telemetry.other_body(&work.source.metrics);
            let (tenant, source) = (&work.source.tenant, &work.source.name);
            tracing::warn!(%tenant, %source, delivery = %work.delivery.id, "known id, other body");
        }
        Outcome::Duplicate(claim.response.unwrap_or_else(|| work.response.clone()))
    }
}

impl Work {
    /// Until when the delivery waits for another owner: a takeover needs time to send and answer.
    fn waits_until(&self, takes_over: bool) -> Instant {
        let for_sending = self.source.policy.answer_deadline / 2;
        if takes_over {
            self.deadline - for_sending
        } else {
            self.deadline
        }
    }

    /// What the first owner of an event sends with.
    fn first_grant(&self, queue: &str, now: u64) -> Grant {
        Grant {
            generation: 0,
            group: self.group.clone(),
            queue: queue.to_owned(),
            first_at: now,
            taken_over: false,
        }
    }

    fn envelope<'a>(&'a self, grant: &'a Grant, possible_duplicate: bool) -> Envelope<'a> {
        let ready = self.source.state.as_ref().ok();
        let manifest = ready.map(|ready| ready.plugin.manifest());
        Envelope {
            delivery: &self.delivery,
            event: &self.event,
            key: &self.key,
            group_id: &grant.group,
            plugin: manifest.map_or("", |manifest| &manifest.name),
            plugin_version: manifest.map_or("", |manifest| &manifest.version),
            generation: grant.generation,
            possible_duplicate,
            withheld: is_withheld,
            signature_header: ready.and_then(|ready| ready.signature_header.as_deref()),
        }
    }
}

fn store_failed(work: &Work, error: &StoreError) -> Outcome {
    let (tenant, source) = (&work.source.tenant, &work.source.name);
    tracing::error!(%tenant, %source, delivery = %work.delivery.id, %error, "not accepted");
    Outcome::Unavailable
}

/// The answer where neither the plugin nor the provider demands another.
fn default_response(key: &EventKey, delivery: &Delivery, status: Option<u16>) -> Response {
    let body = serde_json::json!({
        "event_id": key.public_id(),
        "delivery_id": delivery.id.to_string(),
    });
    Response {
        status,
        headers: vec![("content-type".into(), "application/json".into())],
        body: body.to_string().into(),
    }
}

#[cfg(test)]
mod tests;
