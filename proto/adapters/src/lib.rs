//! Between the registry and a model, as pure functions: no I/O, no runtime.
//!
//! - [`providers`]: tools in the form that a provider's API takes, its call blocks in, its result
//!   blocks out.
//! - [`prompt`]: the text that teaches tools to a model without native calls, in one of several
//!   [`families`].
//! - [`parse`]: the calls in such a model's answer, whole or as a stream.
//! - [`agents`]: what other agents are about to do with tools of their own.
//! - [`patch`]: the text of a patch that changes several files.

pub mod agents;
pub mod families;
#[doc(hidden)]
pub mod fuzz;
mod mark;
pub mod parse;
pub mod patch;
pub mod prompt;
pub mod providers;
mod tag_style;
