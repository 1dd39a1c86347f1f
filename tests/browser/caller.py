"""What a person does with the page, and what they then see and hear."""

import asyncio
import base64
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.browser import speech
from tests.browser.driver import Page

EARS = (Path(__file__).parent / "ears.js").read_text()
LOUD = 0.02
"""RMS above which the agent is speaking; speech here is around 0.1, comfort noise below 0.001."""


@dataclass(slots=True)
class Caller:
    """Somebody at the page of `url`."""

    page: Page
    url: str

    async def arrive(self, utterance: bytes | None = None) -> None:
        """Open the page. With `utterance` (a WAV) the microphone is replaced by what `say` plays."""
        await self.page.open(self.url)
        await self.page.evaluate(EARS)
        if utterance is not None:
            await self.page.evaluate(f"ears.load('{base64.b64encode(utterance).decode()}')")
            await self.page.evaluate("ears.replaceMicrophone()")

    async def choose(self, field: str, value: str) -> None:
        """Pick an entry of one of the page's menus."""
        await self.until(
            f"[...document.getElementById('{field}').options].some((one) => one.value === '{value}')"
        )
        await self.page.evaluate(f"document.getElementById('{field}').value = '{value}'")

    async def start(self) -> None:
        """Press start and wait until the call is up and its audio can be heard."""
        await self.page.evaluate("document.getElementById('start').click()")
        await self.until("document.getElementById('state').dataset.state === 'connected'")
        await self.until("document.getElementById('speaker').srcObject !== null")
        await self.page.evaluate("ears.listen(document.getElementById('speaker').srcObject)")

    async def stop(self) -> None:
        """Press stop."""
        await self.page.evaluate("document.getElementById('stop').click()")

    async def say(self) -> float:
        """Begin the utterance; the page's clock (ms) at its first sample."""
        return float(str(await self.page.evaluate("ears.say()")))

    async def first_heard(self, since: float = 0, *, within: float = 20) -> float:
        """The page's clock (ms) when the agent is first heard after `since`."""
        async with asyncio.timeout(within):
            return float(str(await self.page.evaluate(f"ears.loud({LOUD}, {since})")))

    async def last_heard(self, *, quiet_ms: int, within: float = 20) -> float:
        """The page's clock (ms) of the agent's last sound, once it has been silent for `quiet_ms`."""
        async with asyncio.timeout(within):
            return float(str(await self.page.evaluate(f"ears.quietFor({quiet_ms}, {LOUD})")))

    async def recording(self, since: float = 0) -> speech.Samples:
        """What was heard since `since`."""
        return speech.recorded(base64.b64decode(str(await self.page.evaluate(f"ears.recording({since})"))))

    async def restart_ice(self) -> None:
        """Press the restart button; returns when the answer with the new credentials is applied."""
        before = await self.remote_ufrag()
        await self.page.evaluate("document.getElementById('restart').click()")
        await self.until(f"!voicecluster.call.peer.remoteDescription.sdp.includes({json.dumps(before)})")

    async def remote_ufrag(self) -> str:
        """The ufrag that the last answer named."""
        found = await self.page.evaluate(
            r"voicecluster.call.peer.remoteDescription.sdp.match(/ice-ufrag:(\S+)/)[1]"
        )
        return str(found)

    async def quality(self) -> dict[str, Any]:
        """The page's own figures."""
        found = await self.page.evaluate("voicecluster.call.quality()")
        assert isinstance(found, dict)
        return found

    async def debug(self) -> dict[str, Any]:
        """The server's view of the call."""
        found = await self.page.evaluate("voicecluster.call.debug()")
        assert isinstance(found, dict)
        return found

    async def until(self, condition: str, *, within: float = 15) -> None:
        """Wait in the page until a JavaScript condition holds."""
        look = f"const look = () => {{ if ({condition}) done(); else setTimeout(look, 10); }}; look();"
        wait = f"new Promise((done) => {{ {look} }})"
        async with asyncio.timeout(within):
            await self.page.evaluate(wait)
