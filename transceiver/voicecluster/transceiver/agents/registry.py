"""Agents by name. Stock clients send the names of OpenAI's models: a name that is none of ours means the
default.
"""

from collections.abc import Callable
from typing import Final

from voicecluster.transceiver.agents.base import Agent
from voicecluster.transceiver.agents.echo import Echo
from voicecluster.transceiver.agents.parrot import Parrot

_AGENTS: Final[dict[str, Callable[[], Agent]]] = {"parrot": Parrot, "echo": Echo}


def names() -> list[str]:
    """The agents there are."""
    return sorted(_AGENTS)


def create(name: str | None, default: str = "parrot") -> Agent:
    """A fresh agent for one call. Raises KeyError only if `default` is no agent."""
    return (_AGENTS.get(name or default) or _AGENTS[default])()
