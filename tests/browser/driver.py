"""Drives a real headless browser from a test: open a page, evaluate an expression in it, close.

Chromium speaks the DevTools protocol, Firefox WebDriver BiDi; both over a WebSocket whose address the browser
prints on start. Each browser runs with a fresh profile and ends, with its children, when the context does.
"""

import asyncio
import base64
import contextlib
import itertools
import json
import os
import re
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import aiohttp

CHROMIUM_FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--autoplay-policy=no-user-gesture-required",
    "--allow-loopback-in-peer-connection",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--disable-features=WebRtcHideLocalIpsWithMdns",
    "--window-size=1100,900",
    "--remote-debugging-port=0",
)

FIREFOX_PREFERENCES = {
    "media.peerconnection.ice.loopback": True,
    # without a granted permission Firefox gathers on the default route alone, and loopback is never that
    "permissions.default.camera": 1,
    "permissions.default.microphone": 1,
    "media.peerconnection.ice.obfuscate_host_addresses": False,
    "media.navigator.permission.disabled": True,
    "media.navigator.streams.fake": True,
    "media.autoplay.default": 0,
    "media.autoplay.blocking_policy": 0,
    "app.normandy.enabled": False,
    "app.update.enabled": False,
    "app.update.auto": False,
    "browser.aboutwelcome.enabled": False,
    "browser.newtabpage.enabled": False,
    "browser.region.network.url": "",
    "browser.safebrowsing.malware.enabled": False,
    "browser.safebrowsing.phishing.enabled": False,
    "browser.shell.checkDefaultBrowser": False,
    "datareporting.policy.dataSubmissionEnabled": False,
    "dom.push.enabled": False,
    "extensions.update.enabled": False,
    "media.gmp-manager.updateEnabled": False,
    "media.gmp-provider.enabled": False,
    "network.captive-portal-service.enabled": False,
    "network.connectivity-service.enabled": False,
    "network.prefetch-next": False,
    "remote.active-protocols": 1,
    "services.settings.server": "http://127.0.0.1:1/",
    "toolkit.telemetry.enabled": False,
}


class PageError(Exception):
    """An expression threw in the page, or the browser refused a command. The text is the browser's."""


class Page(Protocol):
    """A page of a real browser."""

    async def open(self, url: str) -> None:
        """Load `url` and wait for its load event."""

    async def evaluate(self, expression: str) -> object:
        """The JSON value of a JavaScript expression; promises are awaited. Raises `PageError`."""

    async def screenshot(self) -> bytes:
        """A PNG of what the page shows."""


@dataclass(slots=True)
class _Wire:
    """Numbered commands and their replies over one WebSocket; events are passed over."""

    socket: aiohttp.ClientWebSocketResponse
    numbers: "itertools.count[int]" = field(default_factory=lambda: itertools.count(1))

    async def command(
        self, method: str, /, session: str | None = None, **params: object
    ) -> dict[str, object]:
        number = next(self.numbers)
        message = {"id": number, "method": method, "params": params}
        await self.socket.send_json(message if session is None else {**message, "sessionId": session})
        while True:
            reply = await self.socket.receive_json()
            if reply.get("id") == number:
                if "error" in reply:
                    raise PageError(json.dumps(reply.get("message", reply["error"])))
                result: dict[str, object] = reply["result"]
                return result


@dataclass(slots=True)
class ChromiumPage:
    wire: _Wire
    session: str

    async def open(self, url: str) -> None:
        await self.wire.command("Page.navigate", self.session, url=url)
        await self.evaluate(
            "new Promise(done => document.readyState == 'complete' ? done() : addEventListener('load', done))"
            ".then(() => null)"
        )

    async def evaluate(self, expression: str) -> object:
        reply = await self.wire.command(
            "Runtime.evaluate",
            self.session,
            expression=expression,
            awaitPromise=True,
            returnByValue=True,
            userGesture=True,
        )
        if "exceptionDetails" in reply:
            raise PageError(json.dumps(reply["exceptionDetails"])[:2000])
        result = reply["result"]
        assert isinstance(result, dict)
        return result.get("value")

    async def screenshot(self) -> bytes:
        reply = await self.wire.command("Page.captureScreenshot", self.session, format="png")
        return base64.b64decode(str(reply["data"]))


