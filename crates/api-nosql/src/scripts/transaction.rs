//! Runs work on a draft of a logical partition, again when somebody else was faster, a bounded number of times.

use std::time::{Duration, Instant};

use orrery_engine::{Draft, Drafted, Error, Kind, LogicalPartition, RequestClass};
use orrery_script::{Claim, Failure, Limits, Until};

/// How often a script is run before its caller is told to come back.
const ATTEMPTS_MAX: u32 = 20;
/// How much longer each attempt waits than the one before.
const CONFLICT_WAIT: Duration = Duration::from_micros(200);
/// What the service charges for a script that does nothing.
pub const SCRIPT_RU: f64 = 4.27;

/// How work on a draft ends early.
pub enum Stop {
    Failure(Failure),
    Engine(Error),
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Engine(error)
    }
}

impl From<Failure> for Stop {
    fn from(failure: Failure) -> Stop {
        Stop::Failure(failure)
    }
}

/// A logical partition, and the time that is left for it.
pub struct Transaction<'a> {
    pub over: &'a LogicalPartition,
    pub session: &'a Vec<(u32, u64)>,
    pub class: RequestClass,
    pub limits: &'a Limits,
    pub claim: &'a Claim,
}

impl Transaction<'_> {
    /// `Err` comes with what it has cost.
    pub fn run<T>(
        &self,
        mut work: impl FnMut(&mut Draft<'_>, &Until) -> Result<T, Stop>,
    ) -> Result<Drafted<T>, (Stop, f64)> {
        let deadline = Instant::now() + self.limits.time;
        let until = Until { deadline, gone: self.claim.gone().clone(), budget: None };
        let mut attempt = 0;
        loop {
            attempt += 1;
            let mut failure = None;
            let drafted = self.over.draft(self.session, self.class, |draft| {
                let worked = work(draft, &until);
                // Whatever a script has made of it: what does not fit into a commit is refused.
                draft.check_room()?;
                let value = worked.map_err(|stop| match stop {
                    Stop::Engine(error) => error,
                    Stop::Failure(stopped) => {
                        failure = Some(stopped);
                        Error::bad_request("The script failed.")
                    }
                })?;
                // Whoever waited may have been told that the script is stuck, or have gone: then it must not have an
                // effect.
                if self.claim.take() { Ok(value) } else { Err(Error::internal("The script was given up.")) }
            });
            let error = match drafted {
                Ok(drafted) => return Ok(drafted),
                Err(error) => error,
            };
            let charge_ru = error.charge_ru;
            if let Some(failure) = failure {
                return Err((Stop::Failure(failure), charge_ru));
            }
            // A range that has gone to others is found again by whoever sent the script here.
            if error.kind != Kind::Conflict || attempt == ATTEMPTS_MAX || until.is_over() {
                return Err((Stop::Engine(error), charge_ru));
            }
            self.claim.release();
            // Those who were in the way get ahead; each time a little more.
            std::thread::sleep(CONFLICT_WAIT * attempt);
        }
    }
}
