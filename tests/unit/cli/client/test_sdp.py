"""Offers that others accept and answers that we read."""

import pytest
from voicecluster.cli.client import sdp
from voicecluster.cli.client.errors import CallError
from voicecluster.cli.client.ice import Credentials, RemoteCandidate

ANSWER = """v=0
o=- 1 1 IN IP4 127.0.0.1
s=-
t=0 0
a=group:BUNDLE 0
a=ice-lite
m=audio 9 UDP/TLS/RTP/SAVPF 111
c=IN IP4 0.0.0.0
a=candidate:1 1 udp 2130706431 2001:db8::1 3478 typ host
a=candidate:2 1 UDP 2130706175 192.0.2.1 3478 typ host
a=candidate:3 1 tcp 1010828543 192.0.2.1 443 typ host tcptype passive
a=candidate:4 1 udp 2130706175 4711.local 3478 typ host
a=ice-ufrag:Aserver
a=ice-pwd:secretsecretsecretsecret
a=fingerprint:SHA-256 ab:CD
a=setup:active
a=mid:0
a=rtcp-mux
a=rtpmap:111 opus/48000/2
"""


def test_an_answer_says_where_who_and_how() -> None:
    answer = sdp.parse_answer(ANSWER)
    assert answer.remote == Credentials("Aserver", "secretsecretsecretsecret")
    assert answer.candidates == (
        RemoteCandidate(("2001:db8::1", 3478), 2130706431),
        RemoteCandidate(("192.0.2.1", 3478), 2130706175),
    )
    assert (answer.fingerprint, answer.setup, answer.opus) == (("sha-256", "AB:CD"), "active", 111)


@pytest.mark.parametrize(
    ("line", "named"),
    [
        ("a=ice-ufrag:Aserver\n", "ice-ufrag"),
        ("a=ice-pwd:secretsecretsecretsecret\n", "ice-pwd"),
        ("a=fingerprint:SHA-256 ab:CD\n", "fingerprint"),
        ("a=setup:active\n", "setup"),
        ("a=rtpmap:111 opus/48000/2\n", "Opus"),
    ],
)
def test_an_answer_that_lacks_a_line_is_refused_with_its_name(line: str, named: str) -> None:
    with pytest.raises(CallError, match=named):
        sdp.parse_answer(ANSWER.replace(line, ""))


def test_the_offer_names_each_socket_once_and_ipv6_first() -> None:
    hosts = (("127.0.0.1", 4000), ("::1", 4001))
    offer = sdp.build_offer(Credentials("u", "p"), hosts, fingerprint="sha-256 AB", ssrc=1, cname="c")
    lines = [line.split() for line in offer.splitlines() if line.startswith("a=candidate:")]
    assert [(parts[4], parts[5]) for parts in lines] == [("::1", "4001"), ("127.0.0.1", "4000")]
    assert int(lines[0][3]) > int(lines[1][3])


def test_a_fragment_round_trips() -> None:
    mine = Credentials("ufrag", "p" * 22)
    remote, candidates = sdp.parse_fragment(sdp.build_fragment(mine))
    assert (remote, candidates) == (mine, ())
