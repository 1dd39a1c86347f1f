//! The supervisor: PID 1 of the relay's container. It keeps the engine and the control plane running, each on its own:
//! a container's restart would turn the pod NotReady and move every flow.
//!
//! Told to stop by SIGTERM, it tells the control plane first and the engine only when that has ended: until then the
//! control plane may be leaving (DESIGN section 2, rule 9), while packets still come. One that does leave says so
//! within three seconds by a file `leaving` beside the control socket, with the seconds it may take. If it is killed
//! meanwhile, it is started again with `--leaving SECONDS`, how long ago the signal came. A second signal, and SIGINT,
//! end both at once.

#![forbid(unsafe_code)]

mod child;
mod scratch;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};
use std::{env, fs};

use self::child::Child;
use self::scratch::Scratch;
use crate::io::process::{Ending, Event, INTERRUPT, KILL, Signals, TERMINATE, reap, send_signal};
use crate::log;

/// What a child says when its configuration is wrong: starting it again would not help.
const BAD_CONFIG: i32 = 2;
/// How long a child may take to end, or to say that it is leaving, before it is killed.
const GRACE: Duration = Duration::from_secs(3);
/// The longest that leaving may take, whatever the control plane says.
const MOST_LEAVING: Duration = Duration::from_secs(86_400);
/// The control plane's place among the children; the engine is the first.
const CONTROL: usize = 1;

/// Runs `voicecluster-relay-engine run` and `voicecluster-relay` until told to stop.
///
/// The exit code is 0 after a signal, 2 if a child says that its configuration is wrong, 1 if the supervisor cannot work.
pub fn supervise(config: &Path) -> ExitCode {
    let scratch = match Scratch::new() {
        Ok(scratch) => scratch,
        Err(error) => {
            return fail(&format!(
                "no private directory in {}: {error}",
                env::temp_dir().display()
            ));
        }
    };
    match Supervisor::new(config, scratch.path()) {
        Ok(supervisor) => supervisor.run(),
        Err(error) => fail(&error),
    }
}

struct Supervisor {
    signals: Signals,
    children: [Child; 2],
    leaving_file: PathBuf,
    phase: Phase,
}

#[derive(Clone, Copy)]
enum Phase {
    Running,
    /// The control plane was told to stop, and decides when the engine ends. `since` is when that was.
    Leaving {
        since: Instant,
        until: Instant,
    },
    Stopping(Stop),
}

#[derive(Clone, Copy)]
struct Stop {
    code: u8,
    kill_at: Instant,
}

impl Supervisor {
    fn new(config: &Path, directory: &Path) -> Result<Self, String> {
        let socket = directory.join("control");
        let this = env::current_exe()
            .map_err(|error| format!("this program's own file is unknown: {error}"))?;
        let engine = vec!["run".into(), "--control".into(), socket.clone().into()];
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
            leaving_file: directory.join("leaving"),
            phase: Phase::Running,
        })
    }

    fn run(mut self) -> ExitCode {
        loop {
            let now = Instant::now();
            match self.phase {
                Phase::Stopping(stop) if self.children.iter().all(|child| child.pid.is_none()) => {
                    return ExitCode::from(stop.code);
                }
                Phase::Stopping(stop) if now >= stop.kill_at => self.signal_all(KILL),
                Phase::Stopping(_) => {}
                Phase::Leaving { since, until } if now >= until => self.leave_on(since, until, now),
                Phase::Leaving { .. } | Phase::Running => self.start_due(now),
            }
            match self.signals.wait(self.next_wait(now)) {
                Event::Stop(signal) => self.told(signal, Instant::now()),
                Event::Child | Event::Timeout => {}
            }
            while let Some((pid, ending)) = reap() {
                self.ended(pid, ending, Instant::now());
            }
        }
    }

    fn told(&mut self, signal: i32, now: Instant) {
        match self.phase {
            Phase::Running if signal != INTERRUPT => {
                self.phase = Phase::Leaving {
                    since: now,
                    until: now + GRACE,
                };
                match self.children[CONTROL].pid {
                    Some(pid) => send_signal(pid, signal),
                    None => self.children[CONTROL].start_at = now,
                }
            }
            Phase::Running | Phase::Leaving { .. } | Phase::Stopping(_) => {
                self.stop(0, signal, now)
            }
        }
    }

    /// The time to leave is over, unless the control plane has said that it needs more.
    fn leave_on(&mut self, since: Instant, until: Instant, now: Instant) {
        let said = fs::read_to_string(&self.leaving_file).ok();
        let seconds = said.and_then(|text| text.trim().parse().ok());
        let wanted = Duration::from_secs(seconds.unwrap_or(0)).min(MOST_LEAVING);
        if since + wanted > until {
            self.phase = Phase::Leaving {
                since,
                until: since + wanted,
            };
            return;
        }
        self.signal_all(TERMINATE);
        self.phase = Phase::Stopping(Stop {
            code: 0,
            kill_at: now,
        });
    }

    fn start_due(&mut self, now: Instant) {
        if let Phase::Leaving { since, .. } = self.phase {
            let elapsed = format!("{:.3}", (now - since).as_secs_f64());
            self.children[CONTROL].more = vec!["--leaving".into(), elapsed.into()];
        }
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
        let Some(at) = self
            .children
            .iter()
            .position(|child| child.pid == Some(pid))
        else {
            return;
        };
        self.children[at].pid = None;
        match (self.phase, ending) {
            (Phase::Stopping(_), _) => return,
            (_, Ending::Code(BAD_CONFIG)) => return self.stop(2, TERMINATE, now),
            (Phase::Leaving { .. }, Ending::Code(0) | Ending::Signal(TERMINATE))
                if at == CONTROL =>
            {
                return self.stop(0, TERMINATE, now);
            }
            (Phase::Leaving { .. } | Phase::Running, Ending::Code(_) | Ending::Signal(_)) => {}
        }
        let child = &mut self.children[at];
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
        if !matches!(self.phase, Phase::Stopping(_)) {
            self.phase = Phase::Stopping(Stop {
                code,
                kill_at: now + GRACE,
            });
        }
    }

    fn signal_all(&self, signal: i32) {
        for pid in self.children.iter().filter_map(|child| child.pid) {
            send_signal(pid, signal);
        }
    }

    /// Until the next thing that is due; never longer than a second, so that nothing hangs on a lost signal.
    fn next_wait(&self, now: Instant) -> Duration {
        let starts = self.children.iter().filter(|child| child.pid.is_none());
        let next_start = starts.map(|child| child.start_at).min();
        let due = match self.phase {
            Phase::Running => next_start,
            Phase::Leaving { until, .. } => next_start.into_iter().chain([until]).min(),
            Phase::Stopping(stop) => Some(stop.kill_at),
        };
        let until = due.map_or(MAX_WAIT, |at| at.saturating_duration_since(now));
        until.clamp(MIN_WAIT, MAX_WAIT)
    }
}

const MIN_WAIT: Duration = Duration::from_millis(1);
const MAX_WAIT: Duration = Duration::from_secs(1);

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

fn fail(line: &str) -> ExitCode {
    // A closed standard error leaves the exit code.
    let _ = writeln!(io::stderr(), "{line}");
    ExitCode::FAILURE
}
