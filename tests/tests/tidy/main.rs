//! Rules that keep the workspace easy to read: dependencies between crates and modules, names, documents, words.

mod dependencies;
mod links;
mod modules;
mod opens;
mod picture;
mod programs;
mod source_texts;
mod sources;
mod type_names;
mod unsafe_code;
mod versions;
mod words;
