"""The ICE agent of one call, without sockets, clocks or tasks.

Always controlled, candidates of its own are the VIPs, candidates of the caller are learnt from its checks
alone. Drive it so: hand in what arrived (`handle_check`, `handle_response`, `authenticated`,
`dtls_connected`) or the time (`handle_timeout`), then drain `poll_transmit` and `poll_event`, then arm a
timer for `poll_timeout`.

Who gets the media:

* Every authentic check is answered on the path it came by. That alone moves nothing: a check can be replayed
  from any address. A path is *validated* by the answer to a check of ours (random transaction id, signed with
  the caller's password), which only a caller that really receives there can give. The same exchange repeated
  each 5 s is consent (RFC 7675) and measures the round trip. Before validation at most three times the bytes
  received are sent to a path.
* Until DTLS is up the best path is chosen by (validated, nominated, the check's PRIORITY), so TCP loses to
  UDP whatever a client nominates. The path on which DTLS completed counts as validated.
* Afterwards the downlink follows the newest authenticated uplink (SRTP, DTLS) among validated paths, once the
  present path's uplink is 200 ms old. Where no uplink tells, a validated path takes over from one that fell
  silent: USE-CANDIDATE shortens the wait, it never decides.

ICE restart keeps paths, DTLS and media. Checks of the old generation are accepted until the first valid one
of the new (the caller applies our answer later than we do); from then on they are refused and
`GenerationEnded` names the ufrag to forget. Role conflicts are ignored: no 487, ever. Everything is bounded:
8 paths, 20 checks/s a path, 32 history entries, 4 checks of ours outstanding on a path.
"""

import random
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass

from voicecluster.transceiver.ice.outcome import (
    Event,
    Expired,
    GenerationEnded,
    PathAdded,
    PathRemoved,
    PathSelected,
    Refusal,
    Transmit,
)
from voicecluster.transceiver.ice.path import Address, IceCredentials, Path, PathChange, TokenBucket
from voicecluster.wire import StunError, binding_request, binding_success, parse_stun, spp_decode

MAX_PATHS = 8
CHECKS_PER_SECOND = 20.0
MAX_HISTORY = 32
MAX_PENDING = 4
CONSENT_SECONDS = 5.0
CONSENT_LOST_SECONDS = 30.0
HYSTERESIS_SECONDS = 0.2
SILENT_NOMINATED_SECONDS = 1.0
SILENT_SECONDS = 6.5
_RETRY_SECONDS = (0.1, 0.2, 0.4, 0.8, 1.6)
_PRIORITY = (110 << 24) + (65_535 << 8) + 255  # peer-reflexive, RFC 8445 section 7.1.1
_AMPLIFICATION = 3


@dataclass(frozen=True, slots=True)
class _Generation:
    number: int
    local: IceCredentials
    remote: IceCredentials


