"""Who may call: API keys of the public API, and signatures of the internal ports."""

import hashlib
import hmac
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from voicecluster.transceiver.http.errors import ApiError

log = logging.getLogger(__name__)

ANONYMOUS = ""
"""The name of the key of a caller that needs none."""

SIGNED_SECONDS = 30
"""How far the clocks of two transceivers may differ, and how long a signature is good."""

KEY_HEADER = "X-Voicecluster-Key"
KEY_ID_HEADER = "X-Voicecluster-Signed-With"
TIME_HEADER = "X-Voicecluster-Time"
SIGNATURE_HEADER = "X-Voicecluster-Signature"


class ApiKeys:
    """The keys of a directory with one file per key: the file's name is the key's name, its content the key.

    Keys are kept as digests and compared in constant time, all of them, whichever matches.
    """

    def __init__(self, keys: Mapping[str, str]) -> None:
        self._digests = {name: hashlib.sha256(key.encode()).digest() for name, key in keys.items()}

    @classmethod
    def read(cls, directory: Path) -> "ApiKeys":
        """Read `directory`; hidden entries (a mounted Secret's own) and empty files are none.

        Raises OSError.
        """
        keys: dict[str, str] = {}
        for path in sorted(directory.iterdir()):
            if path.name.startswith(".") or not path.is_file():
                continue
            key = path.read_text(encoding="utf-8", errors="replace").strip()
            if key:
                keys[path.name] = key
            else:
                log.warning("API key is empty", extra={"key_name": path.name})
        return cls(keys)

    def name_of(self, authorization: str | None) -> str:
        """The name of the key in an `Authorization: Bearer …` header. Raises ApiError 401."""
        scheme, _, key = (authorization or "").partition(" ")
        if scheme.lower() != "bearer" or not key.strip():
            raise _unauthorized("Send an API key: 'Authorization: Bearer KEY'.")
        digest = hashlib.sha256(key.strip().encode()).digest()
        found = None
        for name, known in self._digests.items():
            if hmac.compare_digest(digest, known):
                found = name
        if found is None:
            raise _unauthorized("This API key is not known here.")
        return found


def _unauthorized(message: str) -> ApiError:
    return ApiError(401, "invalid_api_key", message, headers={"WWW-Authenticate": "Bearer"})


@dataclass(frozen=True, slots=True)
class InternalKeys:
    """K_internal of every key id, and the id to sign with."""

    mint: str
    keys: Mapping[str, bytes]

    def sign(self, method: str, path: str, body: bytes, key_name: str) -> dict[str, str]:
        """Headers that prove to a sibling that this cluster asks, on behalf of the caller with `key_name`."""
        stamp = str(int(time.time()))
        name = key_name.encode().hex()
        signature = _signature(self.keys[self.mint], method, path, body, name, stamp)
        return {
            KEY_HEADER: name,
            KEY_ID_HEADER: self.mint,
            TIME_HEADER: stamp,
            SIGNATURE_HEADER: signature,
        }

    def verify(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> str:
        """The name of the caller's key as a sibling checked it.

        Raises ApiError 401 unless a sibling signed now.
        """
        key = self.keys.get(headers.get(KEY_ID_HEADER, ""))
        stamp, name = headers.get(TIME_HEADER, ""), headers.get(KEY_HEADER, "")
        if key is None or not stamp.isascii() or not stamp.isdigit() or len(stamp) > 12:
            raise _not_signed()
        if abs(time.time() - int(stamp)) > SIGNED_SECONDS:
            raise _not_signed()
        expected = _signature(key, method, path, body, name, stamp)
        if not hmac.compare_digest(expected.encode(), headers.get(SIGNATURE_HEADER, "").encode()):
            raise _not_signed()
        try:
            return bytes.fromhex(name).decode()
        except ValueError:
            raise _not_signed() from None


def _not_signed() -> ApiError:
    return ApiError(401, "invalid_signature", "This port serves siblings only.")


def _signature(key: bytes, method: str, path: str, body: bytes, name: str, stamp: str) -> str:
    digest = hashlib.sha256(body).hexdigest()
    text = "\n".join((method, path, digest, name, stamp))
    return hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
