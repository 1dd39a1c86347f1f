"""Key material of a local stack: generated once and kept, so that keys and tokens survive a restart."""

import secrets
import stat

from voicecluster.cli.state import StackDirectory, StackError, write_private
from voicecluster.common.config.keys import KEY_BYTES, decode_key
from voicecluster.common.config.model import load
from voicecluster.common.config.transceiver import RootKeysFile
from voicecluster.operator.plan.keys import KeyMaterial, root_keys
from voicecluster.operator.plan.process import render

KEY_ID = "A"


def key_material(directory: StackDirectory) -> KeyMaterial:
    """The stack's keys, made and written down the first time. Raises ConfigError for spoilt files."""
    if not directory.root_keys_file.exists():
        fresh = KeyMaterial(mint=KEY_ID, roots={KEY_ID: secrets.token_bytes(KEY_BYTES)}, api_keys={})
        write_private(directory.root_keys_file, render(root_keys(fresh)))
    if not directory.api_key_file.exists():
        write_private(directory.api_key_file, f"vc-{secrets.token_urlsafe(32)}\n")
    for path in (directory.root_keys_file, directory.api_key_file):
        if stat.S_IMODE(path.stat().st_mode) & 0o077:
            raise StackError(f"{path}: others can read this secret; run 'chmod 600 {path}'")
    document = load(directory.root_keys_file, RootKeysFile)
    api_keys = {directory.api_key_file.name: directory.api_key_file.read_text(encoding="utf-8").strip()}
    return KeyMaterial(mint=document.mint, roots=decoded_roots(document), api_keys=api_keys)


def decoded_roots(document: RootKeysFile) -> dict[str, bytes]:
    """The root secrets as bytes."""
    return {key_id: decode_key(text) for key_id, text in document.keys.items()}
