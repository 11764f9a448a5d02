//! Answers that providers demand: to handshakes, and to events where the status alone will not do.

use crate::bindings::hookgate::provider::types::{Part, Rejection, Response, Verdict};

impl Response {
    /// The status alone.
    pub fn empty(status: u16) -> Self {
        Self {
            status,
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// 200 with a body of plain text.
    pub fn text(body: impl Into<String>) -> Self {
        Self::ok("text/plain", vec![Part::Bytes(body.into().into_bytes())])
    }

    /// 200 with a body of JSON, which the caller has written.
    pub fn json(body: impl Into<String>) -> Self {
        let body = body.into().into_bytes();
        Self::ok("application/json", vec![Part::Bytes(body)])
    }

    /// 200 with a body of these parts.
    pub fn ok(media_type: &str, body: Vec<Part>) -> Self {
        Self::empty(200)
            .with_header("content-type", media_type)
            .with_body(body)
    }

    /// Adds a header.
    #[must_use]
    pub fn with_header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    fn with_body(mut self, body: Vec<Part>) -> Self {
        self.body = body;
        self
    }

    /// The verdict that this handshake is answered at once.
    ///
    /// # Errors
    ///
    /// Never: the result is what [`Provider::handle`](crate::Provider::handle) returns.
    pub fn respond(self) -> Result<Verdict, Rejection> {
        Ok(Verdict::Respond(self))
    }
}
