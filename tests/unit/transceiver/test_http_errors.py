"""What bad input gets from the HTTP API, and that good input gets through. Calls are faked: no media here."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest
from aiohttp.test_utils import TestClient, TestServer
from voicecluster.common.config.transceiver import DirectoryFile
from voicecluster.transceiver.directory import Directory
from voicecluster.transceiver.forward import Forwarder
from voicecluster.transceiver.http import errors
from voicecluster.transceiver.http.api import CALLS, FRAGMENT_TYPE, Answered, Place
from voicecluster.transceiver.http.app import public_app
from voicecluster.transceiver.http.auth import ApiKeys, InternalKeys
from voicecluster.transceiver.http.errors import ApiError
from voicecluster.transceiver.http.offer import OfferRequest
from voicecluster.wire import Route

Client = TestClient[aiohttp.web.Request, aiohttp.web.Application]

OFFER = "v=0\r\nm=audio 9 UDP/TLS/RTP/SAVPF 111\r\n"
SDP_BYTES = 65_536
KNOWN = "rtc_known"
GONE = "rtc_gone"
ALICE = {"Authorization": "Bearer alice-key"}
BOB = {"Authorization": "Bearer bob-key"}


@dataclass
class FakeCall:
    """A call of alice's."""

    key_name: str = "alice"
    hung_up: bool = False

    def hang_up(self) -> None:
        self.hung_up = True

    def restart_ice(self, fragment: str) -> str | None:
        return "a=ice-ufrag:ours\r\n" if "ice-ufrag:new" in fragment else None

    def debug(self) -> Mapping[str, object]:
        return {"call_id": KNOWN}


@dataclass
class FakeHost:
    """Takes every offer, until it is full."""

    room: bool = True
    call: FakeCall = field(default_factory=FakeCall)
    offers: list[OfferRequest] = field(default_factory=list)
    refusal: ApiError | None = None

    def has_room(self) -> bool:
        return self.room

    async def open(self, offer: OfferRequest, *, key_name: str) -> Answered:
        if self.refusal is not None:
            raise self.refusal
        self.offers.append(offer)
        return Answered(KNOWN, "v=0 answer")

    def find(self, call_id: str) -> FakeCall | None:
        return self.call if call_id == KNOWN else None


def route_of(call_id: str) -> Route | None:
    return Route(7, 0, 0) if call_id in (KNOWN, GONE) else None


@pytest.fixture
def host() -> FakeHost:
    return FakeHost()


@pytest.fixture
async def client(host: FakeHost) -> AsyncIterator[Client]:
    file = DirectoryFile.model_validate(
        {
            "regions": [
                {
                    "name": "eu-west",
                    "index": 0,
                    "transceivers": [{"ordinal": 0, "host": "127.0.105.1", "internalPort": 9, "workers": 1}],
                },
                {"name": "us-east", "index": 1, "transceivers": []},
            ]
        }
    )
    directory = Directory(file)
    place = Place("eu-west", 0, 0, directory=lambda: directory, route_of_call=route_of)
    keys = ApiKeys({"alice": "alice-key", "bob": "bob-key"})
    internal = InternalKeys("A", {"A": bytes(32)})
    async with Forwarder(lambda: internal) as forwarder:
        app = public_app(
            host=host,
            place=place,
            forwarder=forwarder,
            api_keys=lambda: keys,
            cors_origins=lambda: ["*"],
            sdp_bytes=lambda: SDP_BYTES,
        )
        async with TestClient(TestServer(app)) as testing:
            yield testing


async def offered(client: Client, body: bytes | str = OFFER, **options: object) -> aiohttp.ClientResponse:
    headers = {"Content-Type": "application/sdp", **ALICE, **options.pop("headers", {})}  # type: ignore[dict-item]
    return await client.post(CALLS, data=body, headers=headers, **options)  # type: ignore[arg-type]


async def error_of(response: aiohttp.ClientResponse) -> dict[str, object]:
    body = await response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "code", "param"}
    error: dict[str, object] = body["error"]
    return error


