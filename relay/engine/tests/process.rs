//! The program itself: real sockets on loopback, the control socket, the supervisor.

mod common;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use common::{CLUSTER, binding_request, stun};
use serde_json::{Value, json};
use voicecluster_wire::hint::{HintKey, KeyId, Nonce, Route};
use voicecluster_wire::spp;

const PROGRAM: &str = env!("CARGO_BIN_EXE_voicecluster-relay-engine");
const PATIENCE: Duration = Duration::from_secs(10);

#[test]
fn a_call_goes_both_ways_over_ipv4_ipv6_and_a_wildcard_and_is_counted() {
    let directory = Directory::new();
    let engine = Engine::start(&directory);
    let mut control = engine.control();
    let owner = socket("127.0.101.9");
    let listeners = [free("127.0.101.1"), free("::1"), free("0.0.0.0")];
    let vips = ["203.0.113.1:3478", "[2001:db8::1]:3478", "203.0.113.2:3478"];
    let reached = [
        listeners[0],
        listeners[1],
        format!("127.0.101.3:{}", listeners[2].port())
            .parse()
            .expect("address"),
    ];
    let settings: Vec<Value> = (0..3)
        .map(|at| json!({"name": "vip", "bind": listeners[at], "advertise": vips[at]}))
        .collect();
    let backbone = free("127.0.101.8");
    control
        .ask(json!({"op": "configure", "workers": 2, "backbone": backbone, "listeners": settings}));
    control.load(local(&owner));
    for at in 0..3 {
        let client = socket(if at == 1 { "::1" } else { "127.0.101.4" });
        let check = binding_request(&ufrag(at as u64));
        client.send_to(&check, reached[at]).expect("send");
        let (datagram, relay) = receive(&owner);
        let header = spp::decode(&datagram).expect("SPP");
        let vip: SocketAddr = vips[at].parse().expect("address");
        assert_eq!(
            (header.client, header.proxy, relay),
            (local(&client), vip, backbone)
        );
        assert_eq!(&datagram[spp::LEN..], check);
        for payload in [stun(0x0101, &[]), vec![0x80; 200]] {
            let mut reply = [0; spp::LEN];
            spp::encode(&mut reply, header.client, header.proxy);
            owner
                .send_to(&[&reply[..], &payload].concat(), backbone)
                .expect("send");
            assert_eq!(receive(&client), (payload, reached[at]));
        }
        client.send_to(&[0x80; 1_472], reached[at]).expect("send");
        assert_eq!(receive(&owner).0.len(), spp::LEN + 1_472);
        client.send_to(&[0x80; 1_473], reached[at]).expect("send");
        client.send_to(&[], reached[at]).expect("send");
    }
    let stats = control
        .wait_for(|stats| sum(stats, "/drops/oversize") == 3 && sum(stats, "/drops/empty") == 3);
    assert_eq!(
        stats["flows"],
        json!({"provisional": 0, "confirmed": 3, "challenged": 0})
    );
    assert_eq!((&stats["routes"], &stats["keys"]), (&json!(1), &json!(1)));
    let check = binding_request(&ufrag(0)).len() as u64;
    let counted = [
        sum(&stats, "/packets/client_to_transceiver"),
        sum(&stats, "/packets/transceiver_to_client"),
        sum(&stats, "/bytes/client_to_transceiver"),
        sum(&stats, "/bytes/transceiver_to_client"),
        sum(&stats, "/decodes/ok"),
    ];
    assert_eq!(counted, [6, 6, 3 * (check + 1_472), 3 * 220, 3]);
    assert_eq!(control.ask(json!({"op": "ping"}))["alive"], json!(true));
}

#[test]
fn garbage_from_inside_and_outside_is_dropped_by_reason() {
    let directory = Directory::new();
    let engine = Engine::start(&directory);
    let mut control = engine.control();
    let (listener, backbone) = (free("127.0.101.11"), free("127.0.101.18"));
    control.configure(listener, backbone);
    let stranger = socket("127.0.101.14");
    let mut foreign = [0; spp::LEN + 1];
    let header = foreign.first_chunk_mut().expect("long enough");
    spp::encode(
        header,
        local(&stranger),
        "203.0.113.1:3478".parse().expect("address"),
    );
    for (target, datagram) in [
        (listener, &[0x80; 30][..]),
        (listener, &[0, 1, 0]),
        (backbone, &[7; 50]),
        (backbone, &foreign),
    ] {
        stranger.send_to(datagram, target).expect("send");
    }
    let stats = control.wait_for(|stats| {
        sum(stats, "/drops/unknown_flow") == 2
            && sum(stats, "/drops/bad_stun") == 1
            && sum(stats, "/drops/bad_spp") == 1
    });
    assert_eq!(
        sum(&stats, "/packets/client_to_transceiver")
            + sum(&stats, "/packets/transceiver_to_client"),
        0
    );
}

