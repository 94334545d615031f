//! Two corpora that a rule is measured by.
//!
//! [`everyday`]: what agents write all day, which their rules must cover without further approvals. [`hostile`]: what
//! nobody allowed, spelled in every way; real `bash` runs what was allowed, and whatever it ran, wrote or showed beyond
//! the rules fails. The figures are printed: `cargo test -p toold-host --test commands -- --nocapture`.

mod corpus;
mod everyday;
mod folders;
// Its lines and its walls are those of GNU and Linux.
#[cfg(target_os = "linux")]
mod hostile;
mod judge;
