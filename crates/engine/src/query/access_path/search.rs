//! Searches bound to the search indexes of a partition.

use orrery_index::Grid;
use orrery_query::Language;
use orrery_query::fulltext::Term;
use orrery_query::pushdown::{Place, Search, SearchKind};
use orrery_query::spatial::Around;

use super::lookup::{Lookup, steps_of};
use crate::partition::index::{PartitionView, SpatialPath, TextPath};

/// Whether there is an index in which a search finds its items.
pub(in crate::query) fn is_searchable(view: &PartitionView, search: &Search) -> bool {
    match &search.kind {
        SearchKind::Around(around) => spatial(view, &search.place, around).is_some(),
        SearchKind::Terms { terms, .. } => {
            text(view, &search.place, terms.iter().map(Term::language)).is_some()
        }
    }
}

/// Where a search finds its items; `None` where there is no index for it.
pub(super) fn searched<'f>(view: &PartitionView, search: &'f Search) -> Option<Lookup<'f>> {
    match &search.kind {
        SearchKind::Around(around) => {
            let path = spatial(view, &search.place, around)?;
            Some(Lookup::Cells { ranges: around.ranges(&path.grid, path.larger), path })
        }
        SearchKind::Terms { terms, all } => {
            let path = text(view, &search.place, terms.iter().map(Term::language))?;
            // A term without words is in no text.
            let empty = |term: &Term| term.stems().is_empty();
            if *all && terms.iter().any(empty) {
                return Some(Lookup::Nothing);
            }
            let mut lookups: Vec<Lookup<'_>> =
                terms.iter().filter(|term| !empty(term)).map(|term| Lookup::Term { path, term }).collect();
            Some(match lookups.len() {
                0 => Lookup::Nothing,
                1 => lookups.remove(0),
                _ if *all => Lookup::All(lookups),
                _ => Lookup::Any(lookups),
            })
        }
    }
}

/// The words of the texts at a place, where all of them are indexed, and in the languages that are asked for.
pub(in crate::query) fn text(
    view: &PartitionView,
    place: &Place,
    mut languages: impl Iterator<Item = Language>,
) -> Option<TextPath> {
    let path = view.text(&place.names()?)?;
    languages.all(|language| language == path.language()).then_some(path)
}

fn spatial(view: &PartitionView, place: &Place, around: &Around) -> Option<SpatialPath> {
    let path = view.spatial(&steps_of(place))?;
    (around.is_planar() == (path.grid != Grid::Sphere)).then_some(path)
}
