//! What a database or a container may be called.

use crate::error::{Error, Result};

/// Longest name, in characters.
pub const NAME_CHARACTERS_MAX: usize = 255;

pub(crate) fn check(name: &str) -> Result<()> {
    if name.is_empty() || name.chars().count() > NAME_CHARACTERS_MAX {
        // The name is repeated in part: an endless one must not make an endless answer.
        let start: String = name.chars().take(NAME_CHARACTERS_MAX).collect();
        return Err(Error::bad_request(format!(
            "The input name '{start}' is invalid. Ensure to provide a unique non-empty string less than \
             '{NAME_CHARACTERS_MAX}' characters."
        )));
    }
    // These end or divide the path of a URL, where names stand.
    if name.chars().any(|character| matches!(character, '/' | '\\' | '?' | '#') || character.is_control()) {
        return Err(Error::bad_request("The input name presented contains invalid character."));
    }
    if name.ends_with(' ') {
        return Err(Error::bad_request("The input name presented ends with a space."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_refused(name: &str, text: &str) {
        let error = check(name).expect_err("must be refused");
        assert!(error.message.contains(text), "{name}: {error}");
    }

    #[test]
    fn names_are_free_but_for_what_divides_a_url() {
        for name in ["a", "a b", " a", "日本", "!@$%^&*()-~`'_[]{}|;:,.<>", &"ü".repeat(255)] {
            check(name).unwrap();
        }
        for name in ["a/", "a\\b", "a?", "a#b", "a\tb", "a\n"] {
            check_refused(name, "The input name presented contains invalid character.");
        }
        check_refused("a ", "ends with a space");
    }

    #[test]
    fn empty_and_long_names_are_refused_with_the_services_text() {
        for name in ["", &"a".repeat(256)] {
            check_refused(name, "Ensure to provide a unique non-empty string less than '255' characters.");
        }
    }
}
