"""What to tell a caller whose call this worker does not know: it restarted, or the call has ended.

The password is a function of the ufrag (DESIGN section 3), so even a newborn worker can check the request's
signature and sign its answer: STUN error 400, which makes Chromium fail at once where silence would cost it
half a minute. Only authentic requests for exactly this worker are answered, never with more bytes than came,
at most 100 a second.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from voicecluster.transceiver.ice.path import TokenBucket
from voicecluster.wire import (
    HintError,
    HintKey,
    Route,
    StunError,
    binding_error,
    ice_pwd,
    key_id_of,
    parse_stun,
)

ANSWERS_PER_SECOND = 100.0


@dataclass(frozen=True, slots=True)
class CallKeys:
    """What reads a ufrag and derives its password, of one key id."""

    hint: HintKey
    pwd_key: bytes

    def __repr__(self) -> str:
        return "CallKeys()"


class UnknownCalls:
    """Answers checks for calls that this worker does not have. Make a new one when keys change."""

    def __init__(self, route: Route, keys: Mapping[str, CallKeys], *, now: float) -> None:
        self._route = route
        self._keys = dict(keys)
        self._answers = TokenBucket(ANSWERS_PER_SECOND, 2 * ANSWERS_PER_SECOND, now)

    def answer(self, ufrag: str, request: bytes, now: float) -> bytes | str:
        """The signed error to send back, or the reason for silence (a drop counter's label)."""
        try:
            keys = self._keys.get(key_id_of(ufrag))
            opened = keys.hint.open(ufrag) if keys is not None else None
        except HintError:
            return "unknown_ufrag"
        if keys is None or opened is None:
            return "unknown_ufrag"
        if opened.route != self._route:
            return "misrouted"
        if not self._answers.take(now):
            return "unknown_call_rate"
        pwd = ice_pwd(keys.pwd_key, ufrag)
        try:
            message = parse_stun(request)
        except StunError:
            return "stun_malformed"
        if message.cls != "request" or not message.verify(pwd):
            return "stun_integrity"
        error = binding_error(message.transaction_id, code=400, reason="", password=pwd)
        return error if len(error) <= len(request) else "stun_malformed"
