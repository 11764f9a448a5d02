//! Deliveries from the wire: route, admit, read. What is decided about them is the pipeline's.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use hyper::body::{Body, Incoming};
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::answer::{AnswerBody, response};
use super::{Handle, Limits};
use crate::backend::Backend;
use crate::delivery::Delivery;
use crate::failpoint;
use crate::outcome::Outcome;
use crate::pipeline::Gateway;
use crate::telemetry::Step;
use crate::tenants::Source;

/// The memory budget is counted in units of this many bytes.
const UNIT: usize = 1024;

/// The listener that providers call.
pub struct Ingress<B> {
    gateway: Arc<Gateway<B>>,
    limits: Limits,
    budget: Arc<Semaphore>,
}

/// A delivery's share of the memory budget.
struct Share {
    _permit: OwnedSemaphorePermit,
    bytes: i64,
    gauge: Gauge,
}

impl Drop for Share {
    fn drop(&mut self) {
        self.gauge.dec_by(self.bytes);
    }
}

/// Where a delivery goes: the parts of `/in/{tenant}/{source}[/rest]`.
struct Route<'a> {
    tenant: &'a str,
    source: &'a str,
    rest: &'a str,
}

impl<'a> Route<'a> {
    fn of(path: &'a str) -> Option<Self> {
        let (tenant, behind) = path.strip_prefix("/in/")?.split_once('/')?;
        let end = behind.find('/').unwrap_or(behind.len());
        Some(Self {
            tenant,
            source: &behind[..end],
            rest: &behind[end..],
        })
    }
}

impl<B: Backend> Ingress<B> {
    /// A listener for this gateway.
    pub fn new(gateway: Arc<Gateway<B>>, limits: Limits) -> Self {
        let budget = Arc::new(Semaphore::new(limits.memory_budget / UNIT));
        Self {
            gateway,
            limits,
            budget,
        }
    }

    fn find(&self, path: &str) -> Option<(Arc<Source>, String)> {
        let route = Route::of(path)?;
        let tenants = self.gateway.tenants.load();
        let source = tenants.find(route.tenant, route.source)?;
        Some((Arc::clone(source), route.rest.to_owned()))
    }

    async fn receive(
        &self,
        source: &Arc<Source>,
        request: Request<Incoming>,
        rest: String,
        id: uuid::Uuid,
    ) -> Outcome {
        let arrived = Instant::now();
        let received_at = self.gateway.clock.wall_ms();
        if ![Method::POST, Method::GET, Method::HEAD, Method::OPTIONS].contains(request.method()) {
            return Outcome::Method;
        }
        let announced = request.body().size_hint();
        if announced.lower() > self.limits.max_body as u64 {
            return Outcome::TooLarge;
        }
        let at_most = announced
            .upper()
            .and_then(|upper| usize::try_from(upper).ok());
        let Some(share) = self.share(at_most.unwrap_or(self.limits.max_body)) else {
            return Outcome::Unavailable;
        };
        let (head, body) = request.into_parts();
        let body = match timeout_at(arrived + self.limits.body_timeout, self.read(body)).await {
            Ok(Ok(body)) => body,
            Ok(Err(outcome)) => return outcome,
            Err(_) => return Outcome::TooSlow,
        };
        self.gateway
            .telemetry
            .step(&source.metrics, Step::Read, arrived.elapsed());
        let target = head
            .uri
            .path_and_query()
            .map_or("", |target| target.as_str())
            .to_owned();
        let delivery = Arc::new(Delivery {
            id,
            received_at,
            method: head.method,
            target,
            rest,
            headers: head.headers,
            body,
        });
        self.gateway
            .deliver(source, delivery, arrived, Box::new(share))
            .await
    }

    /// Takes a body's share of the memory budget, if it is to be had now. An empty body takes one as well: its
    /// delivery has a head, and their number has to be bounded too.
    fn share(&self, bytes: usize) -> Option<Share> {
        let bytes = bytes.min(self.limits.max_body);
        let units = u32::try_from(bytes.div_ceil(UNIT).max(1)).ok()?;
        let permit = Arc::clone(&self.budget)
            .try_acquire_many_owned(units)
            .ok()?;
        let gauge = self.gateway.telemetry.bytes_in_flight().clone();
        let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
        gauge.inc_by(bytes);
        Some(Share {
            _permit: permit,
            bytes,
            gauge,
        })
    }

    /// Reads a body, counting as it comes: what was announced may be a lie. One frame is not copied.
    async fn read(&self, mut body: Incoming) -> Result<Bytes, Outcome> {
        let mut first = Bytes::new();
        let mut all = BytesMut::new();
        while let Some(frame) = body.frame().await {
            // The sender is gone, or does not speak HTTP: nobody will read the answer.
            let frame = frame.map_err(|_| Outcome::TooSlow)?;
            let Ok(data) = frame.into_data() else {
                continue;
            };
            if first.len() + all.len() + data.len() > self.limits.max_body {
                return Err(Outcome::TooLarge);
            }
            if first.is_empty() && all.is_empty() {
                first = data;
                continue;
            }
            if all.is_empty() {
                all.extend_from_slice(&std::mem::take(&mut first));
            }
            all.extend_from_slice(&data);
        }
        Ok(if all.is_empty() { first } else { all.freeze() })
    }
}

impl<B: Backend> Handle for Ingress<B> {
    type Body = AnswerBody;

    async fn handle(self: &Arc<Self>, request: Request<Incoming>) -> Response<AnswerBody> {
        let (id, begun) = (uuid::Uuid::now_v7(), Instant::now());
        let Some((source, rest)) = self.find(request.uri().path()) else {
            self.gateway.telemetry.unroutable();
            return response(Outcome::UnknownSource.answer(None), id);
        };
        let outcome = self.receive(&source, request, rest, id).await;
        source.metrics.ended(outcome.label());
        self.gateway.telemetry.answered(begun.elapsed());
        failpoint::here(failpoint::BEFORE_ANSWER);
        let ready = source.state.as_ref().ok();
        response(
            outcome.answer(ready.map(|ready| ready.plugin.manifest())),
            id,
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_split_at_the_first_two_names_and_keep_the_rest() {
        let route = |path| Route::of(path).map(|route| (route.tenant, route.source, route.rest));
        assert_eq!(route("/in/acme/gh"), Some(("acme", "gh", "")));
        assert_eq!(route("/in/acme/gh/"), Some(("acme", "gh", "/")));
        assert_eq!(
            route("/in/acme/gh/a//b%2F"),
            Some(("acme", "gh", "/a//b%2F"))
        );
        for path in ["/", "/in", "/in/", "/in/acme", "/out/acme/gh", "in/acme/gh"] {
            assert_eq!(route(path), None, "{path}");
        }
        assert_eq!(
            route("/in//gh"),
            Some(("", "gh", "")),
            "no tenant has the empty name"
        );
    }
}
