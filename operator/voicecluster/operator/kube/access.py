"""Where the API server is and who we are to it: a service account in a pod, or a KUBECONFIG.

The official client keeps both in its `Configuration`; the client for our own requests and the session for
kopf's watches are made from the same one. A service account's token is read again every minute.
"""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import aiohttp
from kubernetes.aio.client import Configuration
from kubernetes.aio.client.rest import RESTClientObject
from kubernetes.aio.config import ConfigException, load_incluster_config, load_kube_config
from voicecluster.common.config.model import ConfigError

WATCH_BUFFER_BYTES = 2**21
"""An event has an object in it, and that may be this large."""
USER_AGENT = "voicecluster-operator"
DEFAULT_KUBECONFIG = str(Path.home() / ".kube" / "config")


async def access(environ: Mapping[str, str] = os.environ) -> Configuration:
    """Return how to reach the API server. Raises ConfigError, which says what is missing."""
    found = Configuration()
    given = environ.get("KUBECONFIG")
    try:
        if "KUBERNETES_SERVICE_HOST" in environ and not given:
            load_incluster_config(client_configuration=found)  # type: ignore[no-untyped-call]
        else:
            await load_kube_config(  # type: ignore[no-untyped-call]
                config_file=given or DEFAULT_KUBECONFIG, client_configuration=found
            )
    except (ConfigException, OSError) as error:
        raise ConfigError(
            f"no way to the Kubernetes API: {error}; run this in a pod with a service account, or set KUBECONFIG"
        ) from None
    return found


async def authorization(configuration: Configuration) -> str | None:
    """The present value of the header of that name; None where a certificate says who we are."""
    return await configuration.get_api_key_with_prefix("BearerToken", alias="authorization")


def watch_session(
    configuration: Configuration, *, answered: Callable[[aiohttp.ClientResponse], Awaitable[None]]
) -> aiohttp.ClientSession:
    """A session with the configuration's certificates and always its present token.

    `answered` gets every answer when its headers have come, so that of a watch at once. It may read the body of
    one that has an end; whoever asked finds it read.
    """

    async def identify(
        request: aiohttp.ClientRequest, send: aiohttp.ClientHandlerType
    ) -> aiohttp.ClientResponse:
        if given := await authorization(configuration):
            request.headers["Authorization"] = given
        answer = await send(request)
        await answered(answer)
        return answer

    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0, ssl=RESTClientObject(configuration).ssl_context),
        middlewares=(identify,),
        read_bufsize=WATCH_BUFFER_BYTES,
        headers={"User-Agent": USER_AGENT},
    )
