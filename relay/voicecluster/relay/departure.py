"""The loop around `LeavingRelay`: follows the relays' own EndpointSlices from the signal to stop until the end."""

import asyncio
import logging
from collections.abc import Callable, Mapping
from pathlib import Path

from voicecluster.common.atomic import write_atomic
from voicecluster.common.config.relay import Leaving, RelayConfig
from voicecluster.common.kube.api import KubeApi
from voicecluster.common.kube.watched import Object
from voicecluster.relay.leaving import LeavingRelay, Stage
from voicecluster.relay.slices import has_successor
from voicecluster.relay.sources import slices_path

_LOG = logging.getLogger(__name__)

STEP_SECONDS = 0.2


class Departure:
    """One relay's way out. Make it when the relay is told to stop; `run` once."""

    def __init__(
        self,
        config: RelayConfig,
        leaving: Leaving,
        api: KubeApi,
        *,
        packets: Callable[[], int],
        elapsed_seconds: float = 0.0,
    ) -> None:
        """Connects to nothing before `run`.

        Args:
            config: Whose departure it is.
            leaving: How it is to leave.
            api: Knows the other relays.
            packets: How many datagrams have come from callers so far.
            elapsed_seconds: How long ago the relay was told, where a control plane before this one was.
        """
        self._config, self._leaving, self._api, self._packets = config, leaving, api, packets
        self._now = asyncio.get_running_loop().time
        self._slices: Mapping[str, Object] = {}
        told_at = self._now() - elapsed_seconds
        self._relay = LeavingRelay(
            told_at=told_at, now=self._now(), grace_seconds=leaving.grace_seconds, packets=packets()
        )

    def ready(self) -> str | None:
        """What speaks against sending callers here because of leaving."""
        return None if self._relay.is_ready else f"leaving: {self._relay.stage.value}"

    async def run(self) -> None:
        """Return when the relay may end."""
        from voicecluster.common.kube.follow import follow  # only a relay that leaves needs it

        leaving = self._leaving
        following = asyncio.create_task(
            follow(
                self._api,
                slices_path(leaving.namespace),
                label_selector=f"kubernetes.io/service-name={leaving.service}",
                on_change=self._take,
            ),
            name="successors",
        )
        stage = self._relay.stage
        _LOG.info("leaving", extra={"stage": stage.value, "grace_seconds": leaving.grace_seconds})
        try:
            while stage is not Stage.GONE:
                before = stage
                stage = self._relay.update(
                    now=self._now(), successor=self._has_successor(), packets=self._packets()
                )
                if stage is not before:
                    _LOG.info("leaving", extra={"stage": stage.value})
                await asyncio.sleep(STEP_SECONDS)
        finally:
            following.cancel()
            await asyncio.wait([following])

    def _take(self, slices: Mapping[str, Object]) -> None:
        self._slices = slices

    def _has_successor(self) -> bool:
        config = self._config
        return has_successor(self._slices.values(), self._leaving, pod=config.name, node=config.node)


def say_leaving(control: Path, leaving: Leaving) -> None:
    """Tell the supervisor to wait: a file beside the control socket, with the seconds this may take."""
    try:
        write_atomic(control.with_name("leaving"), f"{leaving.grace_seconds:.0f}\n")
    except OSError as error:
        _LOG.warning("the supervisor will not wait", extra={"error": error.strerror})
