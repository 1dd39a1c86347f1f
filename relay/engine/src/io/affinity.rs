//! Pinning a thread to a processor.

use std::io;

/// Pins the calling thread to the `nth` of the processors that it may use, counting round.
pub(super) fn pin_to_nth(nth: usize) -> io::Result<()> {
    let mut allowed = empty_set();
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: `allowed` is a `cpu_set_t` of the size given; the kernel fills it during the call.
    if unsafe { libc::sched_getaffinity(0, size, &raw mut allowed) } != 0 {
        return Err(io::Error::last_os_error());
    }
    let usable: Vec<usize> = (0..libc::CPU_SETSIZE as usize)
        // SAFETY: the macro reads one bit of `allowed`; `cpu` is below CPU_SETSIZE.
        .filter(|&cpu| unsafe { libc::CPU_ISSET(cpu, &allowed) })
        .collect();
    let Some(&cpu) = usable.get(nth % usable.len().max(1)) else {
        return Ok(());
    };
    let mut wanted = empty_set();
    // SAFETY: the macro sets one bit of `wanted`; `cpu` is below CPU_SETSIZE.
    unsafe { libc::CPU_SET(cpu, &mut wanted) };
    // SAFETY: `wanted` is a `cpu_set_t` of the size given; the kernel only reads it.
    match unsafe { libc::sched_setaffinity(0, size, &raw const wanted) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

fn empty_set() -> libc::cpu_set_t {
    // SAFETY: `cpu_set_t` is an array of integers; all zeros is the empty set.
    unsafe { std::mem::zeroed() }
}
