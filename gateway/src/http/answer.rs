//! An answer on its way out.

use http::Response;

use crate::outcome::Answer;

#[cfg(not(feature = "failpoints"))]
/// The body of an answer.
pub type AnswerBody = http_body_util::Full<bytes::Bytes>;
#[cfg(feature = "failpoints")]
pub use torn::AnswerBody;

/// The response for an answer. Its headers were checked when they were made; one that is none is left out.
pub(super) fn response(answer: Answer, delivery: uuid::Uuid) -> Response<AnswerBody> {
    let mut builder = Response::builder().status(answer.status);
    if !delivery.is_nil() {
        builder = builder.header("hookgate-delivery", delivery.to_string());
    }
    for (name, value) in answer.headers {
        builder = builder.header(name, value);
    }
    let body = AnswerBody::from(answer.body);
    builder.body(body).unwrap_or_else(|_| {
        let mut plain = Response::new(AnswerBody::from(bytes::Bytes::new()));
        *plain.status_mut() = http::StatusCode::from_u16(answer.status).unwrap_or_default();
        plain
    })
}

/// A body that can be cut in the middle, by the death of the process.
#[cfg(feature = "failpoints")]
mod torn {
    use std::convert::Infallible;
    use std::pin::Pin;
    use std::task::{Context, Poll};

    use bytes::Bytes;
    use hyper::body::{Body, Frame, SizeHint};

    use crate::failpoint;

    /// Two halves with a place between them.
    pub struct AnswerBody {
        rest: Bytes,
        /// What is sent before the fail point; the connection flushes it while the body waits.
        head: Option<Bytes>,
        waited: bool,
    }

    impl From<Bytes> for AnswerBody {
        fn from(mut rest: Bytes) -> Self {
            let head = Some(rest.split_to(rest.len() / 2)).filter(|head| !head.is_empty());
            Self {
                rest,
                head,
                waited: false,
            }
        }
    }

    impl Body for AnswerBody {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            if let Some(head) = self.head.take() {
                return Poll::Ready(Some(Ok(Frame::data(head))));
            }
            if self.rest.is_empty() {
                return Poll::Ready(None);
            }
            if !self.waited {
                self.waited = true;
                context.waker().wake_by_ref();
                return Poll::Pending;
            }
            failpoint::here(failpoint::INSIDE_ANSWER);
            let rest = std::mem::take(&mut self.rest);
            Poll::Ready(Some(Ok(Frame::data(rest))))
        }

        fn is_end_stream(&self) -> bool {
            self.head.is_none() && self.rest.is_empty()
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(
                (self.rest.len() + self.head.as_ref().map_or(0, Bytes::len)) as u64,
            )
        }
    }
}
