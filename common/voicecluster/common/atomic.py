"""Replacing a file as a whole: readers see the old content or the new one, never a part of either."""

import os
import secrets
from pathlib import Path


def write_atomic(path: Path, content: str | bytes, *, mode: int = 0o644) -> None:
    """Write `content` beside `path` and rename it into place.

    The directory must exist. The rename is what a `WatchedFile` on `path` notices. Nothing is left behind
    when it fails; two writers at once leave the content of one of them.

    Args:
        path: The file to create or replace. A symbolic link is replaced, not followed.
        content: Text is written as UTF-8.
        mode: Permission bits of the new file; 0o600 for secrets. They hold from its first moment.

    Raises:
        OSError: The directory is missing, full or not writable.
    """
    data = content.encode() if isinstance(content, str) else content
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
