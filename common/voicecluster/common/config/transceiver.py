"""The transceiver's configuration and the files it watches: root keys, VIPs, the directory of siblings."""

from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator
from voicecluster.common.config.keys import Key, KeyId
from voicecluster.common.config.model import Address, Host, LogLevel, Model

Port = Annotated[int, Field(ge=1, le=65535)]


class Tls(Model):
    """Certificate chain and private key of the public signaling port, PEM."""

    cert_file: Path
    key_file: Path


class Auth(Model):
    """Who may call. `api_keys_dir` holds one file per key: its name is the key's, its content the key."""

    mode: Literal["APIKey", "None"] = "APIKey"
    api_keys_dir: Path | None = None


class Signaling(Model):
    """The public HTTP API and the page; all workers listen on it (SO_REUSEPORT)."""

    bind: Address
    tls: Tls | None = None
    auth: Auth = Auth()
    cors_origins: list[str] = Field(default_factory=lambda: ["*"])


class CallLimits(Model):
    """Bounds of one worker and of one call."""

    calls_per_worker: Annotated[int, Field(ge=1, le=10_000)] = 200
    call_seconds: Annotated[int, Field(ge=1, le=86_400)] = 3600
    setup_seconds: Annotated[float, Field(gt=0, le=120)] = 20.0
    expiry_seconds: Annotated[float, Field(gt=0, le=600)] = 30.0
    """A call without authenticated packets for so long has ended."""
    sdp_bytes: Annotated[int, Field(ge=1024, le=1_048_576)] = 65_536
    drain_seconds: Annotated[float, Field(ge=0, le=86_400)] = 3600.0
    """How long SIGTERM waits for calls to end by themselves."""


class MediaConfig(Model):
    """Opus and the jitter buffer."""

    bitrate: Annotated[int, Field(ge=6_000, le=128_000)] = 32_000
    complexity: Annotated[int, Field(ge=0, le=10)] = 4
    max_hold_ms: Annotated[int, Field(ge=20, le=500)] = 120
    """The longest the jitter buffer waits for a missing packet, in milliseconds."""


class TransceiverConfig(Model):
    """`voicecluster-transceiver --config FILE`."""

    name: str
    cluster_id: Annotated[int, Field(ge=1, le=65535)]
    region: str
    ordinal: Annotated[int, Field(ge=0, le=65535)]
    workers: Annotated[int, Field(ge=1, le=256)] = 1
    media_address: Host
    """Where workers' media sockets are bound; internal, never public."""
    media_port: Port = 40000
    """Worker w uses media_port + w."""
    internal_address: Host
    internal_port: Port = 9000
    """Worker w serves its siblings on internal_port + w."""
    admin: Address
    signaling: Signaling
    keys_file: Path
    vips_file: Path
    directory_file: Path
    ice_mode: Literal["Lite", "Full"] = "Lite"
    default_agent: str = "parrot"
    limits: CallLimits = CallLimits()
    media: MediaConfig = MediaConfig()
    log_level: LogLevel = "INFO"


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


class VipsFile(Model):
    """The VIPs of each region: what answers name as candidates."""

    regions: dict[str, list[Vip]]


class Sibling(Model):
    """One transceiver as its siblings reach it: worker w at host:internal_port + w."""

    ordinal: Annotated[int, Field(ge=0, le=65535)]
    host: str
    internal_port: Port
    workers: Annotated[int, Field(ge=1, le=256)]


class DirectoryRegion(Model):
    """A region and its transceivers."""

    name: str
    index: Annotated[int, Field(ge=0, le=63)]
    transceivers: list[Sibling]


class DirectoryFile(Model):
    """All transceivers of the cluster, by region; the first is the default where nothing better is known."""

    regions: list[DirectoryRegion]
