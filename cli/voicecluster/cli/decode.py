"""`voicecluster decode`: which transceiver a ufrag or call id names."""

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import yaml
from pydantic import BaseModel
from voicecluster.cli.stack.secrets import decoded_roots
from voicecluster.cli.state import StackDirectory, StackError, StackStatus
from voicecluster.common.config.keys import decode_key
from voicecluster.common.config.model import load
from voicecluster.common.config.relay import RelayKeysFile
from voicecluster.common.config.transceiver import RootKeysFile
from voicecluster.wire import CallKey, HintError, HintKey, Opened, derive_key, key_id_of

CALL_PREFIX = "rtc_"
Opener = Callable[[str], Opened]


class Decoded(BaseModel):
    """Who owns a call."""

    kind: str
    key_id: str
    cluster: int
    region: str | None
    """Its name, where a running stack tells it."""
    region_index: int
    ordinal: int
    worker: int
    transceiver: str | None


def decode(text: str, openers: Iterable[Opener], stack: StackStatus | None) -> Decoded:
    """Try the keys in turn. Raises StackError when `text` is no ufrag or call id, or no key fits."""
    try:
        key_id = key_id_of(text)
    except HintError as error:
        raise StackError(
            f"'{text}' is neither a ufrag of ours (23 characters) nor a call id (rtc_ and 27 more): {error}"
        ) from None
    for opener in openers:
        try:
            route = opener(text).route
        except HintError:
            continue
        region = _region_name(stack, route.cluster, route.region_index)
        return Decoded(
            kind="call id" if text.startswith(CALL_PREFIX) else "ufrag",
            key_id=key_id,
            cluster=route.cluster,
            region=region,
            region_index=route.region_index,
            ordinal=route.ordinal,
            worker=route.worker,
            transceiver=None if region is None else f"{region}-transceiver-{route.ordinal}",
        )
    raise StackError(f"no key with id '{key_id}' opens '{text}'; give the keys it was made with: --keys FILE")


def sentence(decoded: Decoded) -> str:
    """The same in words."""
    region = f"region {decoded.region_index}" + ("" if decoded.region is None else f" ({decoded.region})")
    return (
        f"{decoded.kind} of key {decoded.key_id}: cluster {decoded.cluster}, {region}, "
        f"transceiver {decoded.ordinal}, worker {decoded.worker}"
    )


def openers_of_stack(directory: StackDirectory, stack: StackStatus, text: str) -> Iterator[Opener]:
    """The keys of a running stack that may open `text`."""
    return _of_roots(load(directory.root_keys_file, RootKeysFile), text, [stack.cluster_id])


def openers_of_file(path: Path, text: str) -> Iterator[Opener]:
    """The keys in a root keys file (of transceivers) or a hint keys file (of relays) that may open `text`.

    A root keys file does not say whose it is, so every cluster id is tried: below a second, and a wrong key
    opens nothing by chance (88 bits are checked).
    """
    if _is_hint_keys_file(path):
        if text.startswith(CALL_PREFIX):
            raise StackError(
                f"{path}: hint keys open ufrags only; give the root keys file to decode a call id"
            )
        return _of_hints(load(path, RelayKeysFile), text)
    return _of_roots(load(path, RootKeysFile), text, range(1, 65536))


def _of_roots(document: RootKeysFile, text: str, clusters: Iterable[int]) -> Iterator[Opener]:
    for key_id, root in decoded_roots(document).items():
        if key_id != _key_id(text):
            continue
        for cluster in clusters:
            if text.startswith(CALL_PREFIX):
                yield _only(cluster, CallKey(key_id, derive_key(root, "call", cluster)).open)
            else:
                yield _only(cluster, HintKey(key_id, derive_key(root, "hint", cluster)).open)


def _of_hints(document: RelayKeysFile, text: str) -> Iterator[Opener]:
    for cluster, keys in document.clusters.items():
        for key_id, encoded in keys.items():
            if key_id != _key_id(text):
                continue
            yield _only(int(cluster), HintKey(key_id, decode_key(encoded)).open)


def _only(cluster: int, opener: Opener) -> Opener:
    """A key speaks for its own cluster only."""

    def opened(text: str) -> Opened:
        found = opener(text)
        if found.route.cluster != cluster:
            raise HintError("wrong_cluster")
        return found

    return opened


def _key_id(text: str) -> str:
    try:
        return key_id_of(text)
    except HintError:
        return ""


def _is_hint_keys_file(path: Path) -> bool:
    try:
        document = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError):
        return False  # `load` says what is wrong
    return isinstance(document, dict) and "clusters" in document


def _region_name(stack: StackStatus | None, cluster: int, index: int) -> str | None:
    if stack is None or stack.cluster_id != cluster:
        return None
    return next((region.name for region in stack.regions if region.index == index), None)
