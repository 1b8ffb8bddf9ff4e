"""The shapes in which programs report completion fields."""

import pytest
from contract_examples import full_contract, full_manifest

from helios.contract.kinds import CompletionField
from helios.contract.prepare import prepare_contract
from helios.contract.prepared import PreparedContract, PreparedGraph
from helios.errors import ContractError
from helios.program.ir import Buffer, BufferKind, DType, Op, Program, Shape, TensorType
from helios.program.records import check_completion

LANES = ("SLOT", "GENERATION", "ENDPOINT", "OFFERED", "CURSOR", "MODEL")


@pytest.fixture(scope="module")
def prepared() -> PreparedContract:
    return prepare_contract(full_contract(), full_manifest())


def shapes(graph: PreparedGraph) -> dict[CompletionField, Shape]:
    """The right shape of every field that a graph reports."""
    row: Shape = ("B", graph.width) if graph.draft_cursor else ("S",)
    right: dict[str, Shape] = {
        **dict.fromkeys(LANES, ("B",)),
        "ACCEPTED": row[:1],
        "TOKENS": row,
        "LOGPROB": row,
        "TOP_TOKENS": (*row, 20),
        "TOP_LOGPROBS": (*row, 20),
        "SCORES": ("T",),
        "SCORE_TOP_TOKENS": ("T", 20),
        "SCORE_TOP_LOGPROBS": ("T", 20),
        "CONFIDENCE": (2, 4, 5),
    }
    return {field: right[field.name] for field in graph.completion}


def storing(graph: PreparedGraph, wanted: dict[CompletionField, Shape]) -> Program:
    def buffer(name: str, kind: BufferKind, shape: Shape) -> Buffer:
        return Buffer(name, kind, TensorType(DType.I32, shape))

    ops = tuple(
        Op(
            "store",
            (
                buffer(f"value.{field.name}", BufferKind.TRANSPORT, shape),
                buffer(graph.completion[field], BufferKind.COMPLETION, shape),
            ),
            (),
        )
        for field, shape in wanted.items()
    )
    return Program(graph.program, graph.operation, (), ops)


def test_records_in_their_shapes_are_taken(prepared: PreparedContract) -> None:
    for graph in prepared.graphs:
        check_completion(graph, storing(graph, shapes(graph)))


def test_a_lane_s_single_token_may_have_a_dimension(prepared: PreparedContract) -> None:
    tokens = CompletionField.TOKENS
    decode, wide = prepared.graph("decode"), prepared.graph("speculative.4")
    check_completion(decode, storing(decode, {**shapes(decode), tokens: ("S", 1)}))
    with pytest.raises(ContractError, match="TOKENS"):
        check_completion(wide, storing(wide, {**shapes(wide), tokens: ("S", 1)}))


def test_a_record_in_another_shape_is_refused(prepared: PreparedContract) -> None:
    for graph in prepared.graphs:
        right = shapes(graph)
        for field in set(right) - {CompletionField.CONFIDENCE}:
            for shape in (("R",), ("B", 7), ("T", 2, 2), ()):
                with pytest.raises(ContractError) as caught:
                    check_completion(graph, storing(graph, {**right, field: shape}))
                assert caught.value.field.endswith(f"completion.{field.name}")


def test_records_are_those_of_the_contract(prepared: PreparedContract) -> None:
    graph = prepared.graph("decode")
    fewer = shapes(graph)
    del fewer[CompletionField.LOGPROB]
    with pytest.raises(ContractError, match="stores no such record"):
        check_completion(graph, storing(graph, fewer))
    initialize = prepared.graph("initialize")
    more = storing(graph, shapes(graph))
    with pytest.raises(ContractError, match="no field reads it"):
        check_completion(initialize, more)
