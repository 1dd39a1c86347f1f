//! The vectors in `vectors/`, which the Python tests read too.

use std::net::{IpAddr, SocketAddr};
use std::path::Path;

use serde::Deserialize;
use serde::de::DeserializeOwned;
use voicecluster_wire::framing::Deframer;
use voicecluster_wire::hint::{CallKey, HintError, HintKey, KeyId, Nonce, Opened, Route};
use voicecluster_wire::keys::{self, Key, Purpose};
use voicecluster_wire::stun::{ErrorCode, StunError, StunView};
use voicecluster_wire::{framing, spp};

#[derive(Deserialize)]
struct File<C> {
    cases: Vec<C>,
}

#[test]
fn derived_keys_are_the_vectors() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        root: String,
        label: String,
        cluster: u16,
        key: String,
    }
    for case in cases::<Case>("derive.json") {
        let purpose = Purpose::from_label(&case.label).expect("a purpose");
        assert_eq!(
            keys::derive(&key(&case.root), purpose, case.cluster),
            key(&case.key),
            "{}",
            case.name
        );
    }
}

#[test]
fn passwords_are_the_vectors() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        pwd_key: String,
        ufrag: String,
        pwd: String,
    }
    for case in cases::<Case>("pwd.json") {
        let pwd = keys::ice_pwd(&key(&case.pwd_key), case.ufrag.as_bytes());
        assert_eq!(pwd, case.pwd.as_bytes(), "{}", case.name);
    }
}

#[derive(Deserialize)]
struct Hint {
    name: String,
    key_id: String,
    key: String,
    text: String,
    #[serde(flatten)]
    outcome: HintOutcome,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum HintOutcome {
    Opens {
        cluster: u16,
        ordinal: u16,
        worker: u8,
        nonce: u64,
    },
    Fails {
        error: String,
    },
}

impl Hint {
    fn key_id(&self) -> KeyId {
        KeyId::new(self.key_id.as_bytes()[0]).expect("a key id")
    }

    fn check(&self, opened: Result<Opened, HintError>, mint: impl Fn(Opened) -> Vec<u8>) {
        match &self.outcome {
            &HintOutcome::Opens {
                cluster,
                ordinal,
                worker,
                nonce,
            } => {
                let route = Route::new(cluster, ordinal, worker).expect("a route");
                let expected = Opened {
                    route,
                    nonce: Nonce::new(nonce).expect("a nonce"),
                };
                assert_eq!(opened, Ok(expected), "{}", self.name);
                assert_eq!(mint(expected), self.text.as_bytes(), "{}", self.name);
                assert_eq!(
                    KeyId::of(self.text.as_bytes()),
                    Ok(self.key_id()),
                    "{}",
                    self.name
                );
            }
            HintOutcome::Fails { error } => {
                assert_eq!(
                    opened.map_err(HintError::label),
                    Err(error.as_str()),
                    "{}",
                    self.name
                );
            }
        }
    }
}

#[test]
fn ufrags_open_as_the_vectors_say_and_mint_to_the_same_text() {
    for case in cases::<Hint>("hint.json") {
        let key = HintKey::new(case.key_id(), &key(&case.key));
        case.check(key.open(case.text.as_bytes()), |opened| {
            key.mint(opened.route, opened.nonce).to_vec()
        });
    }
}

#[test]
fn call_ids_open_as_the_vectors_say_and_mint_to_the_same_text() {
    for case in cases::<Hint>("call_id.json") {
        let key = CallKey::new(case.key_id(), &key(&case.key));
        case.check(key.open(case.text.as_bytes()), |opened| {
            key.mint(opened.route, opened.nonce).to_vec()
        });
    }
}

#[test]
fn spp_headers_say_what_the_vectors_say() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        header: String,
        client: Option<(IpAddr, u16)>,
        proxy: Option<(IpAddr, u16)>,
        error: Option<String>,
    }
    for case in cases::<Case>("spp.json") {
        let bytes = hex(&case.header);
        let decoded = spp::decode(&bytes);
        match (case.client, case.proxy) {
            (Some(client), Some(proxy)) => {
                let header = spp::Header {
                    client: SocketAddr::from(client),
                    proxy: SocketAddr::from(proxy),
                };
                assert_eq!(decoded, Ok(header), "{}", case.name);
                let mut written = [0; spp::LEN];
                spp::encode(&mut written, header.client, header.proxy);
                assert_eq!(written, bytes[..], "{}", case.name);
            }
            _ => assert_eq!(
                decoded.err().map(spp::SppError::label),
                case.error.as_deref(),
                "{}",
                case.name
            ),
        }
    }
}

