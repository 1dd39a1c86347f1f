"""Secrets as configuration files carry them. No message about one ever repeats it."""

import base64
import binascii
from typing import Annotated

from pydantic import AfterValidator, Field

KEY_BYTES = 32

KeyId = Annotated[str, Field(pattern="^[A-Za-z0-9]$")]
"""Names one of a cluster's root secrets: a single letter or digit."""


def decode_key(text: str) -> bytes:
    """Return the 32 bytes that `text` is the base64 of. Raises ValueError with the form wanted."""
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("not base64; write the base64 of 32 random bytes") from None
    if len(key) != KEY_BYTES:
        raise ValueError(f"{len(key)} bytes long; write the base64 of {KEY_BYTES} random bytes")
    return key


def _checked(text: str) -> str:
    decode_key(text)
    return text


Key = Annotated[str, AfterValidator(_checked)]
"""Base64 of 32 bytes; checked, kept as text. `decode_key` gives the bytes."""
