"""Python sees what Rust sees: the vector files of `wire/vectors/`, through the bindings."""

import json
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import pytest
from pydantic import BaseModel, BeforeValidator, ConfigDict
from voicecluster.wire import (
    CallKey,
    Deframer,
    FramingError,
    HintError,
    HintKey,
    Route,
    SppError,
    StunError,
    derive_key,
    ice_pwd,
    key_id_of,
    parse_stun,
    spp_decode,
    spp_encode,
)

VECTORS = Path(__file__).parents[3] / "wire" / "vectors"
Hex = Annotated[bytes, BeforeValidator(bytes.fromhex)]


class Case(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)
    name: str


class DeriveCase(Case):
    root: Hex
    label: Literal["hint", "pwd", "call", "token", "internal"]
    cluster: int
    key: Hex


class PwdCase(Case):
    pwd_key: Hex
    ufrag: str
    pwd: str


class HintCase(Case):
    key_id: str
    key: Hex
    text: str
    cluster: int = 0
    ordinal: int = 0
    worker: int = 0
    nonce: int = 0
    error: str | None = None


class SppCase(Case):
    header: Hex
    client: tuple[str, int] | None = None
    proxy: tuple[str, int] | None = None
    error: str | None = None


class StreamCase(Case):
    stream: Hex
    frames: list[Hex] = []
    pending: int = 0
    error: str | None = None


class StunCase(Case):
    message: Hex
    cls: str = ""
    transaction_id: Hex = b""
    username: str | None = None
    priority: int | None = None
    use_candidate: bool = False
    ice_controlling: int | None = None
    ice_controlled: int | None = None
    xor_mapped_address: tuple[str, int] | None = None
    error_code: int | None = None
    has_integrity: bool = False
    has_fingerprint: bool = False
    password: str | None = None
    error: str | None = None


C = TypeVar("C", bound=Case)


def cases(file: str, model: type[C]) -> list[C]:
    return [model.model_validate(case) for case in json.loads((VECTORS / file).read_text())["cases"]]


def name(case: Case) -> str:
    return case.name


@pytest.mark.parametrize("case", cases("derive.json", DeriveCase), ids=name)
def test_a_derived_key_is_the_vectors(case: DeriveCase) -> None:
    assert derive_key(case.root, case.label, case.cluster) == case.key


@pytest.mark.parametrize("case", cases("pwd.json", PwdCase), ids=name)
def test_a_password_is_the_vectors(case: PwdCase) -> None:
    assert ice_pwd(case.pwd_key, case.ufrag) == case.pwd


@pytest.mark.parametrize("case", cases("hint.json", HintCase), ids=name)
def test_a_ufrag_opens_or_fails_as_the_vector_says(case: HintCase) -> None:
    check_hint(HintKey(case.key_id, case.key), case)


@pytest.mark.parametrize("case", cases("call_id.json", HintCase), ids=name)
def test_a_call_id_opens_or_fails_as_the_vector_says(case: HintCase) -> None:
    check_hint(CallKey(case.key_id, case.key), case)


def check_hint(key: HintKey | CallKey, case: HintCase) -> None:
    if case.error is not None:
        with pytest.raises(HintError, match=f"^{case.error}$") as raised:
            key.open(case.text)
        assert raised.value.reason == case.error
        return
    opened = key.open(case.text)
    assert opened.route == Route(case.cluster, case.ordinal, case.worker)
    assert opened.nonce == case.nonce
    assert key.mint(opened.route, opened.nonce) == case.text
    assert key_id_of(case.text) == case.key_id


@pytest.mark.parametrize("case", cases("spp.json", SppCase), ids=name)
def test_an_spp_header_reads_or_fails_as_the_vector_says(case: SppCase) -> None:
    if case.client is None or case.proxy is None:
        with pytest.raises(SppError) as raised:
            spp_decode(case.header)
        assert raised.value.reason == case.error
        return
    header = spp_decode(case.header)
    assert (header.client, header.proxy) == (case.client, case.proxy)
    assert spp_encode(case.client, case.proxy) == case.header


@pytest.mark.parametrize("case", cases("rfc4571.json", StreamCase), ids=name)
def test_a_stream_gives_the_vectors_datagrams(case: StreamCase) -> None:
    deframer = Deframer(16)
    if case.error is not None:
        with pytest.raises(FramingError) as raised:
            deframer.feed(case.stream)
        assert raised.value.reason == case.error
        return
    assert deframer.feed(case.stream) == case.frames
    assert deframer.pending == case.pending


@pytest.mark.parametrize("case", cases("stun.json", StunCase), ids=name)
def test_a_stun_message_says_what_the_vector_says(case: StunCase) -> None:
    if case.error is not None:
        with pytest.raises(StunError) as raised:
            parse_stun(case.message)
        assert raised.value.reason == case.error
        return
    message = parse_stun(case.message)
    attributes = StunCase.model_fields.keys() - {"name", "message", "password", "error"}
    said = {attribute: getattr(message, attribute) for attribute in attributes}
    assert said == {attribute: getattr(case, attribute) for attribute in attributes}
    if case.password is not None:
        assert message.verify(case.password)
        assert not message.verify(case.password + "x")
