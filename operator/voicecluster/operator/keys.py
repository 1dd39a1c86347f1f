"""Key Secrets: generated once and never again.

A Secret that is missing is generated only if nothing shows that it ever was: its pods, and for root keys also the
status, say so. Anything else would silently end what depends on it, so a condition names the remedy instead and
nothing is invented. A Secret that the user made before is taken as it is, if it is valid. No message repeats
what a Secret holds.
"""

import base64
import binascii
import json
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from voicecluster.common.config.keys import KEY_BYTES, decode_key
from voicecluster.common.config.model import ConfigError, parse_text
from voicecluster.common.config.transceiver import RootKeysFile
from voicecluster.operator.fields import texts
from voicecluster.operator.kube import port
from voicecluster.operator.kube.port import Exists, Kube, Object, Store
from voicecluster.operator.observe import Observed
from voicecluster.operator.plan.keys import KeyMaterial
from voicecluster.operator.plan.kubernetes import names
from voicecluster.operator.status.conditions import Fault, Reason

FIRST_KEY_ID = "A"
ROOT_KEYS_FORM = '{"mint": "A", "keys": {"A": "<base64 of 32 random bytes>"}}'


@dataclass(frozen=True, slots=True)
class KeyState:
    """The key Secrets of one cluster after looking at them."""

    material: KeyMaterial | None = field(repr=False)
    """None while there are no usable root keys."""
    token: str = field(repr=False, default="")
    """What transceivers want to see before they drain; empty while it is missing."""
    faults: tuple[Fault, ...] = ()
    generated: tuple[str, ...] = ()
    """Names of the Secrets made just now."""

    @property
    def ids(self) -> tuple[str, ...]:
        """Names of the root keys."""
        return tuple(sorted(self.material.roots)) if self.material is not None else ()


async def ensure_keys(kube: Kube, store: Store, observed: Observed, *, may_generate: bool) -> KeyState:
    """Read the key Secrets, and generate those that never were. Raises KubeError."""
    finder = _Finder(kube, store, observed, may_generate)
    roots = await finder.find(
        names.root_keys(observed.name), new_root_keys, known=bool(observed.status.keys.ids)
    )
    token = await finder.find(names.drain_token(observed.name), new_token)
    auth = observed.cluster.spec.signaling.auth
    if auth.api_keys_secret is None:  # also in mode None: asking for keys later then finds one
        await finder.find(names.api_keys(observed.name), new_api_key)
    elif auth.mode == "APIKey":
        await finder.users(auth.api_keys_secret)
    material = None
    if roots is not None:
        material = root_material(roots)
        if material is None:
            name = names.root_keys(observed.name)
            message = f"Secret {name}: entry keys.yaml is no root keys file; write {ROOT_KEYS_FORM} there."
            finder.faults.append(Fault(Reason.KEYS_INVALID, message))
    return KeyState(
        material=material,
        token=(token or {}).get("token", "").strip(),
        faults=tuple(finder.faults),
        generated=tuple(finder.generated),
    )


