//! Corpora that measure rules.
//!
//! [`agents`]: lines in the shell's less common forms, which must be taken apart. [`everyday`]: lines that agents write all day, which their rules must cover without further approvals. [`hostile`]:
//! lines that no one allowed, spelled in every way. Real `bash` runs the lines that are allowed nevertheless, and the
//! test fails for everything run, written or shown beyond the rules. The figures are printed: `cargo test -p toold-host
//! --test host commands:: -- --nocapture`.

mod agents;
mod code_options;
mod corpus;
mod denials;
mod everyday;
mod files;
mod folders;
// Its lines and its sandbox are for GNU and Linux.
#[cfg(target_os = "linux")]
mod hostile;
mod judge;
mod names;
mod operations;
mod other_names;
mod places;
mod random;
mod repositories;
mod rules;
mod shown;
mod spellings;
mod standard_input;
mod ways_around;
mod wrappers;
