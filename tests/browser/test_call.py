"""Real browsers talk to the real stack: page, relay, transceiver, parrot and back."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest

from tests.browser import driver, speech
from tests.browser.caller import Caller
from tests.browser.conftest import Stack

Browser = Callable[[], AbstractAsyncContextManager[driver.Page]]
LIKE = 0.5
"""Likeness of an answer that was heard whole: 0.65 to 0.9 as measured; of other speech, below 0.4 (test_speech.py)."""
BROWSERS = [pytest.param(driver.chromium, id="chromium"), pytest.param(driver.firefox, id="firefox")]


@contextlib.asynccontextmanager
async def calling(
    browser: Browser, stack: Stack, utterance: Path, *, model: str, region: str = ""
) -> AsyncIterator[Caller]:
    async with browser() as page:
        caller = Caller(page, stack.url)
        await caller.arrive(speech.wav(utterance))
        await caller.choose("model", model)
        if region:
            await caller.choose("region", region)
        await caller.start()
        yield caller
        await caller.stop()


async def heard_answer(caller: Caller, utterance: Path) -> float:
    """How like the utterance the parrot's answer is."""
    said = speech.read(utterance)
    began = await caller.first_heard()
    await caller.last_heard(quiet_ms=700)
    return speech.likeness(said, await caller.recording(began - 1000))


@pytest.mark.parametrize("browser", BROWSERS)
async def test_a_browser_speaks_and_hears_the_parrot_say_it_back(
    browser: Browser, stack: Stack, utterance: Path
) -> None:
    async with calling(browser, stack, utterance, model="parrot") as caller:
        await caller.say()
        assert await heard_answer(caller, utterance) > LIKE


async def test_chromium_speaks_through_its_microphone(stack: Stack, microphone_file: Path) -> None:
    microphone = f"--use-file-for-fake-audio-capture={microphone_file}%noloop"
    async with driver.chromium(microphone) as page:
        caller = Caller(page, stack.url)
        await caller.arrive()
        await caller.start()
        assert await heard_answer(caller, microphone_file.with_name("utterance.wav")) > LIKE
        await caller.stop()


@pytest.mark.parametrize("browser", BROWSERS)
async def test_the_only_remote_candidate_is_the_vip_of_the_chosen_region(
    browser: Browser, stack: Stack, utterance: Path
) -> None:
    async with calling(browser, stack, utterance, model="echo", region="us-east") as caller:
        await caller.say()
        await caller.first_heard()
        quality, debug = await caller.quality(), await caller.debug()
        assert set(quality["remotes"]) == {stack.vips["us-east"]}
        assert stack.vips["us-east"] in quality["pair"]
        assert (debug["vip"], debug["region"]) == (stack.vips["us-east"], "us-east")


@pytest.mark.parametrize("browser", BROWSERS)
async def test_an_interruption_silences_the_parrot_within_200_ms(
    browser: Browser, stack: Stack, utterance: Path
) -> None:
    onset = speech.first_sound(speech.read(utterance)) * 1000
    async with calling(browser, stack, utterance, model="parrot") as caller:
        await caller.say()
        began = await caller.first_heard()
        await caller.first_heard(began + 800)  # well into the answer, as a person would
        interrupted = await caller.say() + onset
        silenced = await caller.last_heard(quiet_ms=400)
        assert silenced - interrupted < 200
        # it was speaking, and stopped for this: silence alone could be a pause or the answer's end
        await caller.until(
            "document.getElementById('log').textContent.includes('output_audio_buffer.cleared')"
        )


@pytest.mark.parametrize("browser", BROWSERS)
async def test_twenty_ice_restarts_in_a_row_keep_the_call(
    browser: Browser, stack: Stack, utterance: Path
) -> None:
    async with calling(browser, stack, utterance, model="echo") as caller:
        for _ in range(20):
            await caller.restart_ice()
            await caller.until("voicecluster.call.peer.iceConnectionState.match(/^(connected|completed)$/)")
        spoke = await caller.say()
        assert await caller.first_heard(spoke) - spoke < 2000
        assert (await caller.debug())["ice_restarts"] == 20


async def test_chromium_fails_within_a_second_once_a_restarted_worker_refuses_its_checks(
    stack: Stack, utterance: Path
) -> None:
    async with calling(driver.chromium, stack, utterance, model="echo") as caller:
        debug = await caller.debug()
        await stack.kill_worker(debug)
        async with asyncio.timeout(10):
            await stack.refused_checks(debug)
        await caller.until("document.getElementById('state').dataset.state === 'failed'", within=1)