@dataclass(slots=True)
class FirefoxPage:
    wire: _Wire
    context: str

    async def open(self, url: str) -> None:
        await self.wire.command("browsingContext.navigate", context=self.context, url=url, wait="complete")

    async def evaluate(self, expression: str) -> object:
        reply = await self.wire.command(
            "script.evaluate",
            expression=f"(async () => JSON.stringify(await ({expression})) ?? 'null')()",
            target={"context": self.context},
            awaitPromise=True,
            userActivation=True,
        )
        if reply.get("type") == "exception":
            raise PageError(json.dumps(reply["exceptionDetails"])[:2000])
        result = reply["result"]
        assert isinstance(result, dict)
        return json.loads(str(result["value"]))

    async def screenshot(self) -> bytes:
        reply = await self.wire.command("browsingContext.captureScreenshot", context=self.context)
        return base64.b64decode(str(reply["data"]))


@contextlib.asynccontextmanager
async def _started(command: list[str], announcement: str, home: Path) -> AsyncIterator[str]:
    """Run a browser in its own process group; yield what the group in `announcement` matched on stderr."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "HOME": str(home), "MOZ_DISABLE_CONTENT_SANDBOX": "1"},
        start_new_session=True,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(60):
            seen: list[str] = []
            while line := (await process.stderr.readline()).decode(errors="replace"):
                seen.append(line)
                if match := re.search(announcement, line):
                    break
            else:
                raise RuntimeError(f"{command[0]} ended before it was ready: {''.join(seen[-5:])}")
        drain = asyncio.create_task(process.stderr.read(), name="browser/stderr")
        yield match[1]
        drain.cancel()
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()


@contextlib.asynccontextmanager
async def chromium(*flags: str) -> AsyncIterator[ChromiumPage]:
    """A headless Chromium with one empty page."""
    home = Path(tempfile.mkdtemp(prefix="chromium-"))
    try:
        command = [
            shutil.which("chromium") or "chromium",
            *CHROMIUM_FLAGS,
            *flags,
            f"--user-data-dir={home}",
            "about:blank",
        ]
        async with (
            _started(command, r"DevTools listening on (ws://\S+)", home) as url,
            aiohttp.ClientSession() as http,
            http.ws_connect(url, max_msg_size=0) as socket,
        ):
            wire = _Wire(socket)
            target = (await wire.command("Target.createTarget", url="about:blank"))["targetId"]
            session = (await wire.command("Target.attachToTarget", targetId=target, flatten=True))[
                "sessionId"
            ]
            yield ChromiumPage(wire, str(session))
    finally:
        shutil.rmtree(home, ignore_errors=True)


@contextlib.asynccontextmanager
async def firefox() -> AsyncIterator[FirefoxPage]:
    """A headless Firefox with one empty page; it accepts loopback candidates (users must set that)."""
    home = Path(tempfile.mkdtemp(prefix="firefox-"))
    preferences = "".join(
        f"user_pref({json.dumps(k)}, {json.dumps(v)});\n" for k, v in FIREFOX_PREFERENCES.items()
    )
    (home / "user.js").write_text(preferences)
    command = [
        shutil.which("firefox-esr") or "firefox",
        "--headless",
        "--no-remote",
        "--remote-debugging-port=0",
    ]
    try:
        async with (
            _started(
                [*command, "--profile", str(home)], r"WebDriver BiDi listening on (ws://\S+)", home
            ) as url,
            aiohttp.ClientSession() as http,
            http.ws_connect(f"{url}/session", max_msg_size=0) as socket,
        ):
            wire = _Wire(socket)
            await wire.command("session.new", capabilities={})
            tree = (await wire.command("browsingContext.getTree"))["contexts"]
            assert isinstance(tree, list)
            yield FirefoxPage(wire, tree[0]["context"])
    finally:
        shutil.rmtree(home, ignore_errors=True)
