//! Daemons whose clock is wrong.

use std::path::{Path, PathBuf};

use crate::daemon::Setup;
use crate::skip_uninstalled;

const LIBRARY: &str = "libfaketime.so.1";

/// The path of the library that gives programs another clock; `None` when it is not installed, which is reported.
#[track_caller]
pub fn faketime_library() -> Option<PathBuf> {
    let places = ["/usr/lib/x86_64-linux-gnu/faketime", "/usr/lib/aarch64-linux-gnu/faketime", "/usr/lib/faketime"];
    let found = places.iter().map(|place| Path::new(place).join(LIBRARY)).find(|path| path.exists());
    if found.is_none() {
        skip_uninstalled(LIBRARY);
    }
    found
}

impl Setup {
    /// Sets the daemon's clock by a variable of the library, such as `FAKETIME=+45s`. Its timers run as they should.
    pub fn clock(self, library: &Path, variable: &str) -> Self {
        let library = format!("LD_PRELOAD={}", library.display());
        self.through(&[
            "/usr/bin/env",
            &library,
            variable,
            "FAKETIME_NO_CACHE=1",
            "FAKETIME_DONT_FAKE_MONOTONIC=1",
            "NO_FAKE_STAT=1",
        ])
    }
}
