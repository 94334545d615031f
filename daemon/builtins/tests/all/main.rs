//! The built-in tools, called as callers call them: through the engine.

mod bash;
mod grep;
mod house;
mod read;
