"""Where the cluster comes from: KUBECONFIG as given, else kind where Docker runs, else the local cluster."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Protocol, TypeAlias

from tests.e2e.cluster import Cluster, Images

ROOT = Path(__file__).parents[2]
COMPONENTS = ("relay", "transceiver", "operator")
TAG, NEXT_TAG = "e2e", "e2e-next"
NODES = 3
_LOCAL = ROOT / "tests" / "localcluster" / "localcluster"
Say: TypeAlias = Callable[[str], None]


class Unusable(Exception):
    """A provider cannot be used here; `str()` says why."""


class Provider(Protocol):
    """A way to have a cluster. `up` and `down` once each."""

    name: str

    def check(self) -> None:
        """Raises Unusable."""

    def up(self, say: Say) -> Cluster:
        """Build the images, start a fresh cluster with them; `say` what takes long before it begins."""

    def down(self) -> None:
        """Leave nothing."""


class Given:
    """The cluster of KUBECONFIG. Its nodes pull images that somebody has pushed: IMAGE_PREFIX and TAG say which."""

    name = "KUBECONFIG"

    def check(self) -> None:
        if not os.environ.get("KUBECONFIG"):
            raise Unusable("KUBECONFIG is not set")

    def up(self, say: Say) -> Cluster:
        missing = [name for name in ("IMAGE_PREFIX", "TAG") if not os.environ.get(name)]
        kubectl = shutil.which("kubectl")
        if missing or kubectl is None:
            what = f"set {' and '.join(missing)}" if missing else "install kubectl"
            raise AssertionError(
                f"{what}: tests on a given cluster need kubectl, and images that its nodes can pull, "
                "as `make images` names them (IMAGE_PREFIX, TAG)"
            )
        tag = os.environ["TAG"]
        images = Images(os.environ["IMAGE_PREFIX"], tag, tag, "docker.io/library/redis:7.4-bookworm")
        return Cluster(self.name, Path(os.environ["KUBECONFIG"]), Path(kubectl), images)

    def down(self) -> None:
        pass


class Kind:
    """Kubernetes in Docker, with kind-config.yaml."""

    name = "kind"
    _cluster = "voicecluster-e2e"
    _kubeconfig = ROOT / "build" / "kind.kubeconfig"

    def check(self) -> None:
        if not _runs("docker", "info"):
            raise Unusable("Docker does not run here")
        for program in ("kind", "kubectl"):
            if shutil.which(program) is None:
                raise Unusable(f"{program} is not installed")

    def up(self, say: Say) -> Cluster:
        self.down()
        images = Images("voicecluster-", TAG, NEXT_TAG, "docker.io/library/redis:7.4-bookworm")
        say("building images")
        _make_images(images, "BUILDER=docker build")
        for component in COMPONENTS:
            _run("docker", "tag", images.of(component), images.of(component, upgraded=True))
        config = str(ROOT / "kind-config.yaml")
        say("starting kind with them")
        _run(*self._kind("create", "cluster"), "--config", config, "--kubeconfig", str(self._kubeconfig))
        names = (images.of(each, upgraded=upgraded) for each in COMPONENTS for upgraded in (False, True))
        _run(*self._kind("load", "docker-image"), *names)
        return Cluster(self.name, self._kubeconfig, Path(shutil.which("kubectl") or "kubectl"), images)

    def down(self) -> None:
        _run(*self._kind("delete", "cluster"))

    def _kind(self, *words: str) -> list[str]:
        return ["kind", *words, "--name", self._cluster]


class Local:
    """tests/localcluster: real Kubernetes in network namespaces of this machine; needs root."""

    name = "the local cluster"
    audit_log = Path("/var/lib/localcluster/logs/audit.log")

    def check(self) -> None:
        if os.geteuid() != 0:
            raise Unusable("the local cluster needs root")
        if shutil.which("buildah") is None or shutil.which("containerd") is None:
            raise Unusable("the local cluster's packages are missing: make e2e-setup")

    def up(self, say: Say) -> Cluster:
        images = Images("localhost/voicecluster-", TAG, NEXT_TAG, "localhost/redis:e2e")
        kubeconfig = Path(self._localcluster("kubeconfig"))
        if not (keep() and kubeconfig.exists()):
            self._fresh(images, say)
        kubectl = Path(self._localcluster("assets")) / "kubectl"
        return Cluster(self.name, kubeconfig, kubectl, images, machine=self)

    def _fresh(self, images: Images, say: Say) -> None:
        say("building images (minutes, the first time)")
        base, flags = self._localcluster("base"), self._localcluster("build-flags")
        _make_images(images, "BUILDER=buildah bud", f"BASE={base}", f"BUILD_FLAGS={flags}")
        self._localcluster("image", "-t", images.redis, str(_LOCAL.parent / "redis"))
        for component in COMPONENTS:
            _run("buildah", "tag", images.of(component), images.of(component, upgraded=True))
        names = (images.of(each, upgraded=upgraded) for each in COMPONENTS for upgraded in (False, True))
        say("loading images")
        self.down()
        self._localcluster("load", *names, images.redis)
        say(f"starting {NODES} nodes")
        self._localcluster("up", "--nodes", str(NODES))

    def down(self) -> None:
        self._localcluster("down")

    def power_off(self, node: str) -> None:
        self._localcluster("node-stop", node)

    def power_on(self, node: str) -> None:
        self._localcluster("node-start", node)

    def stop_api(self) -> None:
        self._localcluster("api-stop")

    def start_api(self) -> None:
        self._localcluster("api-start")

    def _localcluster(self, *arguments: str) -> str:
        return _run(str(_LOCAL), *arguments)


PROVIDERS: tuple[Provider, ...] = (Given(), Kind(), Local())


def keep() -> bool:
    """Whether a local cluster that runs is used as it is, and left running: for people at work on the tests."""
    return bool(os.environ.get("E2E_KEEP"))


def choose() -> tuple[Provider | None, list[str]]:
    """The provider to use, and a line for each that is not: why."""
    chosen: Provider | None = None
    lines = []
    for provider in PROVIDERS:
        try:
            provider.check()
        except Unusable as error:
            lines.append(f"not run on {provider.name}: {error}")
            continue
        if chosen is None:
            chosen = provider
        else:
            lines.append(f"not run on {provider.name}: {chosen.name} comes first")
    return chosen, lines


def _make_images(images: Images, *variables: str) -> None:
    _run("make", "-C", str(ROOT), "images", f"IMAGE_PREFIX={images.prefix}", f"TAG={images.tag}", *variables)


def _runs(*command: str) -> bool:
    return shutil.which(command[0]) is not None and (
        subprocess.run(command, capture_output=True, check=False).returncode == 0
    )


def _run(*command: str) -> str:
    """Its output without the last newline. Raises AssertionError with what it said if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)} failed:\n{(done.stderr or done.stdout)[-4000:]}"
    return done.stdout.strip()
