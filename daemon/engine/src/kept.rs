//! What it means that a change could not be stored: the one place that decides it.

use std::fmt::Display;

/// What a change does to what tools and clients may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeEffect {
    /// They may do more. "Done" would be wrong if it were gone, or not gone, after the next start: it is not made at all.
    Widens,
    /// They may do less. It holds from now on in any case, and whoever made it learns that it ends with the daemon.
    Narrows,
}

/// A change could not be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {why}", if *.holds { "this holds only until the daemon stops, because it cannot be stored" } else { "nothing was changed" })]
pub struct NotKept {
    /// Whether it was made all the same.
    pub holds: bool,
    /// As a sentence for the user.
    pub why: String,
}

impl ChangeEffect {
    /// Stores a change and then makes it; one that narrows is made in any case.
    ///
    /// # Errors
    /// It could not be stored.
    pub fn keep<T, E: Display>(
        self,
        store: impl FnOnce() -> Result<T, E>,
        make: impl FnOnce(Option<&T>),
    ) -> Result<T, NotKept> {
        match (store(), self) {
            (Ok(stored), _) => {
                make(Some(&stored));
                Ok(stored)
            }
            (Err(error), Self::Narrows) => {
                make(None);
                Err(NotKept { holds: true, why: error.to_string() })
            }
            (Err(error), Self::Widens) => Err(NotKept { holds: false, why: error.to_string() }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_narrows_is_made_in_any_case() {
        let check = |effect: ChangeEffect, stored: Result<(), &str>, is_made: bool, expected: Result<(), &str>| {
            let mut made = false;
            let kept = effect.keep(|| stored, |_| made = true).map_err(|error| error.to_string());
            assert_eq!((made, kept), (is_made, expected.map_err(str::to_owned)), "{effect:?} {stored:?}");
        };
        check(ChangeEffect::Widens, Ok(()), true, Ok(()));
        check(ChangeEffect::Narrows, Ok(()), true, Ok(()));
        check(ChangeEffect::Widens, Err("full"), false, Err("nothing was changed: full"));
        let words = "this holds only until the daemon stops, because it cannot be stored: full";
        check(ChangeEffect::Narrows, Err("full"), true, Err(words));
    }
}