class _Finder:
    def __init__(self, kube: Kube, store: Store, observed: Observed, may_generate: bool) -> None:
        self.faults: list[Fault] = []
        self.generated: list[str] = []
        self._kube = kube
        self._store = store
        self._observed = observed
        self._may_generate = may_generate

    async def find(
        self, name: str, new: Callable[[], Mapping[str, str]], *, known: bool = False
    ) -> Mapping[str, str] | None:
        """The entries of one of our Secrets. `known`: that it once was is known from elsewhere than pods."""
        found = await self._get(name)
        never = not known and not mounted(self._observed, name)
        if found is None and never and not self._may_generate:
            message = f"Secret {name} is generated once nothing is paused any longer; unset spec.paused."
            self.faults.append(Fault(Reason.KEYS_MISSING, message))
            return None
        if found is None and never:
            wanted = secret(self._observed, name, new())
            try:
                found = await self._kube.create(wanted)
                self.generated.append(name)
            except Exists:
                found = await self._kube.get(port.SECRETS, self._observed.namespace, name)
        if found is None:
            self.faults.append(Fault(Reason.KEYS_MISSING, missing(self._observed, name)))
            return None
        return entries(found)

    async def users(self, name: str) -> None:
        """See that the user's own Secret of API keys is there and not empty."""
        found = await self._kube.get(port.SECRETS, self._observed.namespace, name)
        if found is None:
            message = (
                f"Secret {name}, which signaling.auth.apiKeysSecret names, does not exist in namespace"
                f" {self._observed.namespace}; create it with one entry for each API key."
            )
            self.faults.append(Fault(Reason.KEYS_MISSING, message))
        elif not entries(found):
            message = f"Secret {name} has no entries; add one for each API key: its name and the key."
            self.faults.append(Fault(Reason.KEYS_INVALID, message))

    async def _get(self, name: str) -> Object | None:
        found = self._store.get(port.SECRETS, self._observed.namespace, name)
        if found is not None and names.CLUSTER in texts(found, "metadata", "labels"):
            return found
        # Too new to have been seen, or made by the user: without our label it is not watched.
        return await self._kube.get(port.SECRETS, self._observed.namespace, name)


def mounted(observed: Observed, name: str) -> bool:
    """Whether pods of ours mount this Secret: then it once was."""
    return any(
        name in each.secrets for region in observed.regions for each in (region.relays, region.transceivers)
    )


def missing(observed: Observed, name: str) -> str:
    """What to do about one of our Secrets that is gone."""
    what = f"Secret {name} was generated once and is gone"
    if name == names.root_keys(observed.name):
        return (
            f"{what}; restore it from a backup. If there is none, create it with an entry keys.yaml of the form"
            f" {ROOT_KEYS_FORM} and restart all pods: running calls end."
        )
    entry = "token" if name == names.drain_token(observed.name) else "default"
    return (
        f"{what}; restore it from a backup, or run `kubectl -n {observed.namespace} create secret generic {name}"
        f' --from-literal={entry}="$(openssl rand -hex 32)"`: running calls are not touched.'
    )


def root_material(found: Mapping[str, str]) -> KeyMaterial | None:
    """The root keys in a Secret's entries, None if they are not valid."""
    try:
        file = parse_text(found.get("keys.yaml", ""), RootKeysFile, source="keys.yaml")
    except ConfigError:
        return None
    return KeyMaterial(file.mint, {key: decode_key(text) for key, text in file.keys.items()}, {})


def entries(found: Object) -> Mapping[str, str]:
    """A Secret's entries as text; what is not UTF-8 is left out."""
    decoded = {}
    for name, value in texts(found, "data").items():
        try:
            decoded[name] = base64.b64decode(value, validate=True).decode("utf-8")
        except (binascii.Error, ValueError):
            continue
    return decoded


def secret(observed: Observed, name: str, content: Mapping[str, str]) -> Object:
    """A Secret of ours, to be created: it goes with the VoiceCluster."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": name,
            "namespace": observed.namespace,
            "labels": names.labels(observed.name, "keys"),
            "ownerReferences": [
                {
                    "apiVersion": port.CLUSTERS.api_version,
                    "kind": port.CLUSTERS.kind,
                    "name": observed.name,
                    "uid": observed.uid,
                    "controller": True,
                    "blockOwnerDeletion": True,
                }
            ],
        },
        "type": "Opaque",
        "data": {key: base64.b64encode(value.encode()).decode("ascii") for key, value in content.items()},
    }


def new_root_keys() -> Mapping[str, str]:
    """A first root secret."""
    key = base64.b64encode(secrets.token_bytes(KEY_BYTES)).decode("ascii")
    return {"keys.yaml": json.dumps({"mint": FIRST_KEY_ID, "keys": {FIRST_KEY_ID: key}}) + "\n"}


def new_token() -> Mapping[str, str]:
    """A drain token."""
    return {"token": secrets.token_urlsafe(32)}


def new_api_key() -> Mapping[str, str]:
    """A first API key."""
    return {"default": f"vc-{secrets.token_urlsafe(32)}"}
