//! Routing a request again when the map of ranges has changed under it.
//!
//! A partition that was split or merged is gone for those who were on their way to it. A request that was routed by
//! key, scope or hash is routed again by the new map, and its sender notices nothing; only one that names a range by
//! its id is told. [`Routes`] decides that for all of them: reads and lists, writes and scripts (`call::container`),
//! and requests that an api makes of several pieces, such as queries over partitions ([`Container::routed`]).

use crate::container::Container;
use crate::error::{Error, Kind};
use crate::feed::Scope;

/// How often one request is routed, the first time included.
const ROUTES_MAX: usize = 16;

/// By which map a request was routed, and how often it was.
pub(crate) struct Routes<'c> {
    container: &'c Container,
    map: u32,
    tries: usize,
}

impl<'c> Routes<'c> {
    pub(crate) fn new(container: &'c Container) -> Routes<'c> {
        Routes { container, map: version_of(container), tries: 1 }
    }

    /// Whether a request whose partition has gone is routed once more: by the same map it would go the same way.
    pub(crate) fn after_gone(&mut self) -> bool {
        let before = std::mem::replace(&mut self.map, version_of(self.container));
        self.after_pause() && before != self.map
    }

    /// The same for a request of which nothing was done, and that has waited for the end of a handover: whether that
    /// has succeeded or failed, it is begun again.
    pub(crate) fn after_pause(&mut self) -> bool {
        self.tries += 1;
        self.tries <= ROUTES_MAX
    }
}

/// Tells one map of a container from the others: ranges that come get numbers that were never used.
fn version_of(container: &Container) -> u32 {
    container.map().history.next_range
}

/// Whether a request failed because its partition has gone.
pub(crate) fn is_gone(error: &Error) -> bool {
    error.kind == Kind::RangeGone
}

/// Runs a request until it is not because of the map that it fails; `$attempt` may await.
macro_rules! routed {
    ($container:expr, $is_gone:expr, $attempt:expr) => {{
        let mut routes = $crate::routing::Routes::new($container);
        loop {
            match $attempt {
                Err(error) if $is_gone(&error) && routes.after_gone() => {}
                answer => break answer,
            }
        }
    }};
}

pub(crate) use routed;

impl Container {
    /// Runs a request that is made of several calls. When a partition went away under it (`is_gone`), it runs again
    /// by the new map, unless the client named the partition itself and has to know.
    pub fn routed<T, E>(
        &self,
        scope: &Scope,
        is_gone: impl Fn(&E) -> bool,
        mut run: impl FnMut() -> Result<T, E>,
    ) -> Result<T, E> {
        let named = matches!(scope, Scope::Range(_) | Scope::Epk { range: Some(_), .. });
        routed!(self, |error| !named && is_gone(error), run())
    }

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
