"""Which routes are in force, given the lists that arrive: one that would remove most is not believed at once.

An API server that restarts, or a file cut short, can say "no routes" for a moment; forwarding nothing would
cut every call. So additions and changes take effect at once, and removals too, unless one list removes over
half of the routes: those removals wait until another list, `CONFIRM_SECONDS` later or more, still lacks the
routes (DESIGN section 2, rule 8). Nothing here reads a clock or a file.
"""

from collections.abc import Mapping

RouteKey = tuple[int, int, int]
"""Cluster, ordinal, worker."""

CONFIRM_SECONDS = 30.0


class RouteTable:
    """The routes in force. Call `offer` with every list, and again with the current list when `due`."""

    def __init__(self, *, engine_routes: int = 0) -> None:
        """Start with nothing known.

        Args:
            engine_routes: How many routes a running engine already forwards to, from a control plane before
                this one. Their names are not known, so a first list with less than half as many waits as a
                whole.
        """
        self._engine_routes = engine_routes
        self._routes: dict[RouteKey, str] | None = None
        self._held: dict[RouteKey, float] = {}
        self._first_doubted_at: float | None = None

    @property
    def routes(self) -> Mapping[RouteKey, str] | None:
        """The routes in force and their addresses, None before there is a first list to believe."""
        return self._routes

    @property
    def held(self) -> int:
        """How many routes are in force only because their removal is not confirmed yet."""
        return len(self._held)

    @property
    def doubts_first(self) -> bool:
        """Whether a first list waits to be confirmed, while the engine keeps what it had before."""
        return self._first_doubted_at is not None

    def offer(self, listed: Mapping[RouteKey, str], now: float) -> bool:
        """Take a whole list. Returns whether `routes` changed. `now` is in seconds and never goes back."""
        if self._routes is None:
            return self._offer_first(listed, now)
        before = dict(self._routes)
        absent = [key for key in before if key not in listed]
        suspicious = 2 * len(absent) > len(before)
        after = dict(listed)
        held: dict[RouteKey, float] = {}
        for key in absent:
            since = self._held.get(key, now if suspicious else None)
            if since is not None and now - since < CONFIRM_SECONDS:
                held[key] = since
                after[key] = before[key]
        self._routes, self._held = after, held
        return after != before

    def due(self, now: float) -> bool:
        """Return whether the current list should be offered again, to confirm what waits."""
        waiting = [*self._held.values()]
        if self._first_doubted_at is not None:
            waiting.append(self._first_doubted_at)
        return any(now - since >= CONFIRM_SECONDS for since in waiting)

    def _offer_first(self, listed: Mapping[RouteKey, str], now: float) -> bool:
        if 2 * len(listed) < self._engine_routes:
            if self._first_doubted_at is None:
                self._first_doubted_at = now
            if now - self._first_doubted_at < CONFIRM_SECONDS:
                return False
        self._routes, self._first_doubted_at = dict(listed), None
        return True