class IceAgent:
    """See the module's docstring for the driving contract.

    Args:
        expiry_seconds: without an authenticated packet for so long the call has ended.
        rng: source of transaction ids, tie-breaker and consent jitter; seeded in tests.
        validate_paths: False switches return routability off: for tests that show what it is good for.
    """

    def __init__(
        self,
        local: IceCredentials,
        remote: IceCredentials,
        *,
        now: float,
        expiry_seconds: float = 30.0,
        rng: random.Random | None = None,
        validate_paths: bool = True,
    ) -> None:
        self._rng = rng or random.SystemRandom()
        self._tie_breaker = self._rng.getrandbits(64)
        self._current = _Generation(0, local, remote)
        self._previous: _Generation | None = None
        self._expiry_seconds = expiry_seconds
        self._validate_paths = validate_paths
        self._new_paths = TokenBucket(CHECKS_PER_SECOND, CHECKS_PER_SECOND, now)
        self._transmits: deque[Transmit] = deque()
        self._events: deque[Event] = deque()
        self._dtls_up = False
        self._expired = False
        self.paths: dict[bytes, Path] = {}
        self.selected: Path | None = None
        self.heard_at = now
        self.history: deque[PathChange] = deque(maxlen=MAX_HISTORY)
        self.restarts = 0
        self.switches = 0

    @property
    def local(self) -> IceCredentials:
        """Our credentials of the newest generation."""
        return self._current.local

    @property
    def local_ufrags(self) -> tuple[str, ...]:
        """The local ufrags whose checks are accepted now."""
        generations = (self._current, self._previous)
        return tuple(generation.local.ufrag for generation in generations if generation is not None)

    @property
    def has_output(self) -> bool:
        """Whether `poll_transmit` or `poll_event` would give anything: a cheap look for every media packet."""
        return bool(self._transmits or self._events)

    def media_path(self, now: float) -> Path | None:
        """Where media may go now: the selected path once it is validated, `None` before and after consent is
        lost.
        """
        path = self.selected
        if path is None or not self._dtls_up or not (path.validated or not self._validate_paths):
            return None
        return path

    def handle_check(self, data: bytes, header: bytes, relay: Address, now: float) -> Path | Refusal:
        """A STUN binding request that came with this SPP header from this relay.

        Returns its path once authenticated.
        """
        known = self.paths.get(header)
        if not (known.stun if known is not None else self._new_paths).take(now):
            return Refusal.RATE
        try:
            message = parse_stun(data)
        except StunError:
            return Refusal.MALFORMED
        if message.cls != "request" or message.username is None or message.priority is None:
            return Refusal.MALFORMED
        generation = self._generation_of(message.username)
        if isinstance(generation, Refusal):
            return generation
        if not message.verify(generation.local.pwd):
            return Refusal.INTEGRITY
        if generation is self._current and self._previous is not None:
            self._events.append(GenerationEnded(self._previous.local.ufrag))
            self._previous = None
        path = known if known is not None else self._add_path(header, relay, generation, now)
        self._heard(path, relay, now)
        path.generation = max(path.generation, generation.number)
        path.priority = message.priority
        path.nominated = path.nominated or message.use_candidate
        if not path.validated:
            path.credit += _AMPLIFICATION * len(data)
        answer = binding_success(message.transaction_id, mapped=path.client, password=generation.local.pwd)
        self._send(path, relay, answer)
        self._check_soon(path, now)
        self._reconsider(path, "check", now, nominated=message.use_candidate)
        return path

    def handle_response(self, data: bytes, header: bytes, relay: Address, now: float) -> Path | Refusal:
        """A STUN response: the answer to a check of ours, if it is signed and came back by the same path."""
        path = self.paths.get(header)
        sent_at = path.pending.get(data[8:20]) if path is not None else None
        if path is None or sent_at is None:
            return Refusal.UNMATCHED
        try:
            message = parse_stun(data)
        except StunError:
            return Refusal.MALFORMED
        if message.cls != "success":
            return Refusal.UNMATCHED
        generation = self._generation(path.generation)
        if not message.verify(generation.remote.pwd):
            return Refusal.INTEGRITY
        path.pending.clear()
        path.attempts = 0
        path.measured(max(0.0, now - sent_at))
        path.consent_at = now
        path.check_at = now + CONSENT_SECONDS * self._rng.uniform(0.8, 1.2)
        self._heard(path, relay, now)
        path.validated = True
        self._reconsider(path, "validated", now)
        return path

    def authenticated(self, path: Path, relay: Address, now: float) -> None:
        """SRTP, SRTCP or DTLS that came by `path` proved to be the caller's."""
        self._heard(path, relay, now)
        path.uplink_at = now
        if not path.validated:
            path.credit += _AMPLIFICATION * 50
            self._check_soon(path, now)
        if path is not self.selected:
            self._reconsider(path, "uplink", now)

    def dtls_connected(self, path: Path, now: float) -> None:
        """DTLS completed with a flight that came by `path`: that exchange proves the path as a check of ours
        would.
        """
        self._dtls_up = True
        path.uplink_at = now
        path.consent_at = now
        path.validated = True
        if path.check_at is None:
            path.check_at = now + CONSENT_SECONDS * self._rng.uniform(0.8, 1.2)
        if self.selected is not path:
            self._select(path, "dtls", now)

    def restart(self, local: IceCredentials, remote: IceCredentials, now: float) -> None:
        """Begin a new generation (RFC 8445 section 9). Media stays where it is; DTLS is untouched."""
        if self._previous is not None:
            self._events.append(GenerationEnded(self._previous.local.ufrag))
        self._previous = self._current
        self._current = _Generation(self._current.number + 1, local, remote)
        self.restarts += 1
        self._new_paths = TokenBucket(CHECKS_PER_SECOND, CHECKS_PER_SECOND, now)

    def handle_timeout(self, now: float) -> None:
        """Do what is due: checks of ours, lost consent, silent paths, expiry."""
        if self._expired:
            return
        if now - self.heard_at >= self._expiry_seconds:
            self._expired = True
            self._events.append(Expired())
            return
        for path in list(self.paths.values()):
            if path.check_at is not None and path.check_at <= now:
                self._check(path, now)
            if path.validated and now - (path.consent_at or 0.0) >= CONSENT_LOST_SECONDS:
                path.validated = False
                path.credit = 0
            if path is not self.selected and now - path.heard_at >= CONSENT_LOST_SECONDS:
                self._remove(path)

    def poll_timeout(self) -> float | None:
        """When `handle_timeout` is wanted next; `None` once expired."""
        if self._expired:
            return None
        due = self.heard_at + self._expiry_seconds
        for path in self.paths.values():
            if path.check_at is not None:
                due = min(due, path.check_at)
            if path.validated:
                due = min(due, (path.consent_at or 0.0) + CONSENT_LOST_SECONDS)
            if path is not self.selected:
                due = min(due, path.heard_at + CONSENT_LOST_SECONDS)
        return due

    def poll_transmit(self) -> Iterator[Transmit]:
        """Drain what is to be sent, in order."""
        while self._transmits:
            yield self._transmits.popleft()

    def poll_event(self) -> Iterator[Event]:
        """Drain what happened, in order."""
        while self._events:
            yield self._events.popleft()

    def _generation_of(self, username: str) -> _Generation | Refusal:
        """The generation that a check is for: its USERNAME is `ours:theirs` (RFC 8445 section 7.2.2)."""
        local, _, remote = username.partition(":")
        for generation in (self._current, self._previous):
            if generation is not None and generation.local.ufrag == local:
                return generation if generation.remote.ufrag == remote else Refusal.USERNAME
        return Refusal.OLD_GENERATION

    def _generation(self, number: int) -> _Generation:
        previous = self._previous
        return previous if previous is not None and previous.number == number else self._current

    def _add_path(self, header: bytes, relay: Address, generation: _Generation, now: float) -> Path:
        if len(self.paths) >= MAX_PATHS:
            others = (path for path in self.paths.values() if path is not self.selected)
            self._remove(min(others, key=lambda path: (path.validated, path.heard_at)))
        spp = spp_decode(header)
        path = Path(
            header=header,
            client=spp.client,
            vip=spp.proxy,
            relay=relay,
            generation=generation.number,
            stun=TokenBucket(CHECKS_PER_SECOND, CHECKS_PER_SECOND, now),
            heard_at=now,
        )
        self.paths[header] = path
        self._events.append(PathAdded(path))
        return path

    def _remove(self, path: Path) -> None:
        del self.paths[path.header]
        self._events.append(PathRemoved(path))

    def _heard(self, path: Path, relay: Address, now: float) -> None:
        path.relay = relay
        path.heard_at = now
        if path.validated or not self._dtls_up:
            self.heard_at = now

    def _check_soon(self, path: Path, now: float) -> None:
        """Start validating a path that is not, unless that is under way."""
        if path.validated or path.check_at is not None:
            return
        path.attempts = 0
        self._check(path, now)

    def _check(self, path: Path, now: float) -> None:
        """Send a check of ours, and plan the next: quickly while validating, each 5 s as consent."""
        if path.validated:
            path.check_at = now + CONSENT_SECONDS * self._rng.uniform(0.8, 1.2)
        elif path.attempts < len(_RETRY_SECONDS):
            path.check_at = now + _RETRY_SECONDS[path.attempts]
            path.attempts += 1
        else:
            path.check_at = None
            return
        generation = self._generation(path.generation)
        transaction_id = self._rng.randbytes(12)
        request = binding_request(
            transaction_id,
            username=f"{generation.remote.ufrag}:{generation.local.ufrag}",
            password=generation.remote.pwd,
            priority=_PRIORITY,
            ice_controlled=self._tie_breaker,
        )
        if self._send(path, path.relay, request):
            while len(path.pending) >= MAX_PENDING:
                del path.pending[next(iter(path.pending))]
            path.pending[transaction_id] = now

    def _send(self, path: Path, relay: Address, payload: bytes) -> bool:
        if not path.validated:
            if path.credit < len(payload):
                return False
            path.credit -= len(payload)
        self._transmits.append(Transmit(path, relay, payload))
        return True

    def _reconsider(self, path: Path, reason: str, now: float, *, nominated: bool = False) -> None:
        """Whether media should move to `path`, which just gave a sign of life."""
        selected = self.selected
        if selected is None:
            self._select(path, reason, now)
        elif path is selected:
            return
        elif not self._dtls_up:
            if _rank(path) > _rank(selected):
                self._select(path, reason, now)
        elif path.validated or not self._validate_paths:
            if not selected.validated and self._validate_paths:
                self._select(path, reason, now)
            elif path.uplink_at is not None and _newer(path.uplink_at, selected.uplink_at):
                self._select(path, "uplink", now)
            else:
                patience = SILENT_NOMINATED_SECONDS if nominated else SILENT_SECONDS
                if now - selected.heard_at >= patience:
                    self._select(path, "silence", now)

    def _select(self, path: Path, reason: str, now: float) -> None:
        previous = self.selected
        self.selected = path
        if previous is not None:
            self.switches += 1
        self.history.append(PathChange(now, path.client, path.vip, path.relay, reason))
        self._events.append(PathSelected(path, previous))


def _rank(path: Path) -> tuple[bool, bool, int]:
    return path.validated, path.nominated, path.priority


def _newer(uplink_at: float, incumbent: float | None) -> bool:
    return incumbent is None or uplink_at - incumbent >= HYSTERESIS_SECONDS
