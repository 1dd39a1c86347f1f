"""Whether Redis answers. An accelerator only: what is found here never lowers Ready.

The address of an external Redis is a secret (it holds the password): it is in no message, and neither is what a
driver's exception says, for that may quote it.
"""

import asyncio
import hashlib
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

from redis.asyncio import Redis
from redis.exceptions import AuthenticationError, RedisError, ResponseError
from voicecluster.operator.keys import entries
from voicecluster.operator.kube import port
from voicecluster.operator.kube.port import Kube
from voicecluster.operator.observe import Observed
from voicecluster.operator.status.conditions import Finding, Reason, Type
from voicecluster.operator.workloads import Workload

TIMEOUT_SECONDS = 2.0
LIFETIME_SECONDS = 15.0
"""How long an answer is believed."""
SECRET_SECONDS = 5.0
"""Until a missing Secret is looked for again: it is not watched."""
MAX_ANSWERS = 1024


@dataclass(frozen=True, slots=True)
class Target:
    """An external Redis."""

    url: str = field(repr=False)
    ca: str | None = None
    """PEM of a private certificate authority."""


Ping = Callable[[Target], Awaitable[str | None]]
"""What is wrong with it in a few words without secrets, None if it answers."""


async def ping(target: Target) -> str | None:
    """Connect, authenticate and PING."""
    try:
        async with asyncio.timeout(TIMEOUT_SECONDS):
            if target.ca and target.url.startswith("rediss://"):
                client = Redis.from_url(target.url, protocol=2, ssl_ca_data=target.ca)
            else:
                client = Redis.from_url(target.url, protocol=2)
            try:
                await client.ping()
            finally:
                await client.aclose()
    except TimeoutError:
        return "it did not answer within 2 seconds"
    except AuthenticationError:
        return "it refused the user or the password"
    except ResponseError:
        return "it refused PING; the user needs +ping"
    except (RedisError, OSError, ssl.SSLError) as error:
        return _driver_says(error)
    except ValueError:
        return "the entry url is not a redis:// or rediss:// URL"
    except Exception:  # of a driver that was answered by something else than Redis
        return "it does not speak Redis' protocol"
    return None


def _driver_says(error: Exception) -> str:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return f"TLS failed ({cause.reason or 'no reason given'}); check ca.crt"
        if isinstance(cause, ConnectionRefusedError):
            return "it refused the connection"
        cause = cause.__cause__ or cause.__context__
    return "it cannot be reached"


class RedisCheck:
    """Answers of external Redis servers, remembered for 15 seconds. `clock` is monotonic, in seconds."""

    def __init__(self, kube: Kube, clock: Callable[[], float], ping: Ping = ping) -> None:
        """Asks nobody yet."""
        self._kube = kube
        self._clock = clock
        self._ping = ping
        self._answers: dict[str, tuple[float, str | None]] = {}

    async def check(self, observed: Observed) -> tuple[Finding | None, float | None]:
        """The condition RedisReady, and the seconds until it should be asked again. Raises KubeError.

        Where no Redis is wanted there is no such condition.
        """
        redis = observed.cluster.spec.redis
        if redis.mode == "Embedded":
            return embedded(observed.redis), None
        if redis.external is None:
            return None, None
        name = redis.external.secret
        secret = await self._kube.get(port.SECRETS, observed.namespace, name)
        found: Mapping[str, str] = {} if secret is None else entries(secret)
        if not found.get("url"):
            what = "does not exist" if secret is None else "has no entry url"
            message = (
                f"Secret {name}, which redis.external.secret names, {what}; write redis://USER:PASSWORD@HOST:PORT"
                " there as url. Calls go on without Redis."
            )
            return Finding(Type.REDIS_READY, "False", Reason.REDIS_SECRET_INVALID, message), SECRET_SECONDS
        problem = await self._ask(Target(found["url"].strip(), found.get("ca.crt")))
        if problem is None:
            return Finding(Type.REDIS_READY, "True", Reason.AVAILABLE, "It answers."), LIFETIME_SECONDS
        message = f"Redis of Secret {name}: {problem}; check the server and the Secret's url. Calls go on."
        return Finding(Type.REDIS_READY, "False", Reason.REDIS_UNREACHABLE, message), LIFETIME_SECONDS

    async def _ask(self, target: Target) -> str | None:
        now = self._clock()
        name = hashlib.sha256(f"{target.url}\0{target.ca}".encode()).hexdigest()
        if name in self._answers and now < self._answers[name][0]:
            return self._answers[name][1]
        problem = await self._ping(target)
        if len(self._answers) >= MAX_ANSWERS:
            self._answers.clear()
        self._answers[name] = now + LIFETIME_SECONDS, problem
        return problem


def embedded(redis: Workload) -> Finding:
    """The condition RedisReady of the Redis that we run."""
    if redis.ready > 0:
        return Finding(Type.REDIS_READY, "True", Reason.AVAILABLE, f"{redis.kind} {redis.name} is ready.")
    message = (
        f"{redis.kind} {redis.name} has no ready pod; see `kubectl describe pod {redis.name}-0`. Calls go on without"
        " Redis."
    )
    return Finding(Type.REDIS_READY, "False", Reason.PODS_NOT_READY, message)
