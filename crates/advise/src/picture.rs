//! A distribution as bars for a terminal.

const LEVELS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// One sign for each slot, as high as its share of the fullest.
pub fn bars(slots: &[u64]) -> String {
    let most = slots.iter().copied().max().unwrap_or(0).max(1);
    let level = |slot: &u64| match slot {
        0 => ' ',
        size => LEVELS[(size * (LEVELS.len() as u64 - 1) / most) as usize],
    };
    slots.iter().map(level).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn bars_are_as_high_as_their_share() {
        assert_eq!(super::bars(&[0, 1, 50, 100]), " ▁▄█");
        assert_eq!(super::bars(&[]), "");
    }
}
