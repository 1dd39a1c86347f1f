"""Writes a status if it says something else than the one that is there."""

from collections.abc import Mapping

from pydantic import ValidationError
from voicecluster.common.config.model import M, Model
from voicecluster.operator.fields import mapping, text
from voicecluster.operator.kube.port import Json, Kube, NotFound, Object


async def write_status(kube: Kube, resource: Object, status: Model) -> bool:
    """Make `status` the resource's. Returns whether it was not already. Raises KubeError.

    `resource` is as it was read: a condition whose status has not changed must have kept its time.
    """
    before = read_status(type(status), resource)
    if mapping(resource, "status") and before == status:
        return False
    wanted: Object = {
        "apiVersion": text(resource, "apiVersion"),
        "kind": text(resource, "kind"),
        "metadata": {
            "name": text(resource, "metadata", "name"),
            "namespace": text(resource, "metadata", "namespace"),
        },
        "status": content(status),
    }
    try:
        await kube.apply_status(wanted)
    except NotFound:
        return False  # deleted meanwhile
    return True


def read_status(model: type[M], resource: Object | None) -> M:
    """The status of a resource; an empty one where there is none, or none that can be read."""
    try:
        return model.model_validate(mapping(resource, "status"))
    except ValidationError:
        return model()


def content(status: Model) -> Mapping[str, Json]:
    """The status as the API has it: what is None is absent."""
    found: Mapping[str, Json] = status.model_dump(mode="json", by_alias=True, exclude_none=True)
    return found
