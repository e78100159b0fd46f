//! What a page of a query costs, as a pure function of what it did.

/// Recorded charges of pages by their rows, with straight lines between them.
const PAGE_CHARGES: [(f64, f64); 4] = [(0.0, 2.2), (1.0, 2.26), (1_000.0, 17.16), (2_500.0, 34.72)];

pub(super) fn page(rows: u64) -> f64 {
    let rows = rows as f64;
    let above = PAGE_CHARGES.iter().position(|(at, _)| *at >= rows).unwrap_or(PAGE_CHARGES.len() - 1).max(1);
    let ((low, from), (high, to)) = (PAGE_CHARGES[above - 1], PAGE_CHARGES[above]);
    from + (to - from) * (rows - low) / (high - low)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_costs_by_its_rows() {
        assert!((page(0) - 2.2).abs() < 1e-9);
        assert!((page(1_000) - 17.16).abs() < 1e-9);
        assert!(page(5_000) > page(2_500));
    }
}
