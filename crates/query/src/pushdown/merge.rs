//! Scans of one place put together: what a chain of AND or OR comes to.
//!
//! A chain may have tens of thousands of terms (`c.n = 0 OR c.n = 1 OR …`). Its scans are therefore collected by place
//! first, and the ranges of a place are sorted once: the work grows with the terms, not with their square.

use std::collections::HashMap;

use orrery_index::ValueRange;

use super::{Filter, Place, Scan};

/// The parts of an OR. Scans that need no check are one scan per place.
pub(super) fn any(parts: Vec<Filter>) -> Vec<Filter> {
    let joins = join(&parts, |scan| scan.check.is_none(), |_, _| true);
    together(parts, &joins, |scans| {
        let exact = scans.iter().all(|scan| scan.exact);
        let mut scans = scans.into_iter();
        let mut first = scans.next()?;
        let rest: Vec<Scan> = scans.collect();
        if !rest.is_empty() {
            let all = rest.into_iter().flat_map(|scan| scan.ranges);
            first.ranges = union(std::mem::take(&mut first.ranges).into_iter().chain(all).collect());
        }
        Some(Scan { exact, ..first })
    })
    .unwrap_or_default()
}

/// The parts of an AND; `None` when scans of one place exclude each other. A scan has at most one check, so a second
/// one stays a scan of its own. Two elements of an array may satisfy two conditions, so places inside arrays stay
/// apart.
pub(super) fn all(parts: Vec<Filter>) -> Option<Vec<Filter>> {
    let joins = join(
        &parts,
        |scan| scan.place.is_single(),
        |checked, scan| {
            let fits = !(*checked && scan.check.is_some());
            *checked |= scan.check.is_some();
            fits
        },
    );
    together(parts, &joins, |scans| {
        let exact = scans.iter().all(|scan| scan.exact);
        let mut scans = scans.into_iter();
        let mut first = scans.next()?;
        let mut ranges = vec![std::mem::take(&mut first.ranges)];
        for scan in scans {
            ranges.push(scan.ranges);
            first.check = first.check.or(scan.check);
        }
        let ranges = if ranges.len() == 1 { ranges.remove(0) } else { intersection(&ranges) };
        (!ranges.is_empty()).then_some(Scan { ranges, exact, ..first })
    })
}

/// For each part the first part that it belongs together with, which may be itself.
fn join(
    parts: &[Filter],
    joins: impl Fn(&Scan) -> bool,
    mut fits: impl FnMut(&mut bool, &Scan) -> bool,
) -> Vec<usize> {
    let mut firsts: HashMap<&Place, (usize, bool)> = HashMap::new();
    let mut joined = Vec::with_capacity(parts.len());
    for (at, part) in parts.iter().enumerate() {
        joined.push(match part {
            Filter::Scan(scan) if joins(scan) => {
                let (first, state) = firsts.entry(&scan.place).or_insert((at, false));
                if fits(state, scan) { *first } else { at }
            }
            _ => at,
        });
    }
    joined
}

/// The parts with those that belong together made one, in the place of the first of them.
fn together(
    parts: Vec<Filter>,
    joined: &[usize],
    mut one: impl FnMut(Vec<Scan>) -> Option<Scan>,
) -> Option<Vec<Filter>> {
    let mut scans: Vec<Vec<Scan>> = Vec::new();
    let mut places: HashMap<usize, usize> = HashMap::new();
    // Either a part that stays as it is, or where its scans are collected.
    let mut kept: Vec<Result<Filter, usize>> = Vec::new();
    for (part, first) in parts.into_iter().zip(joined) {
        match part {
            Filter::Scan(scan) => {
                let place = *places.entry(*first).or_insert_with(|| {
                    scans.push(Vec::new());
                    kept.push(Err(scans.len() - 1));
                    scans.len() - 1
                });
                scans[place].push(scan);
            }
            other => kept.push(Ok(other)),
        }
    }
    let merge = |part| match part {
        Ok(part) => Some(part),
        Err(place) => one(std::mem::take(&mut scans[place])).map(Filter::Scan),
    };
    kept.into_iter().map(merge).collect()
}

/// What is in all of these lists, each in order and without overlaps.
pub(super) fn intersection(lists: &[Vec<ValueRange>]) -> Vec<ValueRange> {
    // Ranges begin with the latest start and end with the first end while all lists are inside one of theirs. An end
    // comes before a start at the same place: ranges that only touch stay apart.
    let mut edges: Vec<(&[u8], bool, &ValueRange)> =
        Vec::with_capacity(2 * lists.iter().map(Vec::len).sum::<usize>());
    for range in lists.iter().flatten().filter(|range| !range.is_empty()) {
        edges.push((&range.start, true, range));
        edges.push((&range.end, false, range));
    }
    edges.sort_by(|left, right| left.0.cmp(right.0).then(left.1.cmp(&right.1)));
    let mut inside = 0;
    let mut begun: Option<&ValueRange> = None;
    let mut point: Option<&ValueRange> = None;
    let mut both = Vec::new();
    for (_, starts, range) in edges {
        if starts {
            inside += 1;
            point = if range.is_point() { Some(range) } else { point };
            begun = (inside == lists.len()).then_some(range);
            continue;
        }
        inside -= 1;
        if let Some(first) = begun.take() {
            let held = first.and(range);
            // What lies inside a point is one.
            both.push(
                point
                    .filter(|point| range.end <= point.end)
                    .map_or_else(|| held.clone(), |point| held.and(point)),
            );
        }
    }
    both
}

/// In order and without overlaps. Ranges that only touch stay apart: points then stay points.
pub(super) fn union(mut ranges: Vec<ValueRange>) -> Vec<ValueRange> {
    ranges.retain(|range| !range.is_empty());
    ranges.sort_by(|left, right| left.start.cmp(&right.start).then(left.end.cmp(&right.end)));
    let mut merged: Vec<ValueRange> = Vec::with_capacity(ranges.len());
    for range in ranges {
        match merged.last_mut() {
            Some(last) if range.start < last.end => {
                if range.end > last.end {
                    *last = ValueRange::of_bytes(last.start.clone(), range.end);
                }
            }
            _ => merged.push(range),
        }
    }
    merged
}
