"""Real local stacks: temporary state, addresses that nobody else uses."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.integration.stack.stacks import EXAMPLE, ONE_REGION, Stack, end, start


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """The stack of examples/local.yaml, moved to addresses of its own."""
    home = tmp_path_factory.mktemp("state")
    file = home / "example.yaml"
    text = EXAMPLE.read_text(encoding="utf-8")
    file.write_text(text.replace("[127.0.0.1]", "[127.0.106.1]").replace("[127.0.0.2]", "[127.0.106.2]"))
    stack = start(home, file, "--signaling", "127.0.106.1:8080", "--internal", "127.0.107.0/24")
    yield stack
    end(stack)


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Stack]:
    """One relay and one transceiver."""
    file = tmp_path / "small.yaml"
    file.write_text(ONE_REGION, encoding="utf-8")
    stack = start(tmp_path, file, "--signaling", "127.0.106.9:8080", "--internal", "127.0.108.0/24")
    yield stack
    end(stack)
