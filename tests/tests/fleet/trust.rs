//! Messages that a broker, or somebody with access to it, replays, changes or invents.
