"""`/drain` on the admin port: who may, what it answers, and which workers hear of it."""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import pytest
from voicecluster.common.admin import Answer, Request
from voicecluster.common.config.model import ConfigError
from voicecluster.transceiver.drain import DrainReport
from voicecluster.transceiver.drain_port import DRAIN, DrainPort, DrainToken
from voicecluster.transceiver.forward import Reply, Unreachable
from voicecluster.transceiver.http.drain import drain_request
from voicecluster.transceiver.notes import Told, WorkerState

TOKEN = "drain-token"
DEADLINE = "2030-01-31T12:00:00Z"
UNIX_DEADLINE = 1896091200.0
BODY = json.dumps({"deadline": DEADLINE}).encode()
READY = WorkerState("ready", 0)

Asker = Callable[..., Awaitable[tuple[int, dict[str, object]]]]


@dataclass
class Workers:
    """The transceiver around the port: two workers that answer, until one of them is made not to."""

    told: Told | None = field(default_factory=lambda: Told((READY, READY), ending=False, cordoned_until=None))
    reports: list[DrainReport] = field(default_factory=lambda: [DrainReport(0, None), DrainReport(0, None)])
    failure: dict[int, Exception] = field(default_factory=dict)
    asked: list[tuple[int, str, bytes]] = field(default_factory=list)
    kept: list[float | None] = field(default_factory=list)
    heard: asyncio.Event = field(default_factory=asyncio.Event)

    def keep_cordon(self, deadline: float | None) -> None:
        self.kept.append(deadline)

    async def ask(self, index: int, method: str, body: bytes) -> Reply:
        self.asked.append((index, method, body))
        self.heard.set()
        if index in self.failure:
            raise self.failure[index]
        return Reply(200, {}, json.dumps(asdict(self.reports[index])).encode())


@pytest.fixture
def workers() -> Workers:
    return Workers()


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    (tmp_path / "token").write_text(f"{TOKEN}\n")
    return tmp_path / "token"


@pytest.fixture
def port(workers: Workers, token_file: Path) -> DrainPort:
    port = DrainPort(workers, workers.ask, DrainToken(token_file))
    assert workers.told is not None
    port.told(None, workers.told)
    return port


@pytest.fixture
def ask(port: DrainPort) -> Asker:
    async def ask(
        method: str, body: bytes = b"", authorization: str = f"Bearer {TOKEN}"
    ) -> tuple[int, dict[str, object]]:
        answer = await answered(port, method, body, authorization)
        is_json = answer.content_type == "application/json"
        return answer.status, json.loads(answer.body) if is_json else {"text": answer.body.decode()}

    return ask


async def answered(port: DrainPort, method: str, body: bytes, authorization: str) -> Answer:
    return await port.routes()[(method, DRAIN)](Request({"authorization": authorization}, body))


async def test_a_serving_transceiver_says_so(ask: Asker) -> None:
    expected = {"state": "serving", "calls": 0, "oldestCallSeconds": None, "deadline": None}
    assert await ask("GET") == (200, expected)


async def test_calls_are_counted_over_all_workers_and_the_oldest_is_that_of_all(
    ask: Asker, workers: Workers
) -> None:
    workers.reports = [DrainReport(2, 7.25), DrainReport(3, 90.12345)]
    _, shown = await ask("GET")
    assert (shown["calls"], shown["oldestCallSeconds"]) == (5, 90.123)


async def test_a_drain_is_passed_on_to_every_worker_and_kept_by_the_parent(
    ask: Asker, port: DrainPort, workers: Workers
) -> None:
    status, shown = await ask("PUT", BODY)
    assert (status, shown["state"], shown["deadline"]) == (200, "draining", DEADLINE)
    body = drain_request(UNIX_DEADLINE)
    assert sorted(workers.asked) == [(0, "PUT", body), (1, "PUT", body)]
    assert workers.kept == [UNIX_DEADLINE]
    assert port.cordoned


async def test_a_cancelled_drain_is_taken_back_everywhere(
    ask: Asker, port: DrainPort, workers: Workers
) -> None:
    await ask("PUT", BODY)
    workers.asked.clear()
    status, shown = await ask("DELETE")
    assert (status, shown["state"], shown["deadline"]) == (200, "serving", None)
    assert sorted(workers.asked) == [(0, "DELETE", b""), (1, "DELETE", b"")]
    assert workers.kept[-1] is None
    assert not port.cordoned


