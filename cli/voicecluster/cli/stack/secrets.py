"""Key material of a local stack: generated once, kept in its directory, so that keys and URLs survive a restart."""

import base64
import secrets
import stat

from voicecluster.cli.state import StackDirectory, StackError, write_private
from voicecluster.common.config.model import load
from voicecluster.common.config.transceiver import RootKeysFile
from voicecluster.operator.plan.keys import KeyMaterial, root_keys
from voicecluster.operator.plan.process import render

KEY_ID = "A"
ROOT_BYTES = 32


def key_material(directory: StackDirectory) -> KeyMaterial:
    """The stack's keys, made and written down the first time. Raises ConfigError or StackError for spoilt files."""
    if not directory.root_keys_file.exists():
        fresh = KeyMaterial(mint=KEY_ID, roots={KEY_ID: secrets.token_bytes(ROOT_BYTES)}, api_keys={})
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
    """The root secrets as bytes. Raises StackError when one is not base64 of 32 bytes."""
    roots: dict[str, bytes] = {}
    for key_id, text in document.keys.items():
        try:
            root = base64.b64decode(text, validate=True)
        except ValueError:
            root = b""
        if len(root) != ROOT_BYTES:
            raise StackError(f"root key {key_id} is not base64 of {ROOT_BYTES} bytes; generate it anew")
        roots[key_id] = root
    return roots