#[test]
fn a_taken_port_is_named_and_nothing_is_left_half_open() {
    let directory = Directory::new();
    let engine = Engine::start(&directory);
    let mut control = engine.control();
    let (listener, taken) = (free("127.0.101.21"), socket("127.0.101.28"));
    let refused = control.send(
        json!({"op": "configure", "workers": 1, "backbone": local(&taken),
        "listeners": [{"name": "vip", "bind": listener, "advertise": listener}]}),
    );
    assert_eq!(
        refused["error"],
        json!(format!("port taken: {}/udp is in use", local(&taken)))
    );
    let backbone = local(&taken);
    drop(taken);
    control.configure(listener, backbone);
}

#[test]
fn two_engines_never_share_a_port_unnoticed() {
    let directory = Directory::new();
    let (first, second) = (Engine::start(&directory), Engine::start(&directory));
    let (listener, backbone) = (free("127.0.101.31"), free("127.0.101.38"));
    first.control().configure(listener, backbone);
    let refused = second.control().send(
        json!({"op": "configure", "workers": 1, "backbone": backbone,
        "listeners": [{"name": "vip", "bind": listener, "advertise": listener}]}),
    );
    assert_eq!(
        refused["error"],
        json!(format!("port taken: {listener}/udp is in use"))
    );
}

#[test]
fn other_sockets_need_a_restart_and_other_limits_do_not() {
    let directory = Directory::new();
    let engine = Engine::start(&directory);
    let mut control = engine.control();
    let (listener, backbone) = (free("127.0.101.41"), free("127.0.101.48"));
    control.configure(listener, backbone);
    control.configure(listener, backbone);
    let refused = control.send(
        json!({"op": "configure", "workers": 2, "backbone": backbone,
        "listeners": [{"name": "vip", "bind": listener, "advertise": listener}]}),
    );
    assert!(
        refused["error"]
            .as_str()
            .is_some_and(|error| error.starts_with("restart needed")),
        "{refused}"
    );
}

#[test]
fn another_vip_is_taken_up_while_the_engine_runs() {
    let directory = Directory::new();
    let engine = Engine::start(&directory);
    let mut control = engine.control();
    let owner = socket("127.0.101.59");
    let (listener, backbone) = (free("127.0.101.51"), free("127.0.101.58"));
    control.load(local(&owner));
    let client = socket("127.0.101.54");
    for vip in ["203.0.113.1:3478", "198.51.100.1:3478"] {
        control.ask(
            json!({"op": "configure", "workers": 2, "backbone": backbone,
            "listeners": [{"name": "vip", "bind": listener, "advertise": vip}]}),
        );
        client
            .send_to(&binding_request(&ufrag(1)), listener)
            .expect("send");
        let header = spp::decode(&receive(&owner).0).expect("SPP");
        assert_eq!(header.proxy, vip.parse().expect("address"));
    }
    let stats = control.ask(json!({"op": "stats"}));
    assert_eq!(
        (&stats["flows"]["provisional"], sum(&stats, "/decodes/ok")),
        (&json!(1), 1)
    );
}

#[test]
fn snapshots_outlive_their_client_and_the_newest_client_wins() {
    let directory = Directory::new();
    let engine = Engine::start(&directory);
    let mut first = engine.control();
    first.load("127.0.0.1:9".parse().expect("address"));
    let mut second = engine.control();
    let stats = second.ask(json!({"op": "stats"}));
    assert_eq!((&stats["routes"], &stats["keys"]), (&json!(1), &json!(1)));
    let mut line = String::new();
    assert_eq!(first.0.read_line(&mut line).expect("end of stream"), 0);
}

