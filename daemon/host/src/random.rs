//! Random bytes of the system.

use rustix::rand::{GetRandomFlags, getrandom};

/// So many bytes that nobody can guess.
///
/// # Errors
/// The system gives none, in words for people.
pub(crate) fn random<const N: usize>() -> Result<[u8; N], String> {
    let mut bytes = [0; N];
    match getrandom(&mut bytes, GetRandomFlags::empty()) {
        Ok(filled) if filled == N => Ok(bytes),
        Ok(_) => Err("the system gave too few random bytes".to_owned()),
        Err(error) => Err(format!("can't get random bytes: {error}")),
    }
}
