//! Hookgate: an edge webhook gateway. It authenticates every delivery in a sandbox, claims its event, puts it
//! into a durable queue, and only then answers. A 2xx is a promise.
//!
//! # The life of a delivery
//!
//! ```text
//!  provider ── HTTP ──> http::ingress      route, admit, read the raw bytes within limits
//!                          │
//!                       pipeline           authenticate ──> plugin (WebAssembly, fresh sandbox)
//!                          │                                  └─ crypto: keys never enter the sandbox
//!                          │               identify           tenant, source and event id: the event key
//!                          │               join               copies at work here share one outcome
//!                          │               claim ─ enqueue    backend: two seams, or one transaction
//!                          │               answer             outcome: the one table
//!                          └──────────────  settle             behind the answer, retried
//! ```
//!
//! [`pipeline`] is that story in one file. It is generic over the seams and names none of their adapters.
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | [`delivery`] | a delivery, its event, event keys, messages: data without I/O |
//! | [`crypto`], [`encoding`] | keys, MACs, digests; signatures as text |
//! | [`clock`] | wall and monotonic time, and spans that neither can stretch |
//! | [`store`], [`queue`], [`backend`] | the seams: claim store, event queue, and the pair of them |
//! | [`embedded`] | store and queue as one database file on this machine |
//! | [`aws`] | what the clients of DynamoDB and SQS share |
//! | [`pressure`] | whether a queue takes new events, and whose |
//! | [`keys`] | keys and certificates by URL: fetched, checked and kept |
//! | [`plugin`] | the sandboxes, the host's side of the interface, manifests |
//! | [`tenants`] | the live snapshot of sources, read without a lock |
//! | [`pipeline`], [`outcome`] | what happens to a delivery, and what its sender is told |
//! | [`http`] | listeners; the only place that names hyper |
//! | [`config`] | what the operator wrote, and everything that is wrong with it |
//! | [`telemetry`] | every metric, as a typed function |
//! | [`vectors`] | published signatures, run through plugins |
//! | [`cli`] | the commands |
//!
//! Dependencies point one way: `delivery <- seams <- pipeline <- http <- cli`. Adapters know their own seam and
//! `delivery`, never each other, nor `http`, nor `config`.
//!
//! # Invariants
//!
//! 1. No 2xx for an event before it is durably in the queue. Handshakes carry no event.
//! 2. Whatever moment the process dies at, the provider's next delivery is a true duplicate, takes the event
//!    over, or is told to come again.
//! 3. One message per event and generation inside the broker's window.
//! 4. An owner sends only while its own lease runs, on both clocks.
//! 5. Settling states a fact: the message is in the queue. The first response wins.
//! 6. A claim outlives its message's retention and the provider's retries.
//! 7. Tenants never meet: not in a claim, not in a deduplication id, not in a sandbox.
//! 8. The bytes verified are the bytes received and the bytes delivered.
//! 9. Memory is bounded by configuration; excess is refused early.
//! 10. Expiry is computed in conditions, never left to a store's deletion.

pub mod aws;
pub mod backend;
pub mod cli;
pub mod clock;
pub mod config;
pub mod crypto;
pub mod delivery;
pub mod embedded;
pub mod encoding;
pub mod failpoint;
pub mod http;
pub mod keys;
pub mod outcome;
pub mod pipeline;
pub mod plugin;
pub mod pressure;
pub mod queue;
pub mod store;
pub mod telemetry;
pub mod tenants;
pub mod vectors;
