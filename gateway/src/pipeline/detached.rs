//! Work that whoever waits for it does meanwhile, and that goes on without them.
//!
//! Mostly the work of a delivery is over before anybody else could have taken it up: done where it came, it
//! costs no task and wakes no other thread. Dropped before its end, for whatever reason, it moves to a task of
//! its own; so cancelling the waiter cancels nothing.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::Handle;

/// The work, until its end. A panic in it ends it, as it would end a task.
pub(super) struct Detached(Option<Pin<Box<dyn Future<Output = ()> + Send>>>);

impl Detached {
    /// Begins when it is polled or dropped.
    pub(super) fn new(work: impl Future<Output = ()> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl Future for Detached {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let Some(work) = &mut self.0 else {
            return Poll::Ready(());
        };
        let polled = catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context)));
        if matches!(polled, Ok(Poll::Pending)) {
            return Poll::Pending;
        }
        self.0 = None;
        Poll::Ready(())
    }
}

impl Drop for Detached {
    fn drop(&mut self) {
        // Where there is no runtime any more, the process ends.
        if let (Some(work), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(work);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::{Notify, oneshot};

    use super::*;

    #[tokio::test]
    async fn work_that_nobody_waits_for_any_more_goes_on() {
        let (go, done) = (Arc::new(Notify::new()), oneshot::channel());
        let (wait, sender) = (Arc::clone(&go), done.0);
        let mut work = Box::pin(Detached::new(async move {
            wait.notified().await;
            let _ = sender.send(());
        }));
        tokio::select! {
            biased;
            () = &mut work => panic!("it waits"),
            () = std::future::ready(()) => {}
        }
        drop(work);
        go.notify_one();
        done.1.await.unwrap();
    }

    #[tokio::test]
    async fn a_panic_ends_the_work_and_not_its_waiter() {
        Detached::new(async { panic!("a bug") }).await;
    }
}
