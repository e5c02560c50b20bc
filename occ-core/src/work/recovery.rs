//! What becomes of a claim whose worker was lost (spec/engine 4).

use std::time::Duration;

use crate::reason::{Failure, Pending};

/// The longest wait of lost work, whatever it has spent: nothing says that it failed, its lease was a pause already, and all that one
/// worker held must be claimed again within a lease and a second. Each waits a random part, so that not all come at one moment.
const SPREAD: Duration = Duration::from_millis(200);

/// A claim whose lease lapsed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lost {
    /// Attempts that were spent, the lost one among them.
    pub attempts: u32,
    /// Attempts that were granted beyond the limit.
    pub extra_attempts: u32,
    /// Whether the work waits for the stop of a refused candidate.
    pub refused: bool,
    /// Whether it is the deployment of the version that the Agent's pointer names and that should run.
    pub published: bool,
}

/// How lost work is queued again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Again {
    /// Attempts that stay spent.
    pub attempts: u32,
    /// Attempts that are granted beyond the limit.
    pub extra_attempts: u32,
    /// What is recorded.
    pub code: Pending,
    /// How long it waits.
    pub delay: Duration,
}

impl Lost {
    /// Queued again, or the end. `random` is in `[0, 1)`.
    pub fn recover(self, max_attempts: u32, random: f64) -> Result<Again, Failure> {
        let Self {
            attempts,
            extra_attempts,
            refused,
            published,
        } = self;
        let delay = SPREAD.mul_f64(random.clamp(0.0, 1.0));
        let again = Again {
            attempts,
            extra_attempts,
            code: Pending::LeaseExpired,
            delay,
        };
        if refused {
            // A restart during the stop must not end the work with the candidate running.
            Ok(Again {
                attempts: attempts.saturating_sub(1),
                ..again
            })
        } else if attempts < max_attempts.saturating_add(extra_attempts) {
            Ok(again)
        } else if published && extra_attempts == 0 {
            let code = Pending::ActiveRevisionRecovery;
            Ok(Again {
                extra_attempts: 1,
                code,
                ..again
            })
        } else {
            Err(Failure::LeaseExpired)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOST: Lost = Lost {
        attempts: 5,
        extra_attempts: 0,
        refused: false,
        published: false,
    };

    #[test]
    fn an_attempt_that_is_left_is_taken_up_again() {
        let again = Lost { attempts: 4, ..LOST }.recover(5, 0.5).expect("one is left");
        assert_eq!((again.attempts, again.code), (4, Pending::LeaseExpired));
    }

    #[test]
    fn lost_work_is_due_again_well_within_a_second_whatever_it_has_spent() {
        for attempts in 1..5 {
            let again = |random| Lost { attempts, ..LOST }.recover(5, random).expect("one is left").delay;
            assert_eq!((again(0.0), again(1.0)), (Duration::ZERO, Duration::from_millis(200)));
        }
        let published = Lost {
            published: true,
            ..LOST
        };
        assert!(published.recover(5, 1.0).expect("it is published").delay <= Duration::from_millis(200));
    }

    #[test]
    fn the_last_attempt_lost_ends_the_work() {
        assert_eq!(LOST.recover(5, 0.5), Err(Failure::LeaseExpired));
    }

    #[test]
    fn a_published_version_gets_exactly_one_more() {
        let again = Lost {
            published: true,
            ..LOST
        }
        .recover(5, 0.5)
        .expect("it is published");
        assert_eq!(
            (again.attempts, again.extra_attempts, again.code),
            (5, 1, Pending::ActiveRevisionRecovery)
        );
        let lost_again = Lost {
            attempts: 6,
            extra_attempts: 1,
            published: true,
            ..LOST
        };
        assert_eq!(lost_again.recover(5, 0.5), Err(Failure::LeaseExpired));
    }

    #[test]
    fn a_refused_candidates_stop_costs_no_attempt_and_never_ends() {
        let again = Lost { refused: true, ..LOST }.recover(5, 0.5).expect("it goes on");
        assert_eq!((again.attempts, again.code), (4, Pending::LeaseExpired));
    }
}