#[test]
fn what_is_no_request_gets_a_one_line_error_and_changes_nothing() {
    let directory = Directory::new();
    let engine = Engine::start(&directory);
    let mut control = engine.control();
    control.load("127.0.0.1:9".parse().expect("address"));
    let twice = json!({"cluster": 7, "ordinal": 1, "worker": 0, "address": "127.0.0.1:9"});
    let bad = [
        json!({"op": "reboot"}),
        json!({"op": "routes"}),
        json!({"op": "routes", "routes": [twice, twice]}),
        json!({"op": "routes", "routes": [{"cluster": 0, "ordinal": 1, "worker": 0, "address": "127.0.0.1:9"}]}),
        json!({"op": "keys", "clusters": {"7": {"A": "c2hvcnQ="}}}),
        json!({"op": "configure", "workers": 0, "backbone": "127.0.0.1:9", "listeners": []}),
    ];
    for request in bad {
        let reply = control.send(request);
        let error = reply["error"].as_str().unwrap_or_default();
        assert!(
            reply["ok"] == json!(false) && !error.is_empty() && !error.contains('\n'),
            "{reply}"
        );
        assert!(
            !error.contains("c2hvcnQ"),
            "a key's text in an error: {error}"
        );
    }
    let stats = control.ask(json!({"op": "stats"}));
    assert_eq!((&stats["routes"], &stats["keys"]), (&json!(1), &json!(1)));
}

#[test]
fn the_supervisor_restarts_what_is_killed_and_ends_everything_when_told() {
    let directory = Directory::new();
    let mut supervisor = Supervisor::start(
        &directory,
        "echo $$ >> pids; echo $4 > socket; exec sleep 60",
    );
    let pids = directory.path("pids");
    wait_until(|| fs::read_to_string(&pids).is_ok_and(|text| text.lines().count() == 1));
    let socket = PathBuf::from(wait_for_text(&directory.path("socket")));
    wait_until(|| socket.exists());
    let mode = |path: &Path| {
        fs::metadata(path)
            .map(|found| found.permissions().mode() & 0o777)
            .ok()
    };
    wait_until(|| mode(&socket) == Some(0o600));
    assert_eq!(mode(socket.parent().expect("directory")), Some(0o700));
    kill(wait_for_text(&pids).parse().expect("pid"), 9);
    wait_until(|| fs::read_to_string(&pids).is_ok_and(|text| text.lines().count() == 2));
    let second: u32 = fs::read_to_string(&pids)
        .expect("pids")
        .lines()
        .last()
        .expect("line")
        .parse()
        .expect("pid");
    kill(supervisor.0.id(), 15);
    assert_eq!(supervisor.wait().code(), Some(0));
    assert!(
        !Path::new(&format!("/proc/{second}")).exists(),
        "a child outlived its supervisor"
    );
    assert!(!socket.parent().expect("directory").exists());
}

#[test]
fn the_engine_runs_until_the_control_plane_has_left() {
    let directory = Directory::new();
    let mut supervisor = Supervisor::start(
        &directory,
        "trap 'echo 60 > $(dirname $4)/leaving; echo yes > told' TERM; echo $4 > socket; until [ -e left ]; do sleep 0.05; done",
    );
    let socket = PathBuf::from(wait_for_text(&directory.path("socket")));
    wait_until(|| UnixStream::connect(&socket).is_ok());
    kill(supervisor.0.id(), 15);
    wait_for_text(&directory.path("told"));
    assert!(UnixStream::connect(&socket).is_ok());
    fs::write(directory.path("left"), "").expect("file");
    assert_eq!(supervisor.wait().code(), Some(0));
}

#[test]
fn a_control_plane_that_is_killed_while_leaving_comes_back_to_leave() {
    let directory = Directory::new();
    let mut supervisor = Supervisor::start(
        &directory,
        "trap 'echo 60 > $(dirname $4)/leaving; echo $$ > told' TERM; echo $* > arguments; \
         [ -z \"$5\" ] || exit 0; touch started; while :; do sleep 0.05; done",
    );
    wait_until(|| directory.path("started").exists());
    kill(supervisor.0.id(), 15);
    kill(
        wait_for_text(&directory.path("told")).parse().expect("pid"),
        9,
    );
    assert_eq!(supervisor.wait().code(), Some(0));
    let arguments = wait_for_text(&directory.path("arguments"));
    let (flag, elapsed) = arguments
        .rsplit_once(' ')
        .expect("arguments of the second start");
    assert!(
        flag.ends_with(" --leaving") && elapsed.parse::<f64>().is_ok_and(|seconds| seconds < 60.0),
        "{arguments}"
    );
}

