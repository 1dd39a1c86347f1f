"""Amounts of resources as the API server stores them, so that what we want and what is there read the same."""

import math
import re
from fractions import Fraction

_BINARY = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")
_DECIMAL = ("m", "", "k", "M", "G", "T", "P", "E")
_FORM = re.compile(r"([0-9]+(?:\.[0-9]+)?)([A-Za-z]*)")


def canonical(text: str, times: int = 1) -> str:
    """The canonical form of `text`, multiplied: `1024Mi` is `1Gi`, `0.5` is `500m`, `1.5Gi` is `1536Mi`.

    Finer than a thousandth is rounded up, as the API does for requests and limits. Raises ValueError where
    `text` is no quantity.
    """
    form = _FORM.fullmatch(text)
    if form is None or form[2] not in _BINARY + _DECIMAL:
        raise ValueError(f"'{text}' is not a quantity; write one such as 500m or 256Mi")
    number, suffix = Fraction(form[1]) * times, form[2]
    if suffix in _BINARY[1:]:
        number *= 1024 ** _BINARY.index(suffix)
        if number >= 1024 and number.denominator == 1:
            return _shortest(int(number), 1024, _BINARY)
        suffix = ""  # small ones and fractions are stored as decimals
    number *= Fraction(1000) ** (_DECIMAL.index(suffix) - _DECIMAL.index(""))
    milli = math.ceil(number * 1000)
    return _shortest(milli, 1000, _DECIMAL) if milli else "0"


def _shortest(number: int, base: int, suffixes: tuple[str, ...]) -> str:
    power = 0
    while number % base == 0 and power + 1 < len(suffixes):
        number, power = number // base, power + 1
    return f"{number}{suffixes[power]}"


def bytes_of(text: str) -> int:
    """The number of bytes that a quantity says, rounded up."""
    form = _FORM.fullmatch(canonical(text))
    assert form is not None
    if form[2] in _BINARY:
        return int(form[1]) << 10 * _BINARY.index(form[2])
    return math.ceil(int(form[1]) * Fraction(1000) ** (_DECIMAL.index(form[2]) - _DECIMAL.index("")))
