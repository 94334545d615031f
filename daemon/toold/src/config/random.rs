//! Random numbers of the system, for ids, tokens and keys.

/// `bytes` random bytes, as hexadecimal digits.
pub fn random_hex(bytes: usize) -> String {
    let mut buffer = vec![0u8; bytes];
    fill_random(&mut buffer);
    buffer.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// For keys.
pub(crate) fn random_bytes() -> [u8; 32] {
    let mut buffer = [0; 32];
    fill_random(&mut buffer);
    buffer
}

fn fill_random(buffer: &mut [u8]) {
    let mut filled = 0;
    while filled < buffer.len() {
        match rustix::rand::getrandom(&mut buffer[filled..], rustix::rand::GetRandomFlags::empty()) {
            Ok(n) => filled += n,
            Err(rustix::io::Errno::INTR) => {}
            Err(error) => panic!("the system gives no random bytes: {error}"),
        }
    }
}
