//! The keys of an account: two that may do everything and two that only read.
//!
//! Keys are raw bytes here; whoever reads them from flags or files undoes their base64. An empty key is an absent key:
//! it is never compared with anything, because a signature made with an empty key would be a signature that everybody
//! can make.

/// The four keys of an account.
#[derive(Clone, Default)]
pub struct AccountKeys {
    pub primary: Vec<u8>,
    pub secondary: Vec<u8>,
    pub primary_readonly: Vec<u8>,
    pub secondary_readonly: Vec<u8>,
}

/// Which of the account's keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeySlot {
    Primary,
    Secondary,
    PrimaryReadonly,
    SecondaryReadonly,
}

impl KeySlot {
    /// Whether its holder may do everything, and not only read.
    pub fn writes(self) -> bool {
        matches!(self, KeySlot::Primary | KeySlot::Secondary)
    }
}

impl AccountKeys {
    /// The keys that are there.
    pub fn present(&self) -> impl Iterator<Item = (KeySlot, &[u8])> {
        [
            (KeySlot::Primary, &self.primary),
            (KeySlot::Secondary, &self.secondary),
            (KeySlot::PrimaryReadonly, &self.primary_readonly),
            (KeySlot::SecondaryReadonly, &self.secondary_readonly),
        ]
        .into_iter()
        .filter(|(_, key)| !key.is_empty())
        .map(|(slot, key)| (slot, key.as_slice()))
    }
}

// A key that is printed by accident is a key that has leaked.
impl std::fmt::Debug for AccountKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AccountKeys(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_do_not_show_in_debug_output() {
        let keys = AccountKeys { primary: b"topsecret".to_vec(), ..AccountKeys::default() };
        assert!(!format!("{keys:?}").contains("topsecret"));
    }

    #[test]
    fn an_empty_key_is_absent() {
        let keys = AccountKeys { secondary: vec![1], primary_readonly: vec![2], ..AccountKeys::default() };
        let present: Vec<_> = keys.present().collect();
        assert_eq!(present, [(KeySlot::Secondary, &[1][..]), (KeySlot::PrimaryReadonly, &[2][..])]);
        assert!(KeySlot::Secondary.writes() && !KeySlot::PrimaryReadonly.writes());
    }
}
