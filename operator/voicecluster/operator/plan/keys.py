"""Key material: root secrets and API keys come from outside, what relays may know is derived here."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field

from voicecluster.common.config.relay import RelayKeysFile
from voicecluster.common.config.transceiver import RootKeysFile
from voicecluster.wire import derive_key


@dataclass(frozen=True, slots=True)
class KeyMaterial:
    """The secrets of one cluster. `roots`: 32 bytes each, by key id; `mint` is the id that new hints use."""

    mint: str
    roots: Mapping[str, bytes] = field(repr=False)
    api_keys: Mapping[str, str] = field(repr=False)
    """API keys by name."""


def root_keys(keys: KeyMaterial) -> RootKeysFile:
    """What transceivers get: the root secrets."""
    return RootKeysFile(mint=keys.mint, keys={key_id: _text(root) for key_id, root in keys.roots.items()})


def hint_keys(keys: KeyMaterial, cluster_id: int) -> RelayKeysFile:
    """What relays get: K_hint of each root secret, from which neither root nor passwords can be found."""
    derived = {key_id: _text(derive_key(root, "hint", cluster_id)) for key_id, root in keys.roots.items()}
    return RelayKeysFile(clusters={str(cluster_id): derived})


def _text(key: bytes) -> str:
    return base64.b64encode(key).decode("ascii")
