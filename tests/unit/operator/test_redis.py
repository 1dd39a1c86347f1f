"""Whether Redis answers, asked of a server of ours that speaks as little of its protocol as it takes."""

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from voicecluster.operator.kube import port
from voicecluster.operator.kube.port import Kind, Object
from voicecluster.operator.observe import Observed
from voicecluster.operator.redis import RedisCheck, Target, ping

from tests.unit.operator.world import World, child, voice_cluster

PASSWORD = "hunter2"


@asynccontextmanager
async def server(answers: dict[bytes, bytes], *, deaf: bool = False) -> AsyncIterator[int]:
    """Answers each command by its name, others with OK. Yields its port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readline():
            if deaf:
                continue
            words = []
            for _ in range(int(head[1:])):
                size = int((await reader.readline())[1:])
                words.append((await reader.readexactly(size + 2))[:-2])
            writer.write(answers.get(words[0].upper(), b"+OK\r\n"))
            await writer.drain()
        writer.close()

    listening = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with listening:
        yield listening.sockets[0].getsockname()[1]


def target(number: int) -> Target:
    return Target(f"redis://relay:{PASSWORD}@127.0.0.1:{number}/0")


async def test_a_server_that_answers_is_fine() -> None:
    async with server({b"PING": b"+PONG\r\n"}) as number:
        assert await ping(target(number)) is None


@pytest.mark.parametrize(
    "refusal", [b"-WRONGPASS invalid username-password pair\r\n", b"-NOAUTH required\r\n"]
)
async def test_a_wrong_password_is_told_without_it(refusal: bytes) -> None:
    async with server({b"AUTH": refusal, b"PING": refusal}) as number:
        assert await ping(target(number)) == "it refused the user or the password"


async def test_a_user_that_may_not_ping_is_told() -> None:
    async with server({b"PING": b"-NOPERM no permission\r\n"}) as number:
        problem = await ping(target(number))
    assert problem is not None
    assert "+ping" in problem


async def test_a_refused_connection_is_told() -> None:
    async with server({}) as number:
        pass
    assert await ping(target(number)) == "it refused the connection"


async def test_something_else_than_redis_is_told() -> None:
    async with server({b"AUTH": b"HTTP/1.1 400 Bad Request\r\n"}) as number:
        assert await ping(target(number)) in ("it cannot be reached", "it does not speak Redis' protocol")


async def test_a_server_that_is_silent_is_not_waited_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("voicecluster.operator.redis.TIMEOUT_SECONDS", 0.2)
    async with server({}, deaf=True) as number:
        problem = await ping(target(number))
    assert problem is not None
    assert "did not answer" in problem


@pytest.mark.parametrize("url", ["http://example.com", "nonsense", "redis://h:port/0"])
async def test_an_url_that_is_none_is_told_without_it(url: str) -> None:
    problem = await ping(Target(url))
    assert problem is not None
    assert url not in problem


def test_a_target_does_not_show_its_url() -> None:
    assert PASSWORD not in repr(target(1))


class Api:
    """Has one Secret, `flows`."""

    def __init__(self, **entries: str) -> None:
        data = {
            key.replace("_", "."): base64.b64encode(text.encode()).decode() for key, text in entries.items()
        }
        self.secret = child(port.SECRETS, "flows", "config", data=data) if entries else None

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        return self.secret

    async def apply(self, wanted: Object) -> Object:
        raise AssertionError("nothing is written")

    create = apply_status = apply

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        raise AssertionError("nothing is deleted")


def external() -> Observed:
    return World(voice_cluster(redis={"mode": "External", "external": {"secret": "flows"}})).observe()


class Pings:
    """Counts, and says what it is told to."""

    def __init__(self, problem: str | None = None) -> None:
        self.problem = problem
        self.asked: list[Target] = []

    async def __call__(self, target: Target) -> str | None:
        self.asked.append(target)
        return self.problem


async def test_an_answer_is_believed_for_fifteen_seconds() -> None:
    pings, now = Pings(), [0.0]
    check = RedisCheck(Api(url="redis://h", ca_crt="PEM"), lambda: now[0], pings)
    for now[0] in (0.0, 14.9):
        finding, wait = await check.check(external())
        assert finding is not None
        assert (finding.status, wait) == ("True", 15.0)
    assert pings.asked == [Target("redis://h", "PEM")]
    now[0] = 15.0
    await check.check(external())
    assert len(pings.asked) == 2


async def test_a_new_url_is_asked_at_once() -> None:
    pings, api = Pings(), Api(url="redis://h")
    check = RedisCheck(api, lambda: 0.0, pings)
    await check.check(external())
    api.secret = Api(url="redis://other").secret
    await check.check(external())
    assert [each.url for each in pings.asked] == ["redis://h", "redis://other"]


@pytest.mark.parametrize(("api", "words"), [(Api(), "does not exist"), (Api(other="x"), "has no entry url")])
async def test_a_secret_that_lacks_the_url_is_named(api: Api, words: str) -> None:
    finding, wait = await RedisCheck(api, lambda: 0.0, Pings()).check(external())
    assert finding is not None
    assert (finding.status, finding.reason.value, wait) == ("False", "RedisSecretInvalid", 5.0)
    assert f"Secret flows, which redis.external.secret names, {words}" in finding.message


async def test_where_no_redis_is_wanted_nothing_is_said_of_it() -> None:
    world = World(voice_cluster(redis={"mode": "None"}))
    assert await RedisCheck(Api(), lambda: 0.0, Pings()).check(world.observe()) == (None, None)
