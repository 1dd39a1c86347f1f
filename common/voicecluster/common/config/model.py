"""What every configuration file has in common: camelCase keys, no unknown ones, frozen values, one-line
errors.

`load` is the only way in. Whatever is wrong with a file (missing, not YAML, a wrong field) becomes a
`ConfigError` whose text is a single line naming the file, the field's path and what to do.
"""

import ipaddress
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import yaml
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel


class ConfigError(Exception):
    """A configuration file cannot be used. `str()` is one line: file, field path, remedy."""


class Model(BaseModel):
    """Base of all configuration models: camelCase keys in files, snake_case in Python, descriptions below fields."""

    model_config = ConfigDict(
        alias_generator=to_camel,
        populate_by_name=True,
        extra="forbid",
        frozen=True,
        use_attribute_docstrings=True,
    )


@dataclass(frozen=True, slots=True)
class Unit:
    """What a number counts: `Annotated[int, Unit("packets/s")]`. Shown in the field reference."""

    name: str


M = TypeVar("M", bound=BaseModel)


def split_address(text: str) -> tuple[str, int]:
    """Split `10.0.0.1:3478` or `[::1]:3478` into host and port. Raises ValueError with the form wanted."""
    host, colon, port = text.rpartition(":")
    bracketed = host.startswith("[") and host.endswith("]")
    if not colon or not port.isdigit() or int(port) > 65535 or (":" in host and not bracketed):
        raise ValueError(f"'{text}' is not an address; write IP:PORT or [IPv6]:PORT")
    host = host[1:-1] if bracketed else host
    try:
        ipaddress.ip_address(host)
    except ValueError:
        raise ValueError(f"'{host}' is not an IP address; write IP:PORT or [IPv6]:PORT") from None
    return host, int(port)


def join_address(host: str, port: int) -> str:
    """The inverse of `split_address`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def _checked(text: str) -> str:
    split_address(text)
    return text


Address = Annotated[str, AfterValidator(_checked)]
"""`IP:PORT` or `[IPv6]:PORT`; checked, kept as text."""


def _checked_host(text: str) -> str:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        raise ValueError(f"'{text}' is not an IP address; write one without a port") from None
    return text


Host = Annotated[str, AfterValidator(_checked_host)]
"""An IP address without a port; checked, kept as text."""


def _checked_level(text: str) -> str:
    level = text.upper()
    if level not in LOG_LEVELS:
        raise ValueError(f"'{text}' is not a log level; write one of {', '.join(LOG_LEVELS)}")
    return level


LOG_LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
LogLevel = Annotated[str, AfterValidator(_checked_level)]
"""DEBUG, INFO, WARNING or ERROR, in any case; kept in capitals."""


def parse(document: object, model: type[M], *, source: str) -> M:
    """Check a parsed document against `model`. Raises `ConfigError` naming `source` and the wrong field."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        path = ".".join(str(part) for part in first["loc"]) or "(document)"
        problem = _REMEDIES.get(first["type"], first["msg"].removeprefix("Value error, "))
        raise ConfigError(f"{source}: {path}: {problem}") from None


def read_text(path: Path) -> str:
    """Return the file's text. Raises `ConfigError` where it cannot be read or is not UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: (file): {error.strerror}; check the path and its permissions") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: (file): not UTF-8 text; write a YAML file") from None


def parse_text(text: str, model: type[M], *, source: str) -> M:
    """Parse YAML or JSON text into `model`. Raises `ConfigError` naming `source`."""
    try:
        document = yaml.load(text, Loader=_LOADER)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}" if mark is not None else "(document)"
        problem = getattr(error, "problem", None) or "cannot be read"
        raise ConfigError(f"{source}: {where}: not YAML ({problem}); check indentation and quotes") from None
    return parse(document, model, source=source)


def load(path: Path, model: type[M]) -> M:
    """Read a YAML or JSON file into `model`. Raises `ConfigError` for whatever keeps it from being used."""
    return parse_text(read_text(path), model, source=str(path))


_LOADER: type[yaml.SafeLoader] | type[yaml.CSafeLoader] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's loader where it is built in: ten times as fast on a routes file of thousands of workers."""

_REMEDIES = {
    "extra_forbidden": "unknown field; remove it or check its spelling",
    "missing": "required field is missing; add it",
    "model_type": "must be a mapping of fields",
    "model_attributes_type": "must be a mapping of fields",
}
