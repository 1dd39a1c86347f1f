"""Writes what is wanted and is not there yet; nothing else.

On each object we keep a hash of what we asked for, so that a field which is no longer wanted is noticed and,
by server-side apply, removed. Objects are started in the order given, a few at a time, but those of `FIRST` are
done before others begin; one that is refused does not hold up the others.
"""

import asyncio
import hashlib
import json
import logging
from collections.abc import Sequence
from dataclasses import dataclass

from voicecluster.operator.fields import mapping, text
from voicecluster.operator.kube.difference import differs
from voicecluster.operator.kube.kinds import Ref, kind_of, metadata, ref
from voicecluster.operator.kube.port import Kube, Object, Refused, Store

APPLIED = "voicecluster.dev/applied"
"""Annotation on what we apply: the hash of what was asked for."""
AT_ONCE = 8
BREATH = 50
"""Objects compared before the loop may do something else: a large cluster has six hundred."""
FIRST = frozenset({"NetworkPolicy", "Role", "ServiceAccount"})
"""No pod runs before its policy and its account are there, and a Role that is not there yet cannot be bound."""
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Refusal:
    """An object that the API server will not have."""

    about: Ref
    message: str
    """One line, without secrets."""


@dataclass(frozen=True, slots=True)
class Changes:
    """What `apply_all` did."""

    applied: tuple[Ref, ...] = ()
    refused: tuple[Refusal, ...] = ()


async def apply_all(kube: Kube, store: Store, wanted: Sequence[Object]) -> Changes:
    """Apply each object that is not there as wanted.

    Raises KubeError other than Refused, when those already begun have ended; what is done stays done, and the
    next call does the rest. May be cancelled.
    """
    due = await _due(store, wanted)
    slots, applied, refused = asyncio.Semaphore(AT_ONCE), list[Ref](), list[Refusal]()

    async def write(each: Object) -> None:
        about = ref(each)
        async with slots:
            try:
                await kube.apply(each)
            except Refused as error:
                refused.append(Refusal(about, str(error)))
            else:
                applied.append(about)
                _LOG.info("applied", extra={"object": str(about)})

    early = [each for each in due if kind_of(each).kind in FIRST]
    for wave in (early, [each for each in due if kind_of(each).kind not in FIRST]):
        try:
            async with asyncio.TaskGroup() as tasks:
                for each in wave:
                    tasks.create_task(write(each), name=f"apply {ref(each)}")
        except* Exception as errors:
            raise _error(errors) from None
    return Changes(tuple(sorted(applied)), tuple(sorted(refused, key=lambda refusal: refusal.about)))


async def _due(store: Store, wanted: Sequence[Object]) -> list[Object]:
    found = []
    for number, each in enumerate(map(marked, wanted)):
        if number % BREATH == 0:
            await asyncio.sleep(0)
        if _is_due(each, store):
            found.append(each)
    return found


def marked(wanted: Object) -> Object:
    """The object with its hash on it."""
    content = json.dumps(wanted, sort_keys=True, separators=(",", ":")).encode()
    annotations = {
        **mapping(wanted, "metadata", "annotations"),
        APPLIED: hashlib.sha256(content).hexdigest()[:16],
    }
    return {**wanted, "metadata": {**metadata(wanted), "annotations": annotations}}


def _is_due(wanted: Object, store: Store) -> bool:
    about = ref(wanted)
    live = store.get(kind_of(wanted), about.namespace, about.name)
    if live is None:
        return True
    if text(live, "metadata", "deletionTimestamp"):
        return False  # it goes; when it has gone, we are called again
    paths = differs(wanted, live)
    if paths:
        _LOG.debug("differs", extra={"object": str(about), "paths": paths[:8]})
    return bool(paths)


def _error(errors: BaseExceptionGroup[Exception]) -> Exception:
    found: BaseException = errors
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    assert isinstance(found, Exception)
    return found
