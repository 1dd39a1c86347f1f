"""The grammar level of SDP (RFC 8866): lines, sections, attributes. Knows nothing of WebRTC.

A document is a session part and media sections; each keeps its attributes in order. Unknown line types and
unknown attributes are kept and ignored, so that tomorrow's browsers still parse.
"""

from dataclasses import dataclass, field

MAX_BYTES = 65_536
MAX_LINES = 4_096


class OfferError(Exception):
    """An SDP that cannot be answered.

    `code` is a stable label for programs, `line` the offending line (or the one that is missing), `str()` a
    sentence for people. Never contains a password: lines with credentials are shown by their name only.
    """

    def __init__(self, code: str, message: str, line: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line


@dataclass(frozen=True, slots=True)
class Attributes:
    """The `a=` lines of one section, in order; `None` as a value is a flag such as `a=rtcp-mux`."""

    items: tuple[tuple[str, str | None], ...]

    def first(self, name: str) -> str | None:
        """The value of the first attribute `name`; the empty string for a flag, `None` where it is absent."""
        return next((value or "" for key, value in self.items if key == name), None)

    def all(self, name: str) -> list[str]:
        """The values of every attribute `name`, in order."""
        return [value or "" for key, value in self.items if key == name]

    def has(self, name: str) -> bool:
        """Whether an attribute `name` is present, with or without a value."""
        return any(key == name for key, _ in self.items)


@dataclass(frozen=True, slots=True)
class MediaLines:
    """One `m=` line and what follows it."""

    line: str
    kind: str
    port: int
    protocol: str
    formats: tuple[str, ...]
    attributes: Attributes


@dataclass(frozen=True, slots=True)
class Document:
    """A session part and its media sections, in order."""

    session: Attributes
    media: tuple[MediaLines, ...]


@dataclass(slots=True)
class _Draft:
    line: str | None = None
    attributes: list[tuple[str, str | None]] = field(default_factory=list)


def split(text: str) -> Document:
    """Split an SDP text into sections. Raises `OfferError` where it is not SDP at all."""
    if not text.strip():
        raise OfferError("invalid_offer", "there is no SDP", "v=0")
    if len(text) > MAX_BYTES:
        raise OfferError("too_large", f"the SDP is longer than {MAX_BYTES} characters")
    lines = text.replace("\r\n", "\n").split("\n")
    if len(lines) > MAX_LINES:
        raise OfferError("too_large", f"the SDP has more than {MAX_LINES} lines")
    if lines[0].strip() != "v=0":
        raise OfferError("invalid_offer", "this is not SDP: the first line must be v=0", shown(lines[0]))
    drafts = [_Draft()]
    for raw in lines:
        line = raw.strip()
        if not line:
            continue
        if len(line) < 2 or line[1] != "=" or not line[0].isalpha():
            raise OfferError("invalid_offer", "this is not a line of SDP", shown(line))
        if line[0] == "m":
            drafts.append(_Draft(line))
        elif line[0] == "a":
            name, colon, value = line[2:].partition(":")
            drafts[-1].attributes.append((name, value if colon else None))
    session, *media = drafts
    return Document(Attributes(tuple(session.attributes)), tuple(_media(draft) for draft in media))


def _media(draft: _Draft) -> MediaLines:
    line = draft.line or ""
    fields = line[2:].split()
    if len(fields) < 4:
        raise OfferError(
            "invalid_offer", "a media line needs a kind, a port, a protocol and formats", shown(line)
        )
    kind, port, protocol, *formats = fields
    number = port.partition("/")[0]
    if not (number.isascii() and number.isdigit() and int(number) <= 65535):
        raise OfferError("invalid_offer", "the port of a media line must be 0..65535", shown(line))
    return MediaLines(line, kind, int(number), protocol, tuple(formats), Attributes(tuple(draft.attributes)))


def shown(line: str) -> str:
    """A line as an error may show it: short, printable, without a password."""
    if line.strip().startswith("a=ice-pwd"):
        return "a=ice-pwd"
    return "".join(c if c.isprintable() else "?" for c in line.strip()[:120])
