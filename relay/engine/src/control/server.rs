//! The Unix socket: one client at a time, the newest wins. What a client loaded stays when it goes.

use std::fs::{self, Permissions};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::protocol::Request;
use super::state::State;
use crate::io::wait_readable;
use crate::log;

/// The longest request. A thousand transceivers in each of 64 regions with several workers fit.
const MAX_LINE: usize = 64 << 20;
/// A client that does not take its reply for so long is gone.
const REPLY_TIMEOUT: Duration = Duration::from_secs(5);
const READ_SIZE: usize = 64 << 10;

/// Creates the socket and serves it for ever. Returns only if the socket cannot be had.
pub fn serve(path: &Path) -> io::Result<()> {
    let listener = bind(path)?;
    let mut state = State::new(Instant::now());
    let mut client: Option<Client> = None;
    loop {
        let mut fds = vec![listener.as_raw_fd()];
        fds.extend(client.as_ref().map(|client| client.stream.as_raw_fd()));
        let ready = wait_readable(&fds, WAIT_MS);
        if ready.is_ready(0) {
            match listener.accept() {
                Ok((stream, _)) => match Client::new(stream) {
                    Ok(newest) => client = Some(newest),
                    Err(error) => {
                        log::warn("a control client could not be taken", &[("error", &error)])
                    }
                },
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => log::warn("accepting a control client failed", &[("error", &error)]),
            }
        } else if ready.is_ready(1)
            && let Some(current) = &mut client
            && let Err(error) = current.turn(&mut state)
        {
            if error.kind() != ErrorKind::UnexpectedEof {
                log::warn("the control client was dropped", &[("error", &error)]);
            }
            client = None;
        }
    }
}

/// Nothing is due without a client's doing; this only bounds a wait.
const WAIT_MS: i32 = 60_000;

struct Client {
    stream: UnixStream,
    pending: Vec<u8>,
    /// Bytes of `pending` that are known to hold no end of line.
    scanned: usize,
}

impl Client {
    fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_nonblocking(false)?;
        stream.set_write_timeout(Some(REPLY_TIMEOUT))?;
        Ok(Self {
            stream,
            pending: Vec::new(),
            scanned: 0,
        })
    }

    /// Reads once and answers every whole line.
    fn turn(&mut self, state: &mut State) -> io::Result<()> {
        let before = self.pending.len();
        self.pending.resize(before + READ_SIZE, 0);
        let read = self.stream.read(&mut self.pending[before..]);
        self.pending.truncate(before + *read.as_ref().unwrap_or(&0));
        if read? == 0 {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        while let Some(end) = self.pending[self.scanned..]
            .iter()
            .position(|&byte| byte == b'\n')
        {
            let rest = self.pending.split_off(self.scanned + end + 1);
            let line = std::mem::replace(&mut self.pending, rest);
            self.scanned = 0;
            let mut reply = answer(state, &line).to_string();
            reply.push('\n');
            self.stream.write_all(reply.as_bytes())?;
        }
        self.scanned = self.pending.len();
        if self.scanned > MAX_LINE {
            return Err(io::Error::new(
                ErrorKind::InvalidData,
                "a request is longer than 64 MiB",
            ));
        }
        Ok(())
    }
}

fn answer(state: &mut State, line: &[u8]) -> Value {
    let request = match serde_json::from_slice::<Request>(line) {
        Ok(request) => request,
        Err(error) => {
            // Even a request that cannot be read may have an id to answer to.
            let id = serde_json::from_slice::<Value>(line)
                .map_or(Value::Null, |value| value["id"].clone());
            return json!({ "id": id, "ok": false, "error": format!("not a request: {error}") });
        }
    };
    match state.handle(request.operation) {
        Ok(mut reply) => {
            reply["id"] = request.id.into();
            reply["ok"] = true.into();
            reply
        }
        Err(error) => json!({ "id": request.id, "ok": false, "error": error }),
    }
}

/// Binds the socket for this user only. A socket that an earlier engine left there is replaced; nothing else is.
fn bind(path: &Path) -> io::Result<UnixListener> {
    if fs::symlink_metadata(path).is_ok_and(|found| found.file_type().is_socket()) {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, Permissions::from_mode(0o600))?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}
