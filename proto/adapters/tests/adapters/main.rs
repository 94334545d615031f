//! Tool calls between toold and a model, as callers of this crate see them.

mod calls;
mod corpus;
mod formats;
mod parser;
mod prompts;
mod properties;
mod tools;
