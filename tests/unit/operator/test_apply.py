"""What is written and what is not, against objects in memory."""

import pytest
from voicecluster.operator.kube.apply import APPLIED, apply_all, marked
from voicecluster.operator.kube.kinds import Ref, kind_of, ref
from voicecluster.operator.kube.port import CONFIG_MAPS, Kind, Object, Refused, Unavailable
from voicecluster.operator.kube.prune import prune
from voicecluster.operator.store import Objects


def config(name: str, **data: str) -> Object:
    owner: Object = {"uid": "owner", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "namespace": "voice",
            "name": name,
            "labels": {"voicecluster.dev/cluster": "demo"},
            "ownerReferences": [owner],
        },
        "data": data,
    }


class Server:
    """Keeps what is applied, and refuses or fails what it is told to."""

    def __init__(self) -> None:
        self.objects = Objects(nodes=False)
        self.written: list[str] = []
        self.errors: dict[str, Exception] = {}
        self._version = 0

    async def get(self, kind: Kind, namespace: str | None, name: str) -> Object | None:
        return self.objects.get(kind, namespace, name)

    async def create(self, wanted: Object) -> Object:
        return await self.apply(wanted)

    async def apply(self, wanted: Object) -> Object:
        about = ref(wanted)
        self.written.append(f"apply {about.name}")
        if about.name in self.errors:
            raise self.errors[about.name]
        metadata = wanted["metadata"]
        assert isinstance(metadata, dict)
        self._version += 1
        made = {**wanted, "metadata": {**metadata, "uid": about.name, "resourceVersion": str(self._version)}}
        self.objects.put(kind_of(wanted), made)
        return made

    async def apply_status(self, wanted: Object) -> Object:
        return await self.apply(wanted)

    async def delete(self, kind: Kind, namespace: str, name: str, *, uid: str) -> None:
        self.written.append(f"delete {name}")
        live = self.objects.get(kind, namespace, name)
        assert live is not None
        self.objects.drop(kind, live, at=self._version + 1)


@pytest.fixture
def server() -> Server:
    return Server()


async def test_what_is_not_there_is_applied(server: Server) -> None:
    changes = await apply_all(server, server.objects, [config("a"), config("b")])
    assert changes.applied == (Ref("ConfigMap", "voice", "a"), Ref("ConfigMap", "voice", "b"))


async def test_what_is_there_is_not_written_again(server: Server) -> None:
    await apply_all(server, server.objects, [config("a", x="1")])
    server.written.clear()
    assert (await apply_all(server, server.objects, [config("a", x="1")])).applied == ()
    assert server.written == []


async def test_a_field_that_is_no_longer_wanted_is_noticed(server: Server) -> None:
    await apply_all(server, server.objects, [config("a", x="1", y="2")])
    server.written.clear()
    await apply_all(server, server.objects, [config("a", x="1")])
    assert server.written == ["apply a"]


async def test_what_is_being_deleted_is_left_alone(server: Server) -> None:
    made = await server.apply(config("a"))
    metadata = made["metadata"]
    assert isinstance(metadata, dict)
    going = {**metadata, "deletionTimestamp": "2030-01-01T00:00:00Z", "resourceVersion": "99"}
    server.objects.put(CONFIG_MAPS, {**made, "metadata": going})
    server.written.clear()
    await apply_all(server, server.objects, [config("a", x="1")])
    await prune(server, server.objects, namespace="voice", cluster="demo", uid="owner", keep=())
    assert server.written == []


async def test_one_that_is_refused_does_not_hold_up_the_others(server: Server) -> None:
    server.errors["a"] = Refused("apply ConfigMap voice/a: 422")
    changes = await apply_all(server, server.objects, [config("a"), config("b")])
    assert [refusal.about.name for refusal in changes.refused] == ["a"]
    assert [about.name for about in changes.applied] == ["b"]


async def test_a_server_that_is_away_ends_it(server: Server) -> None:
    server.errors["b"] = Unavailable("apply ConfigMap voice/b: 503", retry_seconds=7)
    with pytest.raises(Unavailable) as caught:
        await apply_all(server, server.objects, [config("a"), config("b")])
    assert caught.value.retry_seconds == 7


def test_the_hash_is_of_what_is_asked_for() -> None:
    one, same, other = (marked(config("a", x=value))["metadata"] for value in ("1", "1", "2"))
    assert one == same
    assert one != other
    assert APPLIED in str(one)


async def test_what_is_not_kept_is_deleted(server: Server) -> None:
    await apply_all(server, server.objects, [config("a"), config("b")])
    gone = await prune(
        server,
        server.objects,
        namespace="voice",
        cluster="demo",
        uid="owner",
        keep={Ref("ConfigMap", "voice", "a")},
    )
    assert gone == (Ref("ConfigMap", "voice", "b"),)


@pytest.mark.parametrize("owner", [None, {"uid": "owner"}, {"uid": "other", "controller": True}])
async def test_what_we_do_not_control_is_not_deleted(server: Server, owner: Object | None) -> None:
    value = config("foreign")
    metadata = value["metadata"]
    assert isinstance(metadata, dict)
    await server.apply({**value, "metadata": {**metadata, "ownerReferences": [owner] if owner else []}})
    assert not await prune(server, server.objects, namespace="voice", cluster="demo", uid="owner", keep=())
