"""The `Kube` port over `kubernetes.aio`: paths, patches, deadlines, and errors turned into ours.

Every object as it is after a write of ours goes to `wrote`, so that it is in the store before the watch brings it:
a reconcile right after another finds its own work. Nothing is retried here; the queue does that.
"""

import json
import time
from collections.abc import Callable, Mapping, Sequence
from http import HTTPStatus
from typing import Literal
from urllib.parse import urlencode

import aiohttp
from kubernetes.aio.client import ApiClient, Configuration
from voicecluster.operator.fields import at, items, mapping, text
from voicecluster.operator.kube.access import USER_AGENT, authorization
from voicecluster.operator.kube.kinds import Ref, kind_of, metadata, path, ref
from voicecluster.operator.kube.port import (
    FIELD_MANAGER,
    SECRETS,
    Conflict,
    Exists,
    Kind,
    KubeError,
    NotFound,
    Object,
    Refused,
    Unavailable,
)

REQUEST_SECONDS = 15.0
"""Of one request, with waiting for a connection; shorter than it takes to lose the Lease."""
CONNECTIONS = 32
_APPLY = "application/apply-patch+yaml"
_JSON = "application/json"
_METADATA_ONLY = "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"
_PAGE = 500

Method = Literal["GET", "POST", "PUT", "PATCH", "DELETE"]
Observe = Callable[[str, Kind, int | None, float], None]
"""Gets the verb, the kind, the status (None: no answer) and the seconds of every request."""


def _ignore(value: Object) -> None:
    """Nobody wants to see it."""


def _unobserved(verb: str, kind: Kind, status: int | None, seconds: float) -> None:
    """Nobody counts."""


class KubeClient:
    """The verbs of `port.Kube`, and those of the Lease and the sweep. Close it at the end."""

    def __init__(
        self,
        configuration: Configuration,
        *,
        wrote: Callable[[Object], None] = _ignore,
        observe: Observe = _unobserved,
    ) -> None:
        """`wrote` gets what each of our writes has made; must be quick."""
        configuration.connection_pool_maxsize = CONNECTIONS
        self._configuration = configuration
        self._api = ApiClient(configuration)
        self._api.user_agent = USER_AGENT
        self._wrote = wrote
        self._observe = observe

    async def close(self) -> None:
        """Close the connections."""
        await self._api.close()  # type: ignore[no-untyped-call]

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        """See `Kube.get`."""
        try:
            about = Ref(kind.kind, namespace, name)
            return without_managed_fields(
                await self._request("GET", "get", kind, about, path(kind, namespace, name))
            )
        except NotFound:
            return None

    async def apply(self, wanted: Object, *, manager: str = FIELD_MANAGER) -> Object:
        """See `Kube.apply`."""
        return await self._apply(wanted, None, manager)

    async def apply_status(self, wanted: Object) -> Object:
        """See `Kube.apply_status`."""
        return await self._apply(wanted, "status", FIELD_MANAGER)

    async def create(self, wanted: Object) -> Object:
        """See `Kube.create`."""
        kind, about = kind_of(wanted), ref(wanted)
        where = f"{path(kind, about.namespace)}?{urlencode({'fieldManager': FIELD_MANAGER})}"
        return self._kept(await self._request("POST", "create", kind, about, where, body=wanted))

    async def replace(self, changed: Object) -> Object:
        """Write an object whole. Raises Conflict where it is not at its `resourceVersion` any more."""
        kind, about = kind_of(changed), ref(changed)
        where = f"{path(kind, about.namespace, about.name)}?{urlencode({'fieldManager': FIELD_MANAGER})}"
        return self._kept(await self._request("PUT", "update", kind, about, where, body=changed))

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        """See `Kube.delete`."""
        options: Object = {
            "apiVersion": "v1",
            "kind": "DeleteOptions",
            "preconditions": {"uid": uid},
            "propagationPolicy": "Background",
        }
        about = Ref(kind.kind, namespace, name)
        try:
            await self._request("DELETE", "delete", kind, about, path(kind, namespace, name), body=options)
        except (NotFound, Conflict):
            return  # gone, or another one of that name

    async def list_metadata(
        self, kind: Kind, namespace: str | None, *, label_selector: str | None = None
    ) -> tuple[Sequence[Object], str]:
        """The metadata of all objects of a kind, and the resource version of the list."""
        found: list[Object] = []
        query = {"limit": str(_PAGE)} | ({"labelSelector": label_selector} if label_selector else {})
        about = Ref(kind.kind, namespace, "*")
        while True:
            where = f"{path(kind, namespace)}?{urlencode(query)}"
            page = await self._request("GET", "list", kind, about, where, accept=_METADATA_ONLY)
            found += [mapping(item) for item in items(page, "items")]
            if not (more := metadata(page).get("continue")):
                return found, str(metadata(page).get("resourceVersion"))
            query["continue"] = str(more)

    async def _apply(self, wanted: Object, subresource: str | None, manager: str) -> Object:
        kind, about = kind_of(wanted), ref(wanted)
        query = urlencode({"fieldManager": manager, "force": "true"})
        where = f"{path(kind, about.namespace, about.name, subresource=subresource)}?{query}"
        verb = f"apply {subresource}" if subresource else "apply"
        return self._kept(
            await self._request("PATCH", verb, kind, about, where, body=wanted, content_type=_APPLY)
        )

    def _kept(self, value: Object) -> Object:
        found = without_managed_fields(value)
        self._wrote(found)
        return found

    async def _request(
        self,
        method: Method,
        verb: str,
        kind: Kind,
        about: Ref,
        where: str,
        *,
        body: Object | None = None,
        content_type: str = _JSON,
        accept: str = _JSON,
    ) -> Object:
        """Raises KubeError. Cancelled, its effect is unknown."""
        started, status = time.monotonic(), None
        try:
            headers = await self._headers(content_type, accept)
            answer = await self._api.call_api(
                method,
                self._configuration.host + where,
                header_params=headers,
                body=body,
                _request_timeout=aiohttp.ClientTimeout(total=REQUEST_SECONDS),
            )
            status = answer.status
            found = _parsed(await answer.read(), status)  # type: ignore[no-untyped-call]
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
            why = str(error) or type(error).__name__
            raise Unavailable(f"{verb} {about}: no answer from the API server: {why}") from None
        finally:
            self._observe(verb, kind, status, time.monotonic() - started)
        if not isinstance(found, dict):
            raise Unavailable(f"{verb} {about}: the API server answered with something else than an object")
        if status >= HTTPStatus.BAD_REQUEST:
            raise refusal(verb, kind, about, status, found, answer.headers)
        return found

    async def _headers(self, content_type: str, accept: str) -> dict[str, str]:
        found = {"Accept": accept, "Content-Type": content_type, "User-Agent": self._api.user_agent}
        if given := await authorization(self._configuration):
            found["Authorization"] = given
        return found


