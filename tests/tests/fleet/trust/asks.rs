//! Asks and their answers.
