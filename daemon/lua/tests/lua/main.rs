//! Plugins as callers and authors see them: through the engine, from files in a folder.

mod authors;
mod calls;
mod carried;
mod compatible;
mod endings;
mod environment;
mod failures;
mod hostile;
mod http;
mod hygge;
mod idioms;
mod kept;
mod limits;
mod offers;
mod oracles;
mod profiles;
mod projects;
mod registering;
mod reloading;
mod shipped;
mod starts;
mod state;
mod system;
mod timers;
mod versions;
mod world;
