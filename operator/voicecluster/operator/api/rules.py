"""Rules that one side tells twice: in CEL to the API server, in Python to whoever reads a file.

Both sides carry the same message, which says what to write instead. Tests run the same table of wrong resources
against both. A rule without a Python side is about a change: only the API server knows what was there before.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, Self, TypeVar

from pydantic import ConfigDict, GetCoreSchemaHandler, GetJsonSchemaHandler, model_validator
from pydantic.json_schema import JsonSchemaValue
from pydantic_core import CoreSchema, core_schema
from voicecluster.common.config.model import Model

Reason = Literal["FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired"]
"""Not FieldValueDuplicate: with it the API server leaves the message out."""
V = TypeVar("V")
M = TypeVar("M")

VALIDATIONS, LIST_TYPE = "x-kubernetes-validations", "x-kubernetes-list-type"


@dataclass(frozen=True, slots=True)
class Cel:
    """One entry of `x-kubernetes-validations`."""

    rule: str
    message: str
    at: str | None = None
    """Path of the wrong field below where the rule stands, as `.addresses`; None: that place itself."""
    reason: Reason = "FieldValueInvalid"

    def entry(self) -> dict[str, str]:
        """As the CRD has it."""
        entry = {"rule": self.rule, "message": self.message, "reason": self.reason}
        return entry if self.at is None else entry | {"fieldPath": self.at}


@dataclass(frozen=True, slots=True)
class Must:
    """A rule about one value: `Annotated[str, Must(Cel("isIP(self)", "write an IP address"), is_ip)]`."""

    cel: Cel
    holds: Callable[[Any], bool] | None = None
    """What CEL says, in Python; None for a rule about a change."""

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after the type."""
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Add the CEL rule."""
        found = handler(schema)
        return found | {VALIDATIONS: [*found.get(VALIDATIONS, ()), self.cel.entry()]}

    def _checked(self, value: V) -> V:
        if self.holds is not None and not self.holds(value):
            raise ValueError(self.cel.message)
        return value


@dataclass(frozen=True, slots=True)
class Distinct:
    """No item of the list occurs twice; with a key, no two items have the same value of that field."""

    key: str | None = None

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Check after the type."""
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def __get_pydantic_json_schema__(
        self, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """A set or a map to the API server, which then names what is duplicate."""
        if self.key is None:
            return handler(schema) | {LIST_TYPE: "set"}
        return handler(schema) | {LIST_TYPE: "map", "x-kubernetes-list-map-keys": [self.key]}

    def _checked(self, values: list[V]) -> list[V]:
        for value in repeated(value if self.key is None else getattr(value, self.key) for value in values):
            raise ValueError(f"'{value}' is there twice; remove one or write another {self.key or 'one'}")
        return values


def repeated(values: Iterable[V]) -> list[V]:
    """What occurs more than once."""
    return [value for value, count in Counter(values).items() if count > 1]


def matches(pattern: str, message: str) -> Must:
    """A string must match the whole of `pattern`, which RE2 and Python read alike."""
    whole = re.compile(pattern)
    cel = Cel(f"self.matches(r'^(?:{pattern})$')", message)
    return Must(cel, lambda text: whole.fullmatch(text) is not None)


def immutable(message: str) -> Must:
    """A required value that never changes."""
    return Must(Cel("self == oldSelf", message, reason="FieldValueForbidden"))


def must(
    rule: str, message: str, *, at: str | None = None, reason: Reason = "FieldValueInvalid"
) -> Callable[[Callable[[M], bool]], Callable[[M], bool]]:
    """Make a method of a `Spec` a rule about it: it holds when the method returns true."""

    def mark(method: Callable[[M], bool]) -> Callable[[M], bool]:
        method.__rule__ = Cel(rule, message, at, reason)  # type: ignore[attr-defined]
        return method

    return mark


def only_in(field: str, *modes: str, of: str = "mode", default: str) -> Callable[["Spec"], bool]:
    """The rule that `field` (as in the file) is for some modes only; assign it in the body of a `Spec`."""
    wanted = " or ".join(modes)
    names = ", ".join(f"'{mode}'" for mode in modes)
    snake = re.sub(r"(?<!^)(?=[A-Z])", "_", field).lower()

    @must(
        f"!has(self.{field}) || self.?{of}.orValue('{default}') in [{names}]",
        f"{field} is for {of} {wanted} only; remove it or change the {of}",
        at=f".{field}",
        reason="FieldValueForbidden",
    )
    def holds(spec: "Spec") -> bool:
        return not spec.given(snake) or getattr(spec, of) in modes

    return holds


def stays(path: str) -> str:
    """CEL: the optional field at `path` is what it was, or is absent as it was."""
    way = path.split(".")
    new = " && ".join(f"has(self.{'.'.join(way[: n + 1])})" for n in range(len(way)))
    old = new.replace("self.", "oldSelf.")
    return f"({new} ? {old} && self.{path} == oldSelf.{path} : !({old}))"


class Spec(Model):
    """Base of what users write: types are taken literally, as the API server does, and rules are methods."""

    model_config = ConfigDict(strict=True)

    def given(self, field: str) -> bool:
        """Whether the resource says something about the field: CEL's `has()`."""
        return field in self.model_fields_set

    @classmethod
    def _rules(cls) -> Iterator[tuple[Callable[[Self], bool], Cel]]:
        for member in vars(cls).values():
            if (cel := getattr(member, "__rule__", None)) is not None:
                yield member, cel

    @model_validator(mode="after")
    def _obeys(self) -> Self:
        for holds, cel in self._rules():
            if not holds(self):
                raise ValueError(cel.message)
        return self

    @classmethod
    def __get_pydantic_json_schema__(
        cls, schema: CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        """Add the CEL rules."""
        found = handler(schema)
        if entries := [cel.entry() for _, cel in cls._rules()]:
            handler.resolve_ref_schema(found)[VALIDATIONS] = entries
        return found
