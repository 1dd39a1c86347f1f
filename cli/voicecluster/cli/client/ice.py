"""The controlling ICE agent of a client (RFC 8445), without socket, clock or task.

Driving it: hand every STUN datagram to `receive`, call `handle_timeout` when `poll_timeout` has passed, and
after either send all that `poll_transmit` gives. It nominates regularly: a pair is checked first, the best
valid pair is then checked with USE-CANDIDATE, and the answer to that selects it. From then on the selected
pair is checked every 2.5 s as Chrome does (RFC 7675 consent). When it has been silent for 4 s the other pairs
are checked too, and the first that answers takes over; 30 s without any answer is failure, and so is a signed
400 at once.
"""

import enum
import secrets
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from voicecluster import wire

Address = tuple[str, int]
PEER_REFLEXIVE_PRIORITY = (110 << 24) + (65535 << 8) + 255
CONSENT_SECONDS = 2.5
CONSENT_RETRY_SECONDS = 0.9
CONSENT_EXPIRY_SECONDS = 30.0
WEAK_SECONDS = 4.0
"""So long after its last answer the selected pair gets competition: two checks went unanswered."""
FIRST_RETRY_SECONDS = 0.1
LAST_RETRY_SECONDS = 1.6
CHECK_GIVE_UP_SECONDS = 12.0
NOMINATION_WAIT_SECONDS = 0.05
"""How long a valid pair waits for one of a higher priority that is still being checked."""
MAX_PAIRS = 16
MAX_TRANSACTIONS = 32


@dataclass(frozen=True, slots=True)
class Credentials:
    """An ICE user name fragment and password."""

    ufrag: str
    pwd: str = field(repr=False)

    @classmethod
    def generate(cls) -> "Credentials":
        """Fresh ones with more randomness than RFC 8839 5.4 asks for."""
        return cls(secrets.token_hex(4), secrets.token_hex(16))


@dataclass(frozen=True, slots=True)
class RemoteCandidate:
    """Where the other side says it can be reached."""

    address: Address
    priority: int


@dataclass(frozen=True, slots=True)
class Transmit:
    """A datagram to send."""

    destination: Address
    data: bytes


class IceState(enum.Enum):
    """Where the agent stands; CONNECTED means that a pair is selected."""

    NEW = "new"
    CHECKING = "checking"
    CONNECTED = "connected"
    FAILED = "failed"


class _PairState(enum.Enum):
    CHECKING = "checking"
    VALID = "valid"
    FAILED = "failed"


@dataclass(slots=True)
class _Pair:
    remote: Address
    priority: int
    next_check: float
    give_up: float
    interval: float = FIRST_RETRY_SECONDS
    state: _PairState = _PairState.CHECKING


@dataclass(frozen=True, slots=True)
class _Transaction:
    pair: _Pair
    sent: float
    nominates: bool
    remote: Credentials


