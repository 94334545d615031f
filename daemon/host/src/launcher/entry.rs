//! The launcher's first instructions, for a program that is not confined. They need no C library, and so skip its start:
//! it asks the processor for its features with `cpuid`, some forty times. A virtual machine's hypervisor answers each in
//! ten microseconds or more, and together they take half as long as the start of a shell.
//!
//! Whatever goes wrong here is left to [the usual way](super::order), which tries again and reports it. Nothing is set up
//! yet: no relocations, no thread-local storage, no functions of the C library, not even those that the compiler calls by
//! itself. So all code here is in place, and memory is read byte by byte.
#![allow(unsafe_code, reason = "nothing safe runs before the C library has started")]

use std::arch::{asm, naked_asm};
use std::ptr::read_volatile;

unsafe extern "C" {
    fn _start() -> !;
}

/// Where the program starts, by an option for the linker in `build.rs`. The stack holds the number of arguments, their
/// addresses, zero, and the addresses of the environment.
#[unsafe(naked)]
#[unsafe(no_mangle)]
unsafe extern "C" fn launcher_entry() -> ! {
    naked_asm!(
        "mov rbx, rsp",
        "mov rdi, rsp",
        "and rsp, -16",
        "call {launch}",
        // The state in which the kernel starts a program.
        "mov rsp, rbx",
        "xor edx, edx",
        "jmp {start}",
        launch = sym launch,
        start = sym _start,
    )
}

/// Becomes the program of the arguments `launch MARK PROGRAM …`; returns for others, and on failure.
unsafe extern "C" fn launch(stack: *const usize) {
    const SETSID: usize = 112;
    const PRLIMIT: usize = 302;
    const EXECVE: usize = 59;
    const RLIMIT_MSGQUEUE: usize = 12;
    // SAFETY: the kernel has put this there, and each argument is a C string. The calls read what they are given: the two
    // numbers of a limit, and a program's path, arguments and environment.
    unsafe {
        let (count, arguments) = (*stack, stack.add(1));
        if count < 4 || read_volatile(*arguments.add(1) as *const u8) != b'l' {
            return;
        }
        let Some(mark) = number(*arguments.add(2) as *const u8) else { return };
        call(SETSID, [0; 4]);
        let limit = [mark; 2];
        if call(PRLIMIT, [0, RLIMIT_MSGQUEUE, &raw const limit as usize, 0]) == 0 {
            let program = arguments.add(3);
            call(EXECVE, [*program, program as usize, arguments.add(count + 1) as usize, 0]);
        }
    }
}

/// A number in decimal digits.
unsafe fn number(mut digits: *const u8) -> Option<u64> {
    let mut number = 0u64;
    loop {
        // SAFETY: the caller passes a C string, and nothing behind its end is read.
        let digit = unsafe { read_volatile(digits) };
        match digit {
            b'0'..=b'9' => number = number.checked_mul(10)?.checked_add(u64::from(digit - b'0'))?,
            0 => return (number > 0).then_some(number),
            _ => return None,
        }
        // SAFETY: this was not the end.
        digits = unsafe { digits.add(1) };
    }
}

unsafe fn call(number: usize, [first, second, third, fourth]: [usize; 4]) -> usize {
    let returned;
    // SAFETY: the caller passes what the call takes. The kernel changes these registers only.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") number => returned,
            in("rdi") first,
            in("rsi") second,
            in("rdx") third,
            in("r10") fourth,
            out("rcx") _,
            out("r11") _,
            options(nostack),
        );
    }
    returned
}
