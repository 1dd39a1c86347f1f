//! The supervisor: PID 1 of the relay's container. It keeps the engine and the control plane running, each on its own:
//! a container's restart would turn the pod NotReady and move every flow.

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use std::{env, fs, process};

use crate::io::process::{Ending, Event, Signals, bind_to_this_thread, reap, send_signal};
use crate::log;

/// What a child says when its configuration is wrong: starting it again would not help.
const BAD_CONFIG: i32 = 2;
/// How long a child may take to end before it is killed.
const GRACE: Duration = Duration::from_secs(3);
const KILL: i32 = 9;
const TERMINATE: i32 = 15;

/// Runs `voicecluster-relay-engine run` and `voicecluster-relay` until told to stop.
///
/// The exit code is 0 after a signal, 2 if a child says that its configuration is wrong, 1 if the supervisor cannot work.
pub fn supervise(config: &Path) -> ExitCode {
    let directory = match private_directory() {
        Ok(directory) => directory,
        Err(error) => {
            return fail(&format!(
                "no private directory in {}: {error}",
                env::temp_dir().display()
            ));
        }
    };
    let code = match Supervisor::new(config, &directory.join("control")) {
        Ok(supervisor) => supervisor.run(),
        Err(error) => fail(&error),
    };
    // What is left of a directory of ours in the temporary one harms nobody.
    let _ = fs::remove_dir_all(&directory);
    code
}

struct Supervisor {
    signals: Signals,
    children: [Child; 2],
    stopping: Option<Stop>,
}

struct Child {
    name: &'static str,
    program: PathBuf,
    arguments: Vec<OsString>,
    pid: Option<u32>,
    started: Instant,
    start_at: Instant,
    backoff: Backoff,
}

#[derive(Clone, Copy)]
struct Stop {
    code: u8,
    kill_at: Instant,
}

impl Supervisor {
    fn new(config: &Path, socket: &Path) -> Result<Self, String> {
        let this = env::current_exe()
            .map_err(|error| format!("this program's own file is unknown: {error}"))?;
        let engine = vec!["run".into(), "--control".into(), socket.into()];
        let control = vec![
            "--config".into(),
            config.into(),
            "--control".into(),
            socket.into(),
        ];
        let relay = find_program("voicecluster-relay", &this)?;
        let signals =
            Signals::block().map_err(|error| format!("signals cannot be blocked: {error}"))?;
        let children = [
            Child::new("engine", this, engine),
            Child::new("control plane", relay, control),
        ];
        Ok(Self {
            signals,
            children,
            stopping: None,
        })
    }

    fn run(mut self) -> ExitCode {
        loop {
            let now = Instant::now();
            match self.stopping {
                Some(stop) if self.children.iter().all(|child| child.pid.is_none()) => {
                    return ExitCode::from(stop.code);
                }
                Some(stop) if now >= stop.kill_at => self.signal_all(KILL),
                Some(_) => {}
                None => self.start_due(now),
            }
            match self.signals.wait(self.next_wait(now)) {
                Event::Stop(signal) => self.stop(0, signal, Instant::now()),
                Event::Child | Event::Timeout => {}
            }
            while let Some((pid, ending)) = reap() {
                self.ended(pid, ending, Instant::now());
            }
        }
    }

    fn start_due(&mut self, now: Instant) {
        for child in self
            .children
            .iter_mut()
            .filter(|child| child.pid.is_none() && now >= child.start_at)
        {
            if let Err(error) = child.start(now) {
                log::warn(
                    "a process could not be started",
                    &[("process", &child.name), ("error", &error)],
                );
                child.start_at = now + child.backoff.next_delay(Duration::ZERO);
            }
        }
    }

    fn ended(&mut self, pid: u32, ending: Ending, now: Instant) {
        let Some(child) = self
            .children
            .iter_mut()
            .find(|child| child.pid == Some(pid))
        else {
            return;
        };
        child.pid = None;
        if self.stopping.is_some() {
            return;
        }
        if ending == Ending::Code(BAD_CONFIG) {
            return self.stop(2, TERMINATE, now);
        }
        let delay = child.backoff.next_delay(now - child.started);
        child.start_at = now + delay;
        let (cause, delay) = (format!("{ending:?}"), delay.as_millis());
        log::warn(
            "a process ended and is started again",
            &[
                ("process", &child.name),
                ("cause", &cause),
                ("delay_ms", &delay),
            ],
        );
    }

    fn stop(&mut self, code: u8, signal: i32, now: Instant) {
        self.signal_all(signal);
        self.stopping.get_or_insert(Stop {
            code,
            kill_at: now + GRACE,
        });
    }

    fn signal_all(&self, signal: i32) {
        for pid in self.children.iter().filter_map(|child| child.pid) {
            send_signal(pid, signal);
        }
    }

    /// Until the next thing that is due; never longer than a second, so that nothing hangs on a lost signal.
    fn next_wait(&self, now: Instant) -> Duration {
        let starts = self
            .children
            .iter()
            .filter(|child| child.pid.is_none() && self.stopping.is_none());
        let due = starts
            .map(|child| child.start_at)
            .chain(self.stopping.map(|stop| stop.kill_at))
            .min();
        let until = due.map_or(MAX_WAIT, |at| at.saturating_duration_since(now));
        until.clamp(MIN_WAIT, MAX_WAIT)
    }
}

const MIN_WAIT: Duration = Duration::from_millis(1);
const MAX_WAIT: Duration = Duration::from_secs(1);

impl Child {
    fn new(name: &'static str, program: PathBuf, arguments: Vec<OsString>) -> Self {
        let now = Instant::now();
        Self {
            name,
            program,
            arguments,
            pid: None,
            started: now,
            start_at: now,
            backoff: Backoff::default(),
        }
    }

    fn start(&mut self, now: Instant) -> io::Result<()> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).stdin(Stdio::null());
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
struct Backoff {
    failures: u32,
}

impl Backoff {
    const FIRST: Duration = Duration::from_millis(50);
    const LONGEST: Duration = Duration::from_secs(5);
    /// A process that ran for so long had not failed to start.
    const STABLE: Duration = Duration::from_secs(10);

    fn next_delay(&mut self, ran_for: Duration) -> Duration {
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

/// Looks beside this program first: an installation keeps its programs together.
fn find_program(name: &str, this: &Path) -> Result<PathBuf, String> {
    let beside = this.parent().map(Path::to_path_buf);
    let path = env::var_os("PATH").unwrap_or_default();
    let mut places = beside
        .into_iter()
        .chain(env::split_paths(&path))
        .map(|directory| directory.join(name));
    places.find(|place| place.is_file()).ok_or_else(|| {
        format!(
            "{name} is neither beside {} nor on PATH; install voicecluster[relay]",
            this.display()
        )
    })
}

/// A new directory for this user only.
fn private_directory() -> io::Result<PathBuf> {
    for attempt in 0..100 {
        let path = env::temp_dir().join(format!("voicecluster-relay-{}-{attempt}", process::id()));
        match fs::DirBuilder::new().mode(0o700).create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            result => return result.map(|()| path),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

fn fail(line: &str) -> ExitCode {
    // A closed standard error leaves the exit code.
    let _ = writeln!(io::stderr(), "{line}");
    ExitCode::FAILURE
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
