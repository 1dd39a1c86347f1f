//! Waiting for sockets.

use std::os::fd::RawFd;

/// Which of the waited-for descriptors have something to say, in their order.
#[derive(Clone, Debug, Default)]
pub struct Readiness(Vec<libc::pollfd>);

impl Readiness {
    /// Prepares to wait for `fds`.
    pub fn new(fds: &[RawFd]) -> Self {
        Self(
            fds.iter()
                .map(|&fd| libc::pollfd {
                    fd,
                    events: libc::POLLIN,
                    revents: 0,
                })
                .collect(),
        )
    }

    /// Waits until one is readable (or closed), for at most `millis`. An interrupted wait is a short one.
    pub fn wait(&mut self, millis: i32) {
        for fd in &mut self.0 {
            fd.revents = 0;
        }
        // SAFETY: the pointer and the count are those of one vector, borrowed mutably for the whole call.
        unsafe { libc::poll(self.0.as_mut_ptr(), self.0.len() as libc::nfds_t, millis) };
    }

    /// Whether the descriptor at this place can be read, or has an error that reading tells.
    pub fn is_ready(&self, at: usize) -> bool {
        self.0.get(at).is_some_and(|fd| fd.revents != 0)
    }
}

/// Waits for any of `fds`, for at most `millis`.
pub fn wait_readable(fds: &[RawFd], millis: i32) -> Readiness {
    let mut readiness = Readiness::new(fds);
    readiness.wait(millis);
    readiness
}