@pytest.mark.parametrize("authorization", ["", "Bearer", "Bearer wrong", TOKEN, f"Basic {TOKEN}", "Bearer é"])
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE"])
async def test_nobody_drains_or_asks_without_the_token(
    ask: Asker, workers: Workers, method: str, authorization: str
) -> None:
    status, _ = await ask(method, BODY, authorization)
    assert status == 401
    assert workers.asked == []
    assert workers.kept == []


def test_a_new_token_counts_at_once_and_a_token_file_that_went_leaves_the_last(token_file: Path) -> None:
    token = DrainToken(token_file)
    token_file.write_text("another")
    assert not token.admits(f"Bearer {TOKEN}")
    assert token.admits("Bearer another")
    token_file.unlink()
    assert token.admits("Bearer another")


@pytest.mark.parametrize("content", [None, "", " \n"])
def test_no_token_to_begin_with_is_an_error_that_names_the_file(
    token_file: Path, content: str | None
) -> None:
    token_file.unlink()
    if content is not None:
        token_file.write_text(content)
    with pytest.raises(ConfigError, match=f"{token_file}: drainTokenFile"):
        DrainToken(token_file)


async def test_without_a_token_file_there_is_no_drain_port(workers: Workers) -> None:
    assert DrainPort(workers, workers.ask, None).routes() == {}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b"{}",
        b'{"deadline": 5}',
        b'{"deadline": "soon"}',
        b'{"deadline": "2030-01-31T12:00:00"}',
        b'{"deadline": "2030-01-31T12:00:00Z", "force": true}',
    ],
)
async def test_a_bad_body_gets_one_line_that_says_what_to_send(
    ask: Asker, workers: Workers, body: bytes
) -> None:
    status, shown = await ask("PUT", body)
    assert status == 400
    text = str(shown["text"])
    assert text.count("\n") == 1
    assert 'send {"deadline": "' in text
    assert workers.kept == []


async def test_calls_of_a_worker_that_gives_no_answer_are_never_taken_for_none(
    ask: Asker, port: DrainPort, workers: Workers
) -> None:
    workers.failure[1] = TimeoutError()
    status, shown = await ask("PUT", BODY)
    assert (status, shown["text"]) == (503, "worker 1 gives no answer; ask again\n")
    assert port.cordoned, "the drain is in force all the same"


async def test_a_worker_that_does_not_run_has_no_calls(ask: Asker, workers: Workers) -> None:
    workers.reports[0] = DrainReport(2, 1.0)
    workers.failure[1] = Unreachable(gone=True)
    status, shown = await ask("GET")
    assert (status, shown["calls"]) == (200, 2)


async def test_a_transceiver_that_ends_is_draining_and_cannot_be_made_not_to(
    ask: Asker, workers: Workers
) -> None:
    workers.told = Told((READY, READY), ending=True, cordoned_until=None)
    assert (await ask("DELETE"))[1]["state"] == "draining"


async def test_a_port_that_knows_nothing_yet_says_to_ask_again(ask: Asker, workers: Workers) -> None:
    workers.told = None
    assert await ask("GET") == (503, {"text": "starting; ask again\n"})


async def test_a_port_that_was_started_again_learns_the_drain_from_the_parent(
    workers: Workers, token_file: Path
) -> None:
    port = DrainPort(workers, workers.ask, DrainToken(token_file))
    port.told(None, Told((READY, READY), ending=False, cordoned_until=UNIX_DEADLINE))
    shown = json.loads((await answered(port, "GET", b"", f"Bearer {TOKEN}")).body)
    assert (shown["state"], shown["deadline"]) == ("draining", DEADLINE)


async def test_a_worker_that_comes_up_again_hears_of_the_drain(
    ask: Asker, port: DrainPort, workers: Workers
) -> None:
    await ask("PUT", BODY)
    workers.asked.clear()
    workers.heard.clear()
    before = workers.told
    keeping = asyncio.create_task(port.keep_up())
    port.told(before, Told((READY, WorkerState("ready", 1)), ending=False, cordoned_until=UNIX_DEADLINE))
    async with asyncio.timeout(5):
        await workers.heard.wait()
    keeping.cancel()
    assert (1, "PUT", drain_request(UNIX_DEADLINE)) in workers.asked


async def test_a_worker_that_missed_the_drain_is_told_again(
    ask: Asker, port: DrainPort, workers: Workers, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("voicecluster.transceiver.drain_port.RETRY_SECONDS", 0.01)
    workers.failure[0] = Unreachable(gone=False)
    await ask("PUT", BODY)
    keeping = asyncio.create_task(port.keep_up())
    async with asyncio.timeout(5):
        for _ in range(3):
            workers.heard.clear()
            await workers.heard.wait()
        del workers.failure[0]
        while (await ask("GET"))[0] != 200:
            pass
    keeping.cancel()
