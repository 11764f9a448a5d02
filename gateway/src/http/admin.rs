//! The listener for operators: health, readiness, metrics, and a look into a queue that allows it.
//! Meant for the loopback interface or a private network: it authenticates nobody.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::Incoming;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Handle, Readiness};
use crate::backend::Backend;
use crate::pipeline::Gateway;
use crate::queue::Held;
use crate::store::claims;

/// Must be there for a claim to be forgotten.
pub const FORGET_HEADER: &str = "hookgate-forget";

/// How long the claim store may take for an operator.
const LOOK: Duration = Duration::from_secs(5);

/// The most events that one page shows.
const PAGE: usize = 500;

/// The operators' listener.
pub struct Admin<B> {
    gateway: Arc<Gateway<B>>,
    readiness: Arc<Readiness>,
}

impl<B: Backend> Admin<B> {
    /// A listener for this gateway.
    pub fn new(gateway: Arc<Gateway<B>>, readiness: Arc<Readiness>) -> Self {
        Self { gateway, readiness }
    }

    fn readyz(&self) -> Response<Full<Bytes>> {
        let ready = self.readiness.get();
        let tenants = self.gateway.tenants.load();
        let unavailable: Vec<_> = tenants
            .sources()
            .filter_map(|source| {
                let reason = &source.state.as_ref().err()?.reason;
                Some(json!({
                    "tenant": source.tenant.as_str(),
                    "source": source.name.as_str(),
                    "reason": reason,
                }))
            })
            .collect();
        let status = if ready {
            StatusCode::OK
        } else {
            StatusCode::SERVICE_UNAVAILABLE
        };
        reply(
            status,
            &json!({
                "ready": ready,
                "troubles": self.readiness.troubles().all,
                "pressure": self.gateway.pressure.level().name(),
                "unavailable_sources": unavailable,
                "refused_change": self.readiness.refused().as_deref(),
            }),
        )
    }

    fn events(&self, query: &str) -> Response<Full<Bytes>> {
        let number = |name: &str| {
            let pair = query.split('&').filter_map(|pair| pair.split_once('='));
            pair.filter(|(found, _)| *found == name)
                .find_map(|(_, value)| value.parse::<u64>().ok())
        };
        let Some(queue) = self.gateway.backend.browse() else {
            let why = "this queue cannot be looked into without receiving from it";
            return reply(StatusCode::NOT_IMPLEMENTED, &json!({ "error": why }));
        };
        let limit = number("limit")
            .and_then(|limit| usize::try_from(limit).ok())
            .unwrap_or(PAGE);
        match queue.list(number("after").unwrap_or(0), limit.min(PAGE)) {
            Ok(held) => {
                let events: Vec<_> = held.iter().map(event).collect();
                reply(StatusCode::OK, &json!({ "events": events }))
            }
            Err(error) => {
                let error = json!({ "error": error.to_string() });
                reply(StatusCode::SERVICE_UNAVAILABLE, &error)
            }
        }
    }
}

impl<B: Backend> Admin<B> {
    /// An event's claim, forgotten first where that is asked for.
    async fn claim(&self, key: &str, forgets: bool) -> Response<Full<Bytes>> {
        let Some(store) = self.gateway.backend.store() else {
            return reply(
                StatusCode::NOT_IMPLEMENTED,
                &json!({ "error": "this store cannot be looked into" }),
            );
        };
        let looked = timeout(LOOK, claims::look(store, key, forgets)).await;
        match looked {
            Ok(Ok(looked)) => reply(StatusCode::OK, &json!(looked)),
            Ok(Err(error)) => {
                let error = json!({ "error": error.to_string() });
                reply(StatusCode::SERVICE_UNAVAILABLE, &error)
            }
            Err(_) => reply(
                StatusCode::SERVICE_UNAVAILABLE,
                &json!({ "error": "the store did not answer" }),
            ),
        }
    }
}

/// A message as JSON: attributes by name, the body as the text that the queue holds.
fn event(held: &Held) -> Value {
    let message = &held.message;
    let attributes: serde_json::Map<_, _> = message
        .attributes
        .iter()
        .map(|(name, value)| (name.to_string(), json!(value)))
        .collect();
    json!({
        "sequence": held.sequence,
        "sent_at": held.sent_at,
        "deduplication_id": message.deduplication_id,
        "group_id": message.group_id,
        "attributes": attributes,
        "body": String::from_utf8_lossy(&message.body),
    })
}

fn reply(status: StatusCode, body: &Value) -> Response<Full<Bytes>> {
    text(status, "application/json", body.to_string())
}

fn text(status: StatusCode, content_type: &'static str, body: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert("content-type", http::HeaderValue::from_static(content_type));
    response
}

impl<B: Backend> Handle for Admin<B> {
    type Body = Full<Bytes>;

    async fn handle(self: &Arc<Self>, request: Request<Incoming>) -> Response<Full<Bytes>> {
        if let Some(key) = request.uri().path().strip_prefix("/claims/") {
            let key = percent_decode_str(key).decode_utf8_lossy().into_owned();
            // A browser sends such a header to no listener that does not ask for it first.
            let forgets =
                request.method() == Method::POST && request.headers().contains_key(FORGET_HEADER);
            return self.claim(&key, forgets).await;
        }
        if ![Method::GET, Method::HEAD].contains(request.method()) {
            return text(
                StatusCode::METHOD_NOT_ALLOWED,
                "text/plain",
                "method not allowed\n".into(),
            );
        }
        match request.uri().path() {
            "/healthz" => text(StatusCode::OK, "text/plain", "ok\n".into()),
            "/readyz" => self.readyz(),
            "/metrics" => text(
                StatusCode::OK,
                "application/openmetrics-text; version=1.0.0; charset=utf-8",
                self.gateway.telemetry.encode(),
            ),
            "/events" => {
                // A queue on disk is read here: not on the threads that answer providers.
                let admin = Arc::clone(self);
                let query = request.uri().query().unwrap_or_default().to_owned();
                tokio::task::spawn_blocking(move || admin.events(&query))
                    .await
                    .unwrap_or_else(|_| {
                        text(
                            StatusCode::INTERNAL_SERVER_ERROR,
                            "text/plain",
                            "failed\n".into(),
                        )
                    })
            }
            _ => text(StatusCode::NOT_FOUND, "text/plain", "not found\n".into()),
        }
    }
}
