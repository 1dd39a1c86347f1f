"""SDP fragments (RFC 8840): what `PATCH` carries for an ICE restart. Trickled candidates are read over."""

import re
from dataclasses import dataclass

from voicecluster.transceiver.sdp.lines import MAX_BYTES, OfferError, shown

_UFRAG = re.compile(r"[!-9;-~]{4,256}")
_PWD = re.compile(r"[!-~]{22,256}")


@dataclass(frozen=True, slots=True)
class Fragment:
    """The credentials of a caller's new ICE generation (or of the running one, when it only trickles)."""

    ufrag: str
    pwd: str


def parse_fragment(sdpfrag: str) -> Fragment:
    """Read an `application/trickle-ice-sdpfrag` body.

    Raises `OfferError` where credentials are missing or malformed.
    """
    if len(sdpfrag) > MAX_BYTES:
        raise OfferError("too_large", f"the fragment is longer than {MAX_BYTES} characters")
    found: dict[str, str] = {}
    for raw in sdpfrag.splitlines():
        line = raw.strip()
        if line and (len(line) < 2 or line[1] != "="):
            raise OfferError("invalid_fragment", "this is not a line of an SDP fragment", shown(line))
        name, colon, value = line[2:].partition(":")
        if line.startswith("a=") and colon and name in ("ice-ufrag", "ice-pwd"):
            found.setdefault(name, value)
    ufrag, pwd = found.get("ice-ufrag", ""), found.get("ice-pwd", "")
    if not _UFRAG.fullmatch(ufrag):
        raise OfferError(
            "no_ufrag", "the fragment needs an ICE username fragment of 4..256 ice-chars", "a=ice-ufrag"
        )
    if not _PWD.fullmatch(pwd):
        raise OfferError("no_pwd", "the fragment needs an ICE password of 22..256 ice-chars", "a=ice-pwd")
    return Fragment(ufrag, pwd)
