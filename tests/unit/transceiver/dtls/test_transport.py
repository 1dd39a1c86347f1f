"""Real calls over loopback: an aiortc client, a relay that speaks SPP, and the transport itself."""

from typing import Any

import pytest


@pytest.mark.parametrize("ice_lite", [True, False])
async def test_a_call_connects_and_echoes_events(bench: Any, ice_lite: bool) -> None:
    call = await bench.connect(ice_lite=ice_lite)
    assert await call.caller.echoed("hello") == "hello"