class IceAgent:
    """One component of one call. All times are seconds of one monotonic clock."""

    def __init__(self, local: Credentials, *, families: frozenset[int]) -> None:
        """`families`: the IP versions (4, 6) that there is a socket for; other candidates are not paired."""
        self.state = IceState.NEW
        self.failure = ""
        self.selected: Address | None = None
        self.rtts: deque[float] = deque(maxlen=256)
        self.ignored = 0
        """STUN messages that were malformed, unsigned or of nobody we know."""
        self._families = families
        self._local = [local]
        self._remote: Credentials | None = None
        self._tie_breaker = secrets.randbits(64)
        self._pairs: list[_Pair] = []
        self._chosen: _Pair | None = None
        self._nominating: _Pair | None = None
        self._nominate_at: float | None = None
        self._transactions: dict[bytes, _Transaction] = {}
        self._consent_until = 0.0
        self._outbox: deque[Transmit] = deque()

    @property
    def local(self) -> Credentials:
        """The credentials of the current generation."""
        return self._local[0]

    @property
    def rtt(self) -> float | None:
        """The newest round trip of a check in seconds."""
        return self.rtts[-1] if self.rtts else None

    @property
    def remote_addresses(self) -> list[Address]:
        """Every remote address of the current generation's pairs, peer-reflexive ones included."""
        return [pair.remote for pair in self._pairs]

    def start(self, remote: Credentials, candidates: Sequence[RemoteCandidate], now: float) -> None:
        """Begin, or after `restart` begin anew, to check `candidates`.

        A selected pair stays until the next is.
        """
        self._remote = remote
        self._pairs = []
        self._chosen = self._nominating = self._nominate_at = None
        for candidate in candidates[:MAX_PAIRS]:
            if _family(candidate.address) in self._families:
                self._pairs.append(
                    _Pair(candidate.address, candidate.priority, now, now + CHECK_GIVE_UP_SECONDS)
                )
        self._pairs.sort(key=lambda pair: -pair.priority)
        self.state = IceState.CHECKING
        if not self._pairs:
            self._fail("no candidate of the answer can be reached from this client's sockets")
        self.handle_timeout(now)

    def restart(self) -> Credentials:
        """New credentials for an ICE restart (RFC 8445 2.4); `start` goes on with the other side's.

        Checks that still use the old ones are answered.
        """
        fresh = Credentials.generate()
        self._local = [fresh, self._local[0]]
        return fresh

    def receive(self, datagram: bytes, source: Address, now: float) -> None:
        """Take a STUN datagram in. Never raises; what is not for us is counted in `ignored`."""
        try:
            message = wire.parse_stun(datagram)
        except wire.StunError:
            self.ignored += 1
            return
        if message.cls == "request":
            self._answer(message, source, now)
        elif message.cls in ("success", "error"):
            self._conclude(message, source, now)

    def handle_timeout(self, now: float) -> None:
        """Send the checks that are due, choose a pair when it is time, notice failure."""
        if self.state is IceState.FAILED or self._remote is None:
            return
        if self._chosen is not None:
            self._keep_consent(self._chosen, now)
            return
        for pair in self._pairs:
            watched = pair.state is _PairState.CHECKING or pair is self._nominating
            if watched and now >= pair.give_up:
                pair.state = _PairState.FAILED
                self._nominating = None if pair is self._nominating else self._nominating
            elif watched and now >= pair.next_check:
                self._check(pair, now, nominate=pair is self._nominating)
                pair.next_check = now + pair.interval
                pair.interval = min(2 * pair.interval, LAST_RETRY_SECONDS)
        self._choose(now)

    def poll_timeout(self) -> float | None:
        """When `handle_timeout` is to be called next; None when nothing is pending."""
        if self.state is IceState.FAILED or self._remote is None:
            return None
        if self._chosen is not None:
            return min(self._chosen.next_check, self._consent_until)
        due = [
            min(pair.next_check, pair.give_up)
            for pair in self._pairs
            if pair.state is _PairState.CHECKING or pair is self._nominating
        ]
        if self._nominate_at is not None and self._nominating is None:
            due.append(self._nominate_at)
        return min(due, default=None)

    def poll_transmit(self) -> Transmit | None:
        """The next datagram to send; None when there is none."""
        return self._outbox.popleft() if self._outbox else None

    def _answer(self, message: wire.StunMessage, source: Address, now: float) -> None:
        ours, _, theirs = (message.username or "").partition(":")
        local = next((known for known in self._local if known.ufrag == ours), None)
        if local is None or not message.verify(local.pwd):
            self.ignored += 1
            return
        self._send(source, wire.binding_success(message.transaction_id, mapped=source, password=local.pwd))
        current = self._remote is not None and theirs == self._remote.ufrag
        if current and self._chosen is None and all(pair.remote != source for pair in self._pairs):
            self._add_peer_reflexive(source, message.priority, now)

    def _add_peer_reflexive(self, source: Address, priority: int | None, now: float) -> None:
        if len(self._pairs) < MAX_PAIRS:
            self._pairs.append(
                _Pair(source, priority or PEER_REFLEXIVE_PRIORITY, now, now + CHECK_GIVE_UP_SECONDS)
            )
            self._pairs.sort(key=lambda pair: -pair.priority)
            self.handle_timeout(now)

    def _conclude(self, message: wire.StunMessage, source: Address, now: float) -> None:
        transaction = self._transactions.get(message.transaction_id)
        if (
            transaction is None
            or transaction.pair.remote != source
            or not message.verify(transaction.remote.pwd)
        ):
            self.ignored += 1
            return
        del self._transactions[message.transaction_id]
        if message.cls == "error":
            self._refused(transaction.pair, message.error_code or 0)
            return
        self.rtts.append(now - transaction.sent)
        pair = transaction.pair
        if pair is self._chosen:
            self._consent_until = now + CONSENT_EXPIRY_SECONDS
            pair.next_check = max(pair.next_check, transaction.sent + CONSENT_SECONDS)
        elif self._chosen is not None and self._is_weak(now):
            self._select(pair, now)  # its check nominated it
        elif transaction.nominates and pair is self._nominating:
            self._select(pair, now)
        elif pair.state is _PairState.CHECKING and pair in self._pairs:
            pair.state = _PairState.VALID
            if self._nominate_at is None:
                self._nominate_at = now + NOMINATION_WAIT_SECONDS
            self._choose(now)

    def _refused(self, pair: _Pair, code: int) -> None:
        pair.state = _PairState.FAILED
        if pair is self._chosen:
            self._fail(f"the other side no longer knows this call (signed STUN {code})")
        elif pair is self._nominating:
            self._nominating = None
        if self._chosen is None and self._pairs and all(p.state is _PairState.FAILED for p in self._pairs):
            self._fail(f"every candidate refused the checks (signed STUN {code})")

    def _choose(self, now: float) -> None:
        if self._chosen is not None or self._nominating is not None or self.state is not IceState.CHECKING:
            return
        best = next((pair for pair in self._pairs if pair.state is _PairState.VALID), None)
        if best is None:
            if all(pair.state is _PairState.FAILED for pair in self._pairs):
                tried = ", ".join(f"{host} port {port}" for host, port in self.remote_addresses)
                self._fail(f"no check was answered by {tried}")
            return
        better_pending = any(
            p.state is _PairState.CHECKING and p.priority > best.priority for p in self._pairs
        )
        if better_pending and self._nominate_at is not None and now < self._nominate_at:
            return
        self._nominating = best
        best.interval = FIRST_RETRY_SECONDS
        self._check(best, now, nominate=True)
        best.next_check = now + best.interval

    def _select(self, pair: _Pair, now: float) -> None:
        self._chosen, self._nominating = pair, None
        self.selected = pair.remote
        self.state = IceState.CONNECTED
        self._consent_until = now + CONSENT_EXPIRY_SECONDS
        pair.next_check = now + CONSENT_SECONDS

    def _keep_consent(self, pair: _Pair, now: float) -> None:
        if now >= self._consent_until:
            self._fail(f"no check was answered for {CONSENT_EXPIRY_SECONDS:.0f} s")
        elif now >= pair.next_check:
            self._check(pair, now, nominate=True)
            pair.next_check = now + CONSENT_RETRY_SECONDS
            if self._is_weak(now):
                for other in self._pairs:
                    if other is not pair:
                        self._check(other, now, nominate=True)

    def _is_weak(self, now: float) -> bool:
        """Whether the selected pair has been silent for too long."""
        return now >= self._consent_until - CONSENT_EXPIRY_SECONDS + WEAK_SECONDS

    def _check(self, pair: _Pair, now: float, *, nominate: bool) -> None:
        remote = self._remote
        assert remote is not None, "checks are scheduled by start() only"
        if len(self._transactions) >= MAX_TRANSACTIONS:
            del self._transactions[next(iter(self._transactions))]
        transaction_id = secrets.token_bytes(12)
        self._transactions[transaction_id] = _Transaction(pair, now, nominate, remote)
        request = wire.binding_request(
            transaction_id,
            username=f"{remote.ufrag}:{self.local.ufrag}",
            password=remote.pwd,
            priority=PEER_REFLEXIVE_PRIORITY,
            use_candidate=nominate,
            ice_controlling=self._tie_breaker,
        )
        self._send(pair.remote, request)

    def _send(self, destination: Address, data: bytes) -> None:
        self._outbox.append(Transmit(destination, data))

    def _fail(self, reason: str) -> None:
        self.state = IceState.FAILED
        self.failure = reason


def _family(address: Address) -> int:
    return 6 if ":" in address[0] else 4
