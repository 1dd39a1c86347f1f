//! `voicecluster-relay-engine`: the engine (`run`) or its supervisor (`supervise`).

#![forbid(unsafe_code)]

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use voicecluster_relay_engine::{control, log, supervise};

const USAGE: &str =
    "usage: voicecluster-relay-engine run --control SOCKET | supervise --config FILE";
const BAD_USAGE: u8 = 2;

fn main() -> ExitCode {
    abort_on_panic();
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let words: Vec<&str> = arguments
        .iter()
        .map(|argument| argument.to_str().unwrap_or_default())
        .collect();
    match (words.as_slice(), arguments.last()) {
        (["run", "--control", _], Some(socket)) => run(Path::new(socket)),
        (["supervise", "--config", _], Some(file)) => supervise::supervise(Path::new(file)),
        _ => fail(BAD_USAGE, USAGE),
    }
}

fn run(socket: &Path) -> ExitCode {
    match control::serve(socket) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => fail(
            1,
            &format!(
                "{}: cannot serve the control socket: {error}",
                socket.display()
            ),
        ),
    }
}

fn fail(code: u8, line: &str) -> ExitCode {
    use std::io::Write;
    // A closed standard error leaves the exit code.
    let _ = writeln!(std::io::stderr(), "{line}");
    ExitCode::from(code)
}

/// A worker that died would take its flows with it unnoticed: end the process, the supervisor starts it again.
fn abort_on_panic() {
    std::panic::set_hook(Box::new(|panic| {
        log::warn("engine bug: aborting", &[("panic", panic)]);
        std::process::abort();
    }));
}
