//! The outcomes of calls, as values of options.

use toold_proto::event::Outcome;

/// The outcomes that a call can have.
pub(crate) const OUTCOMES: [Outcome; 9] = [
    Outcome::Ok,
    Outcome::Error,
    Outcome::Denied,
    Outcome::TimedOut,
    Outcome::Cancelled,
    Outcome::InvalidArgs,
    Outcome::Overloaded,
    Outcome::Failed,
    Outcome::Skipped,
];