async def test_an_offer_as_sdp_gets_201_an_answer_and_the_calls_location(
    client: Client, host: FakeHost
) -> None:
    response = await offered(client, params={"model": "gpt-realtime"})
    assert response.status == 201
    assert response.content_type == "application/sdp"
    assert response.headers["Location"] == f"{CALLS}/{KNOWN}"
    assert await response.text() == "v=0 answer"
    assert host.offers == [OfferRequest(OFFER, "gpt-realtime", None)]
    assert response.headers["Server"] == "voicecluster"


@pytest.mark.parametrize("as_file", [False, True])
async def test_an_offer_in_a_form_carries_its_session(client: Client, host: FakeHost, as_file: bool) -> None:
    session = {"type": "realtime", "model": "parrot"}
    form = aiohttp.FormData()
    form.add_field("sdp", OFFER, content_type="application/sdp", filename="offer.sdp" if as_file else None)
    form.add_field("session", json.dumps(session), content_type="application/json")
    response = await client.post(CALLS, data=form(), headers=ALICE)
    assert response.status == 201
    assert host.offers == [OfferRequest(OFFER, "parrot", session)]


@pytest.mark.parametrize(
    ("headers", "why"),
    [
        ({"Authorization": "Bearer wrong"}, "wrong key"),
        ({"Authorization": "Basic alice-key"}, "other scheme"),
        ({"Authorization": "Bearer "}, "empty key"),
        ({"Authorization": ""}, "empty header"),
    ],
)
async def test_a_caller_without_a_known_key_gets_401(
    client: Client, headers: dict[str, str], why: str
) -> None:
    response = await offered(client, headers=headers)
    assert response.status == 401, why
    assert (await error_of(response))["code"] == "invalid_api_key"


@pytest.mark.parametrize(
    ("body", "status", "code"),
    [
        (b"", 400, "missing_sdp"),
        (b"\r\n \r\n", 400, "missing_sdp"),
        (b"\xff\xfe\x00", 400, "invalid_offer"),
        (b"v" * (SDP_BYTES + 1), 413, "sdp_too_large"),
        (b"v" * (4 * SDP_BYTES), 413, "sdp_too_large"),
    ],
)
async def test_a_body_that_cannot_be_an_offer_is_refused(
    client: Client, body: bytes, status: int, code: str
) -> None:
    response = await offered(client, body)
    assert response.status == status
    assert (await error_of(response))["code"] == code


async def test_too_much_sdp_without_a_length_gets_413_as_well(client: Client) -> None:
    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(300):
            yield b"v" * 1024

    headers = {"Content-Type": "application/sdp", **ALICE}
    response = await client.post(CALLS, data=chunks(), headers=headers)
    assert response.status == 413
    await error_of(response)


@pytest.mark.parametrize(
    ("fields", "status", "code"),
    [
        ({"session": "{}"}, 400, "missing_sdp"),
        ({"sdp": OFFER, "session": "not json"}, 400, "invalid_session"),
        ({"sdp": OFFER, "session": "[1]"}, 400, "invalid_session"),
        ({"sdp": OFFER, "session": json.dumps("x" * 66_000)}, 413, "session_too_large"),
        ({"sdp": "v" * (SDP_BYTES + 1)}, 413, "sdp_too_large"),
    ],
)
async def test_a_form_that_lacks_something_is_refused(
    client: Client, fields: dict[str, str], status: int, code: str
) -> None:
    with aiohttp.MultipartWriter("form-data") as form:
        for name, value in fields.items():
            form.append(value).set_content_disposition("form-data", name=name)
    response = await client.post(CALLS, data=form, headers=ALICE)
    assert response.status == status
    assert (await error_of(response))["code"] == code


