"""Every lie about a GPU is caught with its reason, and no honest run is accused."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from integration.gpu.playing import played_on
from kit.gpu_cases import HONEST, LIES, PRODUCTS, Case
from kit.gpu_table import Outcome
from kit.suite.moments import is_soak

Outcomes = Callable[[str], Mapping[str, Outcome]]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    cases = {test_a_lie_is_caught_with_its_reason_and_a_remedy: LIES, test_an_honest_run_is_not_accused: HONEST}
    products = played_on(metafunc.config)
    chosen = [(each, case) for each in products for case in cases.get(metafunc.function, ()) if each in case.products]
    if chosen:
        marks = [pytest.mark.soak] if is_soak(metafunc.config) else []
        rows = [pytest.param(each, case, id=f"{each}-{case.name}", marks=marks) for each, case in chosen]
        metafunc.parametrize(("product", "case"), rows)


def test_a_lie_is_caught_with_its_reason_and_a_remedy(product: str, case: Case, outcomes: Outcomes) -> None:
    found = outcomes(product)[case.name]
    expected = case.expected_on(product)
    assert not found.problem
    assert (found.state, found.reason, found.used) == (expected.state, expected.reason, expected.used), found.sentence
    assert found.remedy


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
