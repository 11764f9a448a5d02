//! What is broken, and when.

use std::collections::VecDeque;
use std::time::Duration;

/// What happens to a request.
#[derive(Debug, Clone, PartialEq)]
pub enum Fault {
    /// Nothing.
    None,
    /// The connection is closed before anything is read.
    Refuse,
    /// It goes through, later.
    Delay(Duration),
    /// The connection is closed and the server never sees it.
    CutBefore,
    /// The server does it, and the connection is closed in place of its answer.
    CutAfter,
    /// The server never sees it, nobody answers, and the connection stays open.
    Blackhole,
    /// The server never sees it, and this is the answer.
    Answer(Vec<u8>),
}

impl Fault {
    /// An answer as AWS gives it, with its error's type: `aws(400, "ThrottlingException")`.
    pub fn aws(status: u16, kind: &str) -> Self {
        let body = format!(r#"{{"__type":"{kind}","message":"injected"}}"#);
        let length = body.len();
        Self::Answer(
            format!(
                "HTTP/1.1 {status} Injected\r\ncontent-type: application/x-amz-json-1.0\r\n\
                 x-amzn-errortype: {kind}\r\ncontent-length: {length}\r\n\r\n{body}"
            )
            .into_bytes(),
        )
    }

    /// An error as Redis gives it: `redis("LOADING Redis is loading the dataset in memory")`.
    pub fn redis(line: &str) -> Self {
        Self::Answer(format!("-{line}\r\n").into_bytes())
    }
}

/// Which requests are broken, and how. A healthy plan breaks none.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Only requests of these operations count; all where there are none.
    operations: Vec<String>,
    /// How many counted.
    counted: u64,
    way: Way,
}

#[derive(Debug, Clone, Default)]
enum Way {
    #[default]
    Healthy,
    Always(Fault),
    Script(VecDeque<Fault>),
    Random {
        seed: u64,
        faults: Vec<(f64, Fault)>,
    },
}

impl Plan {
    /// Breaks nothing.
    pub fn healthy() -> Self {
        Self::default()
    }

    /// Breaks every request.
    pub fn always(fault: Fault) -> Self {
        Self::of(Way::Always(fault))
    }

    /// Breaks one request after the other like this, and those behind them not at all.
    pub fn script(faults: impl IntoIterator<Item = Fault>) -> Self {
        Self::of(Way::Script(faults.into_iter().collect()))
    }

    /// Breaks a request with these probabilities, which together are at most 1.
    pub fn random(seed: u64, faults: impl IntoIterator<Item = (f64, Fault)>) -> Self {
        let faults = faults.into_iter().collect();
        Self::of(Way::Random { seed, faults })
    }

    fn of(way: Way) -> Self {
        Self {
            way,
            ..Self::default()
        }
    }

    /// The same for requests of this operation alone: a Redis command, or what follows the dot in
    /// `X-Amz-Target`. Others go through and do not count.
    #[must_use]
    pub fn on(mut self, operation: &str) -> Self {
        self.operations.push(operation.to_owned());
        self
    }

    /// Whether the connection of that number is refused.
    pub(super) fn refuses(&mut self, number: u64) -> bool {
        match &mut self.way {
            Way::Healthy => false,
            Way::Always(fault) => *fault == Fault::Refuse,
            Way::Script(faults) => {
                let refused = faults.front() == Some(&Fault::Refuse);
                if refused {
                    faults.pop_front();
                }
                refused
            }
            // Connections are decided apart from requests.
            Way::Random { seed, faults } => {
                draw(!*seed, number, faults, |fault| *fault == Fault::Refuse) == Fault::Refuse
            }
        }
    }

    /// The number of this request among those that count, and its fault; none where it does not count.
    pub(super) fn next(&mut self, operation: &str) -> Option<(u64, Fault)> {
        if !self.operations.is_empty() && !self.operations.iter().any(|on| on == operation) {
            return None;
        }
        let number = self.counted;
        self.counted += 1;
        let fault = match &mut self.way {
            Way::Healthy => Fault::None,
            Way::Always(fault) => fault.clone(),
            Way::Script(faults) => faults.pop_front().unwrap_or(Fault::None),
            Way::Random { seed, faults } => {
                draw(*seed, number, faults, |fault| *fault != Fault::Refuse)
            }
        };
        Some((number, fault))
    }
}

/// The decision of that number: the same for the same seed, whatever was decided before.
fn draw(seed: u64, number: u64, faults: &[(f64, Fault)], counts: impl Fn(&Fault) -> bool) -> Fault {
    // An odd constant spreads neighbouring numbers over all seeds.
    let seed = seed ^ number.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mut left = fastrand::Rng::with_seed(seed).f64();
    for (probability, fault) in faults.iter().filter(|(_, fault)| counts(fault)) {
        if left < *probability {
            return fault.clone();
        }
        left -= probability;
    }
    Fault::None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decisions(seed: u64) -> Vec<Fault> {
        let faults = [
            (0.2, Fault::CutBefore),
            (0.3, Fault::CutAfter),
            (0.1, Fault::Refuse),
        ];
        let mut plan = Plan::random(seed, faults);
        (0..1000)
            .filter_map(|_| Some(plan.next("GET")?.1))
            .collect()
    }

    #[test]
    fn a_seed_says_everything_and_another_says_otherwise() {
        assert_eq!(decisions(7), decisions(7));
        assert_ne!(decisions(7), decisions(8));
    }

    #[test]
    fn faults_come_as_often_as_they_should() {
        let decisions = decisions(1);
        let share = |wanted: &Fault| decisions.iter().filter(|fault| *fault == wanted).count();
        assert!((150..250).contains(&share(&Fault::CutBefore)));
        assert!((250..350).contains(&share(&Fault::CutAfter)));
        assert_eq!(
            share(&Fault::Refuse),
            0,
            "connections are refused, not requests"
        );
    }

    #[test]
    fn only_what_a_plan_is_about_counts() {
        let mut plan = Plan::script([Fault::CutAfter]).on("EVALSHA");
        assert_eq!(plan.next("INFO"), None);
        assert_eq!(plan.next("EVALSHA"), Some((0, Fault::CutAfter)));
        assert_eq!(plan.next("EVALSHA"), Some((1, Fault::None)));
    }
}
