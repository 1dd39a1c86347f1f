//! A process that the supervisor keeps running.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::io::process::bind_to_this_thread;
use crate::log;

/// One program, with when it is to be started and whether it runs.
pub(super) struct Child {
    pub(super) name: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
    /// Arguments of the next start besides.
    pub(super) more: Vec<OsString>,
    pub(super) pid: Option<u32>,
    pub(super) started: Instant,
    pub(super) start_at: Instant,
    pub(super) backoff: Backoff,
}

impl Child {
    pub(super) fn new(name: &'static str, program: PathBuf, arguments: Vec<OsString>) -> Self {
        let now = Instant::now();
        Self {
            name,
            program,
            arguments,
            more: Vec::new(),
            pid: None,
            started: now,
            start_at: now,
            backoff: Backoff::default(),
        }
    }

    pub(super) fn start(&mut self, now: Instant) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.arguments)
            .args(&self.more)
            .stdin(Stdio::null());
        bind_to_this_thread(&mut command);
        self.pid = Some(command.spawn()?.id());
        self.started = now;
        log::info(
            "process started",
            &[
                ("process", &self.name),
                ("pid", &self.pid.unwrap_or_default()),
            ],
        );
        Ok(())
    }
}

/// How long to wait before a process is started again: not at all the first time, then longer and longer.
#[derive(Debug, Default)]
pub(super) struct Backoff {
    failures: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(5);
    /// A process that ran for so long had not failed to start.
    const STABLE: Duration = Duration::from_secs(10);

    pub(super) fn next_delay(&mut self, ran_for: Duration) -> Duration {
        if ran_for >= Self::STABLE {
            self.failures = 0;
        }
        self.failures += 1;
        match self.failures {
            1 => Duration::ZERO,
            failures => (Self::FIRST * 2_u32.pow((failures - 2).min(10))).min(Self::LONGEST),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_come_at_once_then_ever_later_and_at_once_again_after_a_stable_run() {
        let mut backoff = Backoff::default();
        let mut delays = |times: usize, ran_for| -> Vec<u128> {
            (0..times)
                .map(|_| backoff.next_delay(ran_for).as_millis())
                .collect()
        };
        assert_eq!(
            delays(9, Duration::ZERO),
            [0, 50, 100, 200, 400, 800, 1_600, 3_200, 5_000]
        );
        assert_eq!(delays(1, Duration::from_secs(10)), [0]);
    }
}
