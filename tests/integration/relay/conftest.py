"""Fixtures of the relay's integration tests."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from tests.integration.relay.harness import SUPERVISOR, Scene
from tests.integration.relay.namespaces import Network


@pytest.fixture
async def scene(tmp_path: Path) -> AsyncIterator[Scene]:
    if not SUPERVISOR.exists():
        pytest.skip(f"{SUPERVISOR} is not built: make setup")
    scene = Scene(tmp_path)
    yield scene
    await scene.close()


@pytest.fixture
def network() -> Iterator[Network]:
    network = Network()
    yield network
    network.close()
