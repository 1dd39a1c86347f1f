"""The cluster's secrets as a transceiver uses them: everything derived from one root keys file."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass

from voicecluster.common.config.transceiver import RootKeysFile
from voicecluster.transceiver.http.auth import InternalKeys
from voicecluster.transceiver.ice.unknown import CallKeys, UnknownCalls
from voicecluster.wire import CallKey, HintError, HintKey, Route, derive_key, ice_pwd, key_id_of


@dataclass(frozen=True, slots=True, repr=False)
class _Derived:
    hint: HintKey
    call: CallKey
    pwd: bytes


class Keyring:
    """One loaded keys file: mints ufrags and call ids, opens call ids. Immutable; replaced when the file is."""

    def __init__(self, file: RootKeysFile, cluster: int) -> None:
        secrets = {key_id: base64.b64decode(text) for key_id, text in file.keys.items()}
        self.cluster = cluster
        self.mint_id = file.mint
        self._derived: Mapping[str, _Derived] = {
            key_id: _Derived(
                hint=HintKey(key_id, derive_key(secret, "hint", cluster)),
                call=CallKey(key_id, derive_key(secret, "call", cluster)),
                pwd=derive_key(secret, "pwd", cluster),
            )
            for key_id, secret in secrets.items()
        }
        self.internal = InternalKeys(
            mint=file.mint,
            keys={key_id: derive_key(secret, "internal", cluster) for key_id, secret in secrets.items()},
        )

    def credentials(self, route: Route, nonce: int) -> tuple[str, str]:
        """A new ufrag that routes to `route`, and its password."""
        derived = self._derived[self.mint_id]
        ufrag = derived.hint.mint(route, nonce)
        return ufrag, ice_pwd(derived.pwd, ufrag)

    def call_id(self, route: Route, nonce: int) -> str:
        """The id of the call whose first ufrag has `route` and `nonce`."""
        return self._derived[self.mint_id].call.mint(route, nonce)

    def route_of_call(self, call_id: str) -> Route | None:
        """The worker that has (or had) the call; None for what is no call id of this cluster."""
        try:
            opened = self._derived[key_id_of(call_id)].call.open(call_id)
        except (HintError, KeyError):
            return None
        return opened.route if opened.route.cluster == self.cluster else None

    def unknown_calls(self, route: Route, *, now: float) -> UnknownCalls:
        """What answers checks for calls that the worker at `route` does not have."""
        keys = {key_id: CallKeys(derived.hint, derived.pwd) for key_id, derived in self._derived.items()}
        return UnknownCalls(route, keys, now=now)
