//! Plugins as callers and authors see them: through the engine, from files in a folder.

mod calls;
mod hostile;
mod limits;
mod registering;
mod reloading;
mod shipped;
mod system;
mod world;
