"""Quantities are written as the API server stores them."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kubernetes.utils.quantity import parse_quantity
from voicecluster.operator.plan.kubernetes.quantity import bytes_of, canonical

QUANTITIES = st.from_regex(r"[0-9]{1,6}(\.[0-9]{1,6})?(m|k|M|G|T|Ki|Mi|Gi|Ti)?", fullmatch=True)


@pytest.mark.parametrize(
    ("text", "stored"),
    [
        ("1000m", "1"), ("1500m", "1500m"), ("0.5", "500m"), ("1.50", "1500m"), ("100", "100"), ("1000M", "1G"),
        ("1024Mi", "1Gi"), ("1.5Gi", "1536Mi"), ("1024", "1024"), ("0.5Ki", "512"), ("1.0005Ki", "1024512m"),
        ("0.0000000001", "1m"), ("0Gi", "0"), ("0", "0"), ("2000k", "2M"),
    ],
)  # fmt: skip
def test_the_canonical_form_has_the_greatest_unit_that_needs_no_fraction(text: str, stored: str) -> None:
    assert canonical(text) == stored


@given(QUANTITIES)
def test_the_canonical_form_has_the_same_value_rounded_up_and_stays(text: str) -> None:
    stored = canonical(text)
    assert canonical(stored) == stored
    least, value = parse_quantity(text), parse_quantity(stored)
    assert least <= value < least + Decimal("0.001")


@given(QUANTITIES, st.integers(1, 256))
def test_a_multiple_has_as_many_times_the_bytes(text: str, times: int) -> None:
    assert bytes_of(canonical(text, times)) == math.ceil(parse_quantity(text) * times)


@pytest.mark.parametrize("text", ["", "1K", "1ki", "-1", "1e3", "Mi", "1 Gi"])
def test_what_is_no_quantity_is_refused_with_what_to_write(text: str) -> None:
    with pytest.raises(ValueError, match="not a quantity; write one such as 500m or 256Mi"):
        canonical(text)
