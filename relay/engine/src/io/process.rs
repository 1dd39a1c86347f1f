//! What a supervisor needs of the kernel: signals as events, children that die with it, reaping.

use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;
use std::time::Duration;

/// The signals that a supervisor deals in.
pub const INTERRUPT: i32 = libc::SIGINT;
/// See [`INTERRUPT`].
pub const TERMINATE: i32 = libc::SIGTERM;
/// See [`INTERRUPT`].
pub const KILL: i32 = libc::SIGKILL;

/// What a supervisor waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Event {
    /// SIGTERM or SIGINT: end. The number is to be passed on.
    Stop(i32),
    /// Some child ended; see [`reap`].
    Child,
    /// Nothing happened in time.
    Timeout,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Ending {
    /// It exited with this code.
    Code(i32),
    /// This signal killed it.
    Signal(i32),
}

/// The signals of a supervisor, blocked so that [`Signals::wait`] gets them.
pub struct Signals(libc::sigset_t);

impl Signals {
    /// Blocks them in this thread. To be called before any other thread exists.
    pub fn block() -> io::Result<Self> {
        let mut set = empty_set();
        for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGCHLD] {
            // SAFETY: `set` is an initialised signal set of ours, and the signal numbers are valid.
            unsafe { libc::sigaddset(&raw mut set, signal) };
        }
        // SAFETY: `set` outlives the call, and the old mask is not asked for.
        match unsafe { libc::sigprocmask(libc::SIG_BLOCK, &raw const set, std::ptr::null_mut()) } {
            0 => Ok(Self(set)),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Waits for one of them, for at most `limit`.
    pub fn wait(&self, limit: Duration) -> Event {
        let timeout = libc::timespec {
            tv_sec: libc::time_t::try_from(limit.as_secs()).unwrap_or(libc::time_t::MAX),
            tv_nsec: limit.subsec_nanos().into(),
        };
        // SAFETY: the set and the timeout outlive the call; no signal information is asked for.
        match unsafe {
            libc::sigtimedwait(&raw const self.0, std::ptr::null_mut(), &raw const timeout)
        } {
            libc::SIGCHLD => Event::Child,
            signal if signal > 0 => Event::Stop(signal),
            _ => Event::Timeout,
        }
    }
}

/// Makes a command's process die when the calling thread dies, and receive signals as usual.
pub fn bind_to_this_thread(command: &mut Command) {
    let parent = std::process::id();
    let prepare = move || {
        let none = empty_set();
        // SAFETY: sigprocmask, prctl, getppid are async-signal-safe, as code between fork and exec has to be; `none`
        // outlives its call.
        let failed = unsafe {
            libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut()) != 0
                || libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) != 0
        };
        if failed {
            return Err(io::Error::last_os_error());
        }
        // The parent may have died before the kernel was told.
        match std::os::unix::process::parent_id() == parent {
            true => Ok(()),
            false => Err(io::Error::from(io::ErrorKind::BrokenPipe)),
        }
    };
    // SAFETY: `prepare` makes system calls only: it neither allocates, nor locks, nor touches memory of other threads.
    unsafe { command.pre_exec(prepare) };
}

/// Takes the exit status of one child that has ended, also of one that was only inherited (as PID 1).
pub fn reap() -> Option<(u32, Ending)> {
    let mut status = 0;
    // SAFETY: `status` is ours and outlives the call.
    let pid = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
    let pid = u32::try_from(pid).ok().filter(|&pid| pid > 0)?;
    let ending = if libc::WIFSIGNALED(status) {
        Ending::Signal(libc::WTERMSIG(status))
    } else {
        Ending::Code(libc::WEXITSTATUS(status))
    };
    Some((pid, ending))
}

/// Sends a signal to a child that has not been reaped, so that the number is still its own.
pub fn send_signal(pid: u32, signal: i32) {
    if let Ok(pid) = libc::pid_t::try_from(pid) {
        // SAFETY: `kill` takes integers only.
        unsafe { libc::kill(pid, signal) };
    }
}

fn empty_set() -> libc::sigset_t {
    // SAFETY: `sigset_t` is an array of integers, so zeros are a valid value, which sigemptyset then makes the empty set.
    unsafe {
        let mut set = std::mem::zeroed();
        libc::sigemptyset(&raw mut set);
        set
    }
}