#[test]
fn a_second_signal_ends_a_relay_that_is_leaving_at_once() {
    let directory = Directory::new();
    let mut supervisor = Supervisor::start(
        &directory,
        "trap 'echo 60 > $(dirname $4)/leaving; [ -e told ] && exit 0; echo yes > told' TERM; \
         touch started; while :; do sleep 0.05; done",
    );
    wait_until(|| directory.path("started").exists());
    kill(supervisor.0.id(), 15);
    wait_for_text(&directory.path("told"));
    let told = Instant::now();
    kill(supervisor.0.id(), 15);
    assert_eq!(supervisor.wait().code(), Some(0));
    assert!(told.elapsed() < Duration::from_secs(2));
}

#[test]
fn what_a_killed_supervisor_left_behind_is_removed_by_the_next_one() {
    let directories = [Directory::new(), Directory::new()];
    let [abandoned, used] = directories.each_ref().map(|directory| {
        let supervisor = Supervisor::start(directory, "echo $4 > socket; exec sleep 60");
        let socket = PathBuf::from(wait_for_text(&directory.path("socket")));
        kill(supervisor.0.id(), 9);
        (
            socket.parent().expect("directory").to_path_buf(),
            supervisor,
        )
    });
    assert!(!abandoned.0.exists() && used.0.exists());
}

#[test]
fn a_child_that_ignores_the_signal_is_killed_after_three_seconds() {
    let directory = Directory::new();
    let mut supervisor = Supervisor::start(
        &directory,
        "trap '' TERM; echo $$ > pid; while :; do sleep 0.1; done",
    );
    wait_for_text(&directory.path("pid"));
    let told = Instant::now();
    kill(supervisor.0.id(), 15);
    assert_eq!(supervisor.wait().code(), Some(0));
    assert!(
        (3..5).contains(&told.elapsed().as_secs()),
        "{:?}",
        told.elapsed()
    );
}

#[test]
fn children_do_not_outlive_a_killed_supervisor() {
    let directory = Directory::new();
    let supervisor = Supervisor::start(&directory, "echo $$ > pid; exec sleep 60");
    let child = wait_for_text(&directory.path("pid"));
    kill(supervisor.0.id(), 9);
    let running = PathBuf::from(format!("/proc/{child}/exe"));
    wait_until(|| fs::read_link(&running).is_err());
}

#[test]
fn a_bad_configuration_ends_the_supervisor_with_2() {
    let directory = Directory::new();
    let mut supervisor = Supervisor::start(&directory, "exit 2");
    assert_eq!(supervisor.wait().code(), Some(2));
}

#[test]
fn a_wrong_command_line_is_told_in_one_line() {
    let output = Command::new(PROGRAM).arg("fly").output().expect("run");
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), text.lines().count()),
        (Some(2), 1),
        "{text}"
    );
}

fn key() -> HintKey {
    HintKey::new(KeyId::new(b'A').expect("key id"), &[7; 32])
}

fn ufrag(call: u64) -> [u8; 23] {
    key().mint(
        Route::new(CLUSTER, 1, 0).expect("route"),
        Nonce::new(call).expect("nonce"),
    )
}

fn socket(ip: &str) -> UdpSocket {
    let socket = UdpSocket::bind((ip, 0)).expect("socket");
    socket.set_read_timeout(Some(PATIENCE)).expect("timeout");
    socket
}

/// A port that is free now, in a range that nobody is given by chance while the test runs.
fn free(ip: &str) -> SocketAddr {
    static NEXT: std::sync::atomic::AtomicU16 = std::sync::atomic::AtomicU16::new(0);
    let offset = (std::process::id() % 100) as u16 * 100;
    loop {
        let port =
            17_000 + (offset + NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed)) % 10_000;
        if UdpSocket::bind((ip, port)).is_ok() {
            return (ip.parse::<std::net::IpAddr>().expect("address"), port).into();
        }
    }
}

fn local(socket: &UdpSocket) -> SocketAddr {
    socket.local_addr().expect("address")
}

fn receive(socket: &UdpSocket) -> (Vec<u8>, SocketAddr) {
    let mut buffer = [0; 2_048];
    let (len, from) = socket.recv_from(&mut buffer).expect("a datagram in time");
    (buffer[..len].to_vec(), from)
}

/// A counter over all workers.
fn sum(stats: &Value, counter: &str) -> u64 {
    let workers = stats["workers"].as_array().expect("workers");
    workers
        .iter()
        .map(|worker| {
            worker
                .pointer(counter)
                .and_then(Value::as_u64)
                .expect("counter")
        })
        .sum()
}

fn wait_until(mut holds: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < deadline, "it did not happen in time");
        std::thread::yield_now();
    }
}