async def test_a_body_that_never_comes_gets_408(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(errors, "REQUEST_SECONDS", 0.05)
    never = asyncio.Event()

    async def stalling() -> AsyncIterator[bytes]:
        yield b"v=0"
        await never.wait()

    headers = {"Content-Type": "application/sdp", **ALICE}
    response = await client.post(CALLS, data=stalling(), headers=headers)
    assert response.status == 408
    assert (await error_of(response))["code"] == "request_timeout"


async def test_a_form_without_a_boundary_gets_400(client: Client) -> None:
    response = await offered(client, headers={"Content-Type": "multipart/form-data"})
    assert response.status == 400
    await error_of(response)


async def test_another_content_type_gets_415_that_says_which_are_right(client: Client) -> None:
    response = await offered(client, headers={"Content-Type": "application/json"})
    assert response.status == 415
    assert "application/sdp" in str((await error_of(response))["message"])


@pytest.mark.parametrize("where", ["header", "query"])
async def test_an_unknown_region_gets_400_that_lists_the_regions(client: Client, where: str) -> None:
    options = {"headers": {"X-Voice-Region": "mars"}} if where == "header" else {"params": {"region": "mars"}}
    response = await offered(client, **options)
    assert response.status == 400
    message = str((await error_of(response))["message"])
    assert "eu-west" in message
    assert "us-east" in message


async def test_a_full_region_gets_503_and_when_to_retry(client: Client, host: FakeHost) -> None:
    host.room = False
    response = await offered(client)
    assert response.status == 503
    assert int(response.headers["Retry-After"]) > 0
    assert (await error_of(response))["type"] == "server_error"


async def test_a_refused_offer_is_told_with_its_line(client: Client, host: FakeHost) -> None:
    host.refusal = ApiError(400, "no_audio", "no audio section (line: m=audio)", param="sdp")
    response = await offered(client)
    assert response.status == 400
    assert await error_of(response) == {
        "message": "no audio section (line: m=audio)",
        "type": "invalid_request_error",
        "code": "no_audio",
        "param": "sdp",
    }


@pytest.mark.parametrize("call_id", [GONE, "rtc_nonsense"])
@pytest.mark.parametrize(
    ("method", "tail"), [("POST", "/hangup"), ("DELETE", ""), ("PATCH", ""), ("GET", "/debug")]
)
async def test_a_request_on_an_unknown_call_gets_404(
    client: Client, call_id: str, method: str, tail: str
) -> None:
    headers = {**ALICE, "Content-Type": FRAGMENT_TYPE}
    response = await client.request(method, f"{CALLS}/{call_id}{tail}", headers=headers)
    assert response.status == 404
    assert (await error_of(response))["code"] == "call_not_found"


@pytest.mark.parametrize(
    ("method", "tail"), [("POST", "/hangup"), ("DELETE", ""), ("PATCH", ""), ("GET", "/debug")]
)
async def test_a_call_of_another_key_looks_like_an_unknown_one(
    client: Client, host: FakeHost, method: str, tail: str
) -> None:
    headers = {**BOB, "Content-Type": FRAGMENT_TYPE}
    response = await client.request(method, f"{CALLS}/{KNOWN}{tail}", headers=headers)
    assert response.status == 404
    assert not host.call.hung_up


async def test_hangup_ends_the_callers_own_call(client: Client, host: FakeHost) -> None:
    response = await client.post(f"{CALLS}/{KNOWN}/hangup", headers=ALICE)
    assert response.status == 200
    assert host.call.hung_up


async def test_a_fragment_with_new_credentials_gets_ours(client: Client) -> None:
    headers = {**ALICE, "Content-Type": FRAGMENT_TYPE}
    response = await client.patch(f"{CALLS}/{KNOWN}", data="a=ice-ufrag:new\r\n", headers=headers)
    assert response.status == 200
    assert response.content_type == FRAGMENT_TYPE
    assert await response.text() == "a=ice-ufrag:ours\r\n"


async def test_a_fragment_that_only_trickles_gets_204(client: Client) -> None:
    headers = {**ALICE, "Content-Type": FRAGMENT_TYPE}
    response = await client.patch(f"{CALLS}/{KNOWN}", data="a=ice-ufrag:old\r\n", headers=headers)
    assert response.status == 204


async def test_a_patch_of_another_type_gets_415(client: Client) -> None:
    response = await client.patch(f"{CALLS}/{KNOWN}", data="{}", headers=ALICE)
    assert response.status == 415


async def test_regions_are_told_without_a_key(client: Client) -> None:
    response = await client.get("/v1/realtime/regions")
    assert await response.json() == {"regions": ["eu-west", "us-east"], "default": "eu-west"}


async def test_a_browsers_preflight_is_granted_and_location_exposed(client: Client) -> None:
    asked = {
        "Origin": "https://page.example",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,x-custom",
    }
    preflight = await client.options(CALLS, headers=asked)
    assert preflight.status == 204
    assert preflight.headers["Access-Control-Allow-Origin"] == "*"
    assert preflight.headers["Access-Control-Allow-Headers"] == "authorization,x-custom"
    assert "PATCH" in preflight.headers["Access-Control-Allow-Methods"]
    response = await offered(client, headers={"Origin": "https://page.example"})
    assert "Location" in response.headers["Access-Control-Expose-Headers"]


async def test_errors_can_be_read_across_origins_too(client: Client) -> None:
    response = await offered(client, headers={"Authorization": "", "Origin": "https://page.example"})
    assert response.status == 401
    assert response.headers["Access-Control-Allow-Origin"] == "*"


@pytest.mark.parametrize(("method", "path", "status"), [("GET", "/v1/nothing", 404), ("GET", CALLS, 405)])
async def test_unknown_paths_and_methods_get_errors_of_the_same_shape(
    client: Client, method: str, path: str, status: int
) -> None:
    response = await client.request(method, path, headers=ALICE)
    assert response.status == status
    await error_of(response)


async def test_the_page_is_served_uncached_under_a_strict_policy(client: Client) -> None:
    response = await client.get("/")
    assert response.status == 200
    assert response.headers["Content-Type"] == "text/html; charset=utf-8"
    assert response.headers["Cache-Control"] == "no-cache"
    assert "default-src 'none'" in response.headers["Content-Security-Policy"]
    script = await client.get("/page/app.js")
    assert script.content_type == "text/javascript"


@pytest.mark.parametrize(
    "path", ["/page/../main.py", "/page/..%2fmain.py", "/page/.hidden", "/page/", "/page/none.js"]
)
async def test_the_page_serves_nothing_else(client: Client, path: str) -> None:
    response = await client.get(path)
    assert response.status == 404


def test_api_keys_are_read_from_a_mounted_directory(tmp_path: Path) -> None:
    (tmp_path / "alice").write_text("alice-key\n")
    (tmp_path / "empty").write_text("\n")
    (tmp_path / "..data").mkdir()
    keys = ApiKeys.read(tmp_path)
    assert keys.name_of("Bearer alice-key") == "alice"
    with pytest.raises(ApiError):
        keys.name_of("Bearer ..data")


@pytest.mark.parametrize("changed", ["method", "path", "body", "key", "signature", "time", "key id"])
def test_a_signature_covers_the_whole_request(changed: str) -> None:
    keys = InternalKeys("A", {"A": bytes(32), "B": bytes([1] * 32)})
    headers = keys.sign("POST", "/x", b"body", "alice")
    assert keys.verify("POST", "/x", b"body", headers) == "alice"
    edits = {
        "key": {"X-Voicecluster-Key": b"bob".hex()},
        "signature": {"X-Voicecluster-Signature": "0" * 64},
        "time": {"X-Voicecluster-Time": "1000000000"},
        "key id": {"X-Voicecluster-Signed-With": "B"},
    }
    with pytest.raises(ApiError):
        keys.verify(
            "GET" if changed == "method" else "POST",
            "/y" if changed == "path" else "/x",
            b"other" if changed == "body" else b"body",
            {**headers, **edits.get(changed, {})},
        )
