"""The transceiver's configuration and the files it watches: root keys, VIPs, the directory of siblings."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from voicecluster.common.config.keys import Key, KeyId
from voicecluster.common.config.model import Address, Host, LogLevel, Model, Unit

Port = Annotated[int, Field(ge=1, le=65535)]


class Tls(Model):
    """Certificate chain and private key of the public signaling port, PEM."""

    cert_file: Path
    key_file: Path


class Auth(Model):
    """Who may call. `api_keys_dir` holds one file per key: its name is the key's, its content the key."""

    mode: Literal["APIKey", "None"] = "APIKey"
    api_keys_dir: Path | None = None


class CallLimits(Model):
    """Bounds of one worker and of one call."""

    calls_per_worker: Annotated[int, Field(ge=1, le=10_000), Unit("calls")] = 200
    """Calls that one worker takes; an offer beyond is passed on, or refused with 503."""
    call_seconds: Annotated[int, Field(ge=1, le=86_400), Unit("s")] = 3600
    """The longest a call may last."""
    setup_seconds: Annotated[float, Field(gt=0, le=120), Unit("s")] = 20.0
    """A call whose DTLS is not connected within it has failed."""
    expiry_seconds: Annotated[float, Field(gt=0, le=600), Unit("s")] = 30.0
    """A call without authenticated packets for so long has ended."""
    sdp_bytes: Annotated[int, Field(ge=1024, le=1_048_576), Unit("bytes")] = 65_536
    """The longest offer that is read."""
    drain_timeout_seconds: Annotated[float, Field(ge=0, le=86_400), Unit("s")] = 3600.0
    """How long a drain, and SIGTERM, wait for calls to end by themselves. Another value above 3600 makes
    transceivers drain: pods are given that long to end."""


class MediaConfig(Model):
    """Opus and the jitter buffer."""

    bitrate: Annotated[int, Field(ge=6_000, le=128_000), Unit("bit/s")] = 32_000
    """Of the Opus that callers are sent."""
    complexity: Annotated[int, Field(ge=0, le=10), Unit("number")] = 4
    """Opus' own measure of effort: more sounds a little better and costs CPU time."""
    max_hold_ms: Annotated[int, Field(ge=20, le=500), Unit("ms")] = 120
    """The longest the jitter buffer waits for a missing packet."""


class ObjectFile(Model):
    """A file that this program keeps like a ConfigMap's entry, by watching the API server. Kubernetes only."""

    file: Path
    """Kept by us; where the API server is absent it stays as it is."""
    seed: Path
    """The same entry as Kubernetes mounts it, up to a minute late: what `file` begins with."""
    namespace: str
    config_map: str


class TransceiverSettings(Model):
    """What all transceivers of a region share."""

    cluster_id: Annotated[int, Field(ge=1, le=65535)]
    region: str
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    keys_file: Path
    vips_file: Path
    vips_watch: ObjectFile | None = None
    """Keeps `vips_file` current within seconds; absent where somebody else writes that file."""
    directory_file: Path
    drain_token_file: Path | None = None
    """The token that `PUT /drain` on the admin port must bring; absent: nobody can drain but by a signal."""
    auth: Auth = Auth()
    cors_origins: list[str] = Field(default_factory=lambda: ["*"])
    tls: Tls | None = None
    ice_mode: Literal["Lite", "Full"] = "Lite"
    default_agent: str = "parrot"
    limits: CallLimits = CallLimits()
    media: MediaConfig = MediaConfig()
    log_level: LogLevel = "INFO"


class TransceiverConfig(TransceiverSettings):
    """`voicecluster-transceiver --config FILE`. In a pod the fields below come from it: see `config.pod`."""

    name: str
    ordinal: Annotated[int, Field(ge=0, le=65535)]
    media_address: Host
    """Where workers' media sockets are bound; internal, never public."""
    media_port: Port = 40000
    """Worker w uses media_port + w."""
    internal_address: Host
    internal_port: Port = 9000
    """Worker w serves its siblings on internal_port + w."""
    admin: Address
    """Health, metrics and drain."""
    signaling: Address
    """The public HTTP API and the page; all workers listen on it (SO_REUSEPORT)."""


class RootKeysFile(Model):
    """The cluster's root secrets by key id (base64 of 32 bytes), and the id to mint with."""

    mint: KeyId
    keys: dict[KeyId, Key]

    @model_validator(mode="after")
    def _mint_is_a_key(self) -> Self:
        if self.mint not in self.keys:
            known = ", ".join(sorted(self.keys)) or "none"
            raise ValueError(
                f"'mint' names key {self.mint}, but the keys are: {known}; add it or mint with another"
            )
        return self


class Vip(Model):
    """A public address that relays serve."""

    address: Host
    port: Port
    protocol: Literal["udp", "tcp"] = "udp"
    node: str | None = None
    """The node whose own address it is (HostNetwork); such VIPs go away with their node, so an answer names those
    of two nodes."""


class VipsFile(Model):
    """The VIPs of each region: what answers name as candidates."""

    regions: dict[str, list[Vip]]


class Sibling(Model):
    """One transceiver as its siblings reach it: worker w at host:internal_port + w."""

    ordinal: Annotated[int, Field(ge=0, le=65535)]
    host: str
    internal_port: Port
    workers: Annotated[int, Field(ge=1, le=256)]


class SiblingRange(Model):
    """The transceivers of a StatefulSet: `count` of them from ordinal `first` on, alike but for the ordinal."""

    first: Annotated[int, Field(ge=0, le=65535)]
    count: Annotated[int, Field(ge=0, le=1024)]
    host: Annotated[str, Field(pattern=r"^[^{}]*\{ordinal\}[^{}]*$")]
    """Host name with `{ordinal}` where that belongs."""
    internal_port: Port
    workers: Annotated[int, Field(ge=1, le=256)]


class DirectoryRegion(Model):
    """A region and its transceivers: one by one, or as a range."""

    name: str
    index: Annotated[int, Field(ge=0, le=63)]
    transceivers: list[Sibling] = Field(default=[])
    range: SiblingRange | None = None


class DirectoryFile(Model):
    """All transceivers of the cluster, by region; the first is the default where nothing better is known."""

    regions: list[DirectoryRegion]