fn wait_for_text(path: &Path) -> String {
    let read = || {
        fs::read_to_string(path)
            .ok()
            .filter(|text| text.ends_with('\n'))
    };
    wait_until(|| read().is_some());
    read().expect("text").trim().to_owned()
}

fn kill(pid: u32, signal: i32) {
    let status = Command::new("kill")
        .args([format!("-{signal}"), pid.to_string()])
        .status();
    assert!(status.expect("kill").success());
}

/// A temporary directory that goes with the test.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Self {
        static NEXT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let path =
            std::env::temp_dir().join(format!("engine-test-{}-{number}", std::process::id()));
        fs::create_dir(&path).expect("directory");
        Self(path)
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

struct Engine {
    process: Child,
    socket: PathBuf,
}

impl Engine {
    fn start(directory: &Directory) -> Self {
        let number = fs::read_dir(&directory.0).expect("directory").count();
        let socket = directory.path(&format!("control-{number}"));
        let process = Command::new(PROGRAM)
            .args(["run", "--control"])
            .arg(&socket)
            .stderr(Stdio::null())
            .spawn();
        wait_until(|| UnixStream::connect(&socket).is_ok());
        Self {
            process: process.expect("engine"),
            socket,
        }
    }

    fn control(&self) -> Control {
        let stream = UnixStream::connect(&self.socket).expect("control socket");
        stream.set_read_timeout(Some(PATIENCE)).expect("timeout");
        Control(BufReader::new(stream))
    }
}

impl Drop for Engine {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

struct Control(BufReader<UnixStream>);

impl Control {
    /// Sends a request; returns the reply, good or bad.
    fn send(&mut self, mut request: Value) -> Value {
        request["id"] = 5.into();
        self.0
            .get_mut()
            .write_all(format!("{request}\n").as_bytes())
            .expect("request");
        let mut line = String::new();
        self.0.read_line(&mut line).expect("reply");
        serde_json::from_str(&line).expect("JSON")
    }

    fn ask(&mut self, request: Value) -> Value {
        let reply = self.send(request);
        assert_eq!(
            (&reply["id"], &reply["ok"]),
            (&json!(5), &json!(true)),
            "{reply}"
        );
        reply
    }

    fn configure(&mut self, listener: SocketAddr, backbone: SocketAddr) {
        self.ask(
            json!({"op": "configure", "workers": 1, "backbone": backbone,
            "listeners": [{"name": "vip", "bind": listener, "advertise": "203.0.113.1:3478"}]}),
        );
    }

    /// One route and its key.
    fn load(&mut self, owner: SocketAddr) {
        self.ask(json!({"op": "routes", "routes": [{"cluster": CLUSTER, "ordinal": 1, "worker": 0, "address": owner}]}));
        self.ask(json!({"op": "keys", "clusters": {CLUSTER.to_string(): {"A": BASE64_STANDARD.encode([7; 32])}}}));
    }

    /// The statistics, once they are as wanted.
    fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        let mut stats = Value::Null;
        wait_until(|| {
            stats = self.ask(json!({"op": "stats"}));
            wanted(&stats)
        });
        stats
    }
}

struct Supervisor(Child);

impl Supervisor {
    /// A copy of the program with a shell script for a control plane beside it. The script runs in the directory.
    fn start(directory: &Directory, script: &str) -> Self {
        let program = directory.path("voicecluster-relay-engine");
        fs::copy(PROGRAM, &program).expect("copy");
        let control_plane = directory.path("voicecluster-relay");
        fs::write(&control_plane, format!("#!/bin/sh\n{script}\n")).expect("script");
        fs::set_permissions(&control_plane, fs::Permissions::from_mode(0o755)).expect("mode");
        let mut command = Command::new(&program);
        command
            .args(["supervise", "--config", "relay.yaml"])
            .current_dir(&directory.0)
            .stderr(Stdio::null());
        // Another thread's fork may hold the copy open for writing for a moment.
        let mut started = command.spawn();
        wait_until(|| {
            if started
                .as_ref()
                .is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy)
            {
                started = command.spawn();
            }
            !started
                .as_ref()
                .is_err_and(|error| error.kind() == std::io::ErrorKind::ExecutableFileBusy)
        });
        Self(started.expect("supervisor"))
    }

    fn wait(&mut self) -> ExitStatus {
        let mut status = None;
        wait_until(|| {
            status = self.0.try_wait().expect("status");
            status.is_some()
        });
        status.expect("status")
    }
}

impl Drop for Supervisor {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
