"""Every lie about a GPU is caught with its reason, and no honest run is accused, on every product."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pytest

from kit.gpu_cases import HONEST, LIES, PRODUCTS, Case
from kit.gpu_table import Outcome

Outcomes = Callable[[str], Mapping[str, Outcome]]


def on_each_product(cases: Sequence[Case]) -> list[object]:
    chosen = [(product, case) for product in PRODUCTS for case in cases if product in case.products]
    return [pytest.param(product, case, id=f"{product}-{case.name}") for product, case in chosen]


@pytest.mark.parametrize(("product", "case"), on_each_product(LIES))
def test_a_lie_is_caught_with_its_reason_and_a_remedy(product: str, case: Case, outcomes: Outcomes) -> None:
    found = outcomes(product)[case.name]
    expected = case.expected_on(product)
    assert not found.problem
    assert (found.state, found.reason, found.used) == (expected.state, expected.reason, expected.used), found.sentence
    assert found.remedy


@pytest.mark.parametrize(("product", "case"), on_each_product(HONEST))
def test_an_honest_run_is_not_accused(product: str, case: Case, outcomes: Outcomes) -> None:
    found = outcomes(product)[case.name]
    expected = case.expected_on(product)
    assert not found.problem
    assert not found.is_accused, found.sentence
    assert (found.state, found.reason, found.used) == (expected.state, expected.reason, expected.used), found.sentence


def test_the_table_has_14_lies_and_8_honest_runs_on_four_products() -> None:
    assert (len(LIES), len(HONEST)) == (14, 8)
    assert len({case.name for case in (*LIES, *HONEST)}) == 22
    elsewhere = {case.name: case.products for case in (*LIES, *HONEST) if case.products != PRODUCTS}
    assert elsewhere == {"container without GPUs": ("docker", "remotedocker")}