#[test]
fn streams_hold_the_datagrams_of_the_vectors_whole_and_byte_by_byte() {
    #[derive(Deserialize)]
    struct Case {
        name: String,
        stream: String,
        frames: Option<Vec<String>>,
        pending: Option<usize>,
        error: Option<String>,
    }
    for case in cases::<Case>("rfc4571.json") {
        let stream = hex(&case.stream);
        for piece in [1, stream.len().max(1)] {
            let mut deframer = Deframer::new(16);
            let mut frames = Vec::new();
            let fed: Result<(), _> = stream
                .chunks(piece)
                .try_for_each(|data| deframer.feed(data, |frame| frames.push(frame.to_vec())));
            assert_eq!(
                fed.err().map(framing::FramingError::label),
                case.error.as_deref(),
                "{}",
                case.name
            );
            if let Some(expected) = &case.frames {
                assert_eq!(
                    frames,
                    expected.iter().map(|frame| hex(frame)).collect::<Vec<_>>(),
                    "{}",
                    case.name
                );
                assert_eq!(Some(deframer.pending()), case.pending, "{}", case.name);
            }
        }
    }
}

#[derive(Deserialize)]
struct Stun {
    name: String,
    message: String,
    #[serde(flatten)]
    outcome: StunOutcome,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum StunOutcome {
    Says(Box<Said>),
    Fails { error: String },
}

#[derive(Debug, Deserialize, PartialEq)]
struct Said {
    cls: String,
    transaction_id: String,
    username: Option<String>,
    priority: Option<u32>,
    use_candidate: bool,
    ice_controlling: Option<u64>,
    ice_controlled: Option<u64>,
    xor_mapped_address: Option<(IpAddr, u16)>,
    error_code: Option<u16>,
    has_integrity: bool,
    has_fingerprint: bool,
    password: Option<String>,
}

#[test]
fn stun_messages_say_what_the_vectors_say() {
    for case in cases::<Stun>("stun.json") {
        let message = hex(&case.message);
        let read = StunView::parse(&message).and_then(|view| {
            view.method().ok_or(StunError::UnknownMethod)?;
            view.check_fingerprint()?;
            Ok(view)
        });
        match (read, case.outcome) {
            (Ok(view), StunOutcome::Says(said)) => {
                assert_eq!(
                    describe(&view, said.password.clone()),
                    *said,
                    "{}",
                    case.name
                );
                if let Some(password) = &said.password {
                    assert!(view.verify(password.as_bytes()), "{}", case.name);
                    assert!(
                        !view.verify(format!("{password}x").as_bytes()),
                        "{}",
                        case.name
                    );
                }
            }
            (read, StunOutcome::Fails { error }) => {
                assert_eq!(
                    read.err().map(StunError::label),
                    Some(error.as_str()),
                    "{}",
                    case.name
                );
            }
            (Err(error), StunOutcome::Says(_)) => panic!("{}: {error}", case.name),
        }
    }
}

fn describe(view: &StunView<'_>, password: Option<String>) -> Said {
    Said {
        cls: view.class().label().to_owned(),
        transaction_id: view
            .transaction_id()
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect(),
        username: view
            .username()
            .map(|username| String::from_utf8_lossy(username).into_owned()),
        priority: view.priority(),
        use_candidate: view.use_candidate(),
        ice_controlling: view.ice_controlling(),
        ice_controlled: view.ice_controlled(),
        xor_mapped_address: view
            .xor_mapped_address()
            .map(|address| (address.ip(), address.port())),
        error_code: view.error_code().map(ErrorCode::get),
        has_integrity: view.has_integrity(),
        has_fingerprint: view.has_fingerprint(),
        password,
    }
}

fn cases<C: DeserializeOwned>(file: &str) -> Vec<C> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("vectors")
        .join(file);
    let text = std::fs::read_to_string(path).expect("the vectors are there");
    serde_json::from_str::<File<C>>(&text)
        .expect("the vectors have the form that this test knows")
        .cases
}

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .map(|digit| digit.to_digit(16).expect("hex") as u8)
        .collect();
    digits
        .chunks(2)
        .map(|pair| pair[0] << 4 | pair[1])
        .collect()
}

fn key(text: &str) -> Key {
    hex(text).try_into().expect("32 bytes")
}
