//! Running a request again when the map of ranges has changed under it.

use crate::container::Container;
use crate::feed::Scope;

/// How often a request is run again because partitions have split or merged under it.
const RUNS_MAX: usize = 16;

/// Runs a request. When a partition went away under it (`is_gone`), it runs again by the new map, unless the client named the
/// partition itself and has to know.
pub fn routed<T, E>(
    scope: &Scope,
    is_gone: impl Fn(&E) -> bool,
    mut run: impl FnMut() -> Result<T, E>,
) -> Result<T, E> {
    let named = matches!(scope, Scope::Range(_) | Scope::Epk { range: Some(_), .. });
    let mut runs = 0;
    loop {
        runs += 1;
        match run() {
            Err(error) if !named && runs < RUNS_MAX && is_gone(&error) => {}
            result => return result,
        }
    }
}

impl Container {
    /// A scope with the part of the hash space in the place of a range that has since been split or merged.
    pub fn taken_over(&self, scope: &Scope) -> Scope {
        match scope {
            Scope::Range(range) => match self.gone_range(*range) {
                Some((min, max)) => Scope::Epk { min, max, range: None },
                None => scope.clone(),
            },
            Scope::Epk { min, max, range: Some(range) } => match self.gone_range(*range) {
                Some((low, high)) => {
                    Scope::Epk { min: low.max(min.clone()), max: high.min(max.clone()), range: None }
                }
                None => scope.clone(),
            },
            _ => scope.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_that_names_a_range_is_told_and_others_are_run_again() {
        let runs = |scope: &Scope, gone: usize| {
            let mut runs = 0;
            let result = routed(
                scope,
                |_: &()| true,
                || {
                    runs += 1;
                    if runs <= gone { Err(()) } else { Ok(()) }
                },
            );
            (runs, result.is_ok())
        };
        assert_eq!(runs(&Scope::All, 3), (4, true));
        assert_eq!(runs(&Scope::All, usize::MAX), (RUNS_MAX, false));
        assert_eq!(runs(&Scope::Range(0), 1), (1, false));
    }
}
