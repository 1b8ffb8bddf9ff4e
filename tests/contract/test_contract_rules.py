"""Every rule refuses what breaks it, and says where, what and what to do."""

import traceback

import cases_decoding
import cases_frontend
import cases_graphs
import cases_serving
import pytest
from contract_cases import Case
from contract_examples import full_contract, full_manifest

from helios.contract.prepare import prepare_contract
from helios.contract.rules import RULES
from helios.errors import ContractError

CASES = [
    *cases_decoding.CASES,
    *cases_serving.CASES,
    *cases_graphs.CASES,
    *cases_frontend.CASES,
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.rule}-{case.field}")
def test_a_broken_contract_is_refused_by_its_rule(case: Case) -> None:
    contract, manifest = full_contract(), full_manifest()
    case.apply(contract, manifest)
    with pytest.raises(ContractError) as caught:
        prepare_contract(contract, manifest)
    error = caught.value
    raised_in = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
    assert case.rule in raised_in, str(error)
    assert case.field in error.field, str(error)
    assert error.value is not None
    assert error.remedy


def test_every_rule_has_a_case() -> None:
    assert {rule.__name__ for rule in RULES} <= {case.rule for case in CASES}


def test_rules_are_distinct_and_documented() -> None:
    names = [rule.__name__ for rule in RULES]
    assert len(names) == len(set(names))
    assert all(rule.__doc__ for rule in RULES)
