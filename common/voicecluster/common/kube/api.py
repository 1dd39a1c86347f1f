"""How to reach the API server from a pod: its address, its CA and this pod's token."""

import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from voicecluster.common.config.model import ConfigError

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
"""Where Kubernetes mounts a pod's token and the cluster's CA."""


@dataclass(frozen=True, slots=True)
class KubeApi:
    """One API server. Holds no connection and no token: files are read again whenever they are needed, because
    Kubernetes replaces a pod's token long before it expires.
    """

    base_url: str
    """`https://HOST:PORT`, without a slash at the end."""
    token_file: Path | None = None
    ca_file: Path | None = None

    @classmethod
    def in_cluster(cls, environ: Mapping[str, str], *, account: Path = SERVICE_ACCOUNT) -> "KubeApi":
        """The server of the cluster that this pod runs in, or the `kubectl proxy` that KUBE_API_URL names.

        Raises:
            ConfigError: There is neither.
        """
        if url := environ.get("KUBE_API_URL"):
            return cls(url.rstrip("/"))
        host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
        if not host or not port:
            raise ConfigError(
                "environment: KUBERNETES_SERVICE_HOST: empty; run this in a pod, or set "
                "KUBE_API_URL to the URL of a `kubectl proxy`"
            )
        token_file, ca_file = account / "token", account / "ca.crt"
        for file in (token_file, ca_file):
            if not file.is_file():
                raise ConfigError(
                    f"{file}: (file): not there; set automountServiceAccountToken: true for this pod"
                )
        host = f"[{host}]" if ":" in host else host
        return cls(f"https://{host}:{port}", token_file, ca_file)

    def headers(self) -> dict[str, str]:
        """Request headers with the token of now. Raises OSError where its file cannot be read."""
        if self.token_file is None:
            return {}
        return {"Authorization": f"Bearer {self.token_file.read_text(encoding='ascii').strip()}"}

    def tls(self) -> ssl.SSLContext | bool:
        """What verifies the server: the cluster's CA of now. Raises OSError where it cannot be read."""
        if self.ca_file is None:
            return True
        context = ssl.create_default_context(cafile=str(self.ca_file))
        # Clusters' own CAs often lack what RFC 5280 wants of one; every other client takes them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context