def _parsed(content: bytes, status: int) -> object:
    """The answer's JSON; of a refusal that has none, as a proxy's, nothing. Raises ValueError."""
    try:
        return json.loads(content or b"{}")
    except ValueError:
        if status < HTTPStatus.BAD_REQUEST:
            raise
        return {}


def without_managed_fields(value: Object) -> Object:
    """An object as we keep it: who manages which field is half of its size, and we never ask."""
    kept = {key: item for key, item in metadata(value).items() if key != "managedFields"}
    return {**value, "metadata": kept}


def refusal(
    verb: str, kind: Kind, about: Ref, code: int, status: Object, headers: Mapping[str, str]
) -> KubeError:
    """The error for an answer that is none: `status` is the API's own Status object.

    Its message may quote what was sent; of Secrets only the paths of the bad fields are told.
    """
    reason = text(status, "reason") or f"HTTP {code}"
    said = _bad_fields(status) if kind == SECRETS else text(status, "message")
    told = f"{verb} {about}: {code} {reason}" + (f": {' '.join(said.split())}" if said else "")
    match code:
        case HTTPStatus.NOT_FOUND:
            return NotFound(told)
        case HTTPStatus.CONFLICT:
            return Exists(told) if reason == "AlreadyExists" else Conflict(told)
        case HTTPStatus.UNAUTHORIZED | HTTPStatus.REQUEST_TIMEOUT | HTTPStatus.TOO_MANY_REQUESTS:
            return Unavailable(told, retry_seconds=_retry_seconds(status, headers))
        case _ if code >= HTTPStatus.INTERNAL_SERVER_ERROR:
            return Unavailable(told, retry_seconds=_retry_seconds(status, headers))
    return Refused(told)


def _bad_fields(status: Object) -> str:
    return ", ".join(text(cause, "field") for cause in items(status, "details", "causes"))


def _retry_seconds(status: Object, headers: Mapping[str, str]) -> float | None:
    given = headers.get("Retry-After") or at(status, "details", "retryAfterSeconds")
    try:
        return max(0.0, float(str(given)))
    except ValueError:
        return None  # absent, or a date: our own pace is good enough
