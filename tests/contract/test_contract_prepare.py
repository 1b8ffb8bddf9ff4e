"""What a valid contract becomes, and how it stays what was checked."""

import copy
import dataclasses
import pickle
from enum import IntEnum

import pytest
from contract_cases import graph, program
from contract_examples import (
    DRAFTS,
    INPUTS_BY_SOURCE,
    RECORDS,
    SLOTS,
    VOCABULARY,
    WIDTH,
    framed_contract,
    full_contract,
    full_manifest,
)
from message_tools import declared_fields, set_fields

from helios.contract import kinds
from helios.contract.kinds import Access, CompletionField, HistoryKind, IndexKind, ValueSource
from helios.contract.operation import Operation
from helios.contract.prepare import prepare_contract
from helios.contract.prepared import PreparedContract, PreparedGraph
from helios.contract.rules.frontend import PAIRED, REQUIRED_SYNTAX
from helios.errors import ContractError
from helios.schema import contract_pb2 as pb
from helios.schema import frontend_pb2, manifest_pb2


@pytest.fixture(scope="module")
def prepared() -> PreparedContract:
    return prepare_contract(full_contract(), full_manifest())


def test_the_examples_use_the_whole_schema() -> None:
    used = set_fields(full_contract()) | set_fields(framed_contract())
    assert declared_fields(full_contract()) == used
    assert declared_fields(full_manifest()) == set_fields(full_manifest())
    assert set(INPUTS_BY_SOURCE) == {s.name for s in ValueSource}
    assert set(RECORDS) == {f.name for f in CompletionField}


def test_everything_is_typed(prepared: PreparedContract) -> None:
    bindings = [b for g in prepared.graphs for b in g.bindings]
    assert {b.source for b in bindings} == set(ValueSource)
    assert {b.index for b in bindings} == set(IndexKind)
    assert {h.kind for h in prepared.cache.histories} == set(HistoryKind)
    assert {f for g in prepared.graphs for f in g.completion} == set(CompletionField)
    assert {a.access for g in prepared.graphs for a in g.state} == {
        Access.READ,
        Access.WRITE,
        Access.READ_WRITE,
    }
    assert {g.operation for g in prepared.graphs} == set(Operation) - {Operation.TUNING}


def test_a_graph_is_resolved(prepared: PreparedContract) -> None:
    wide = prepared.graph("speculative.4")
    assert (wide.rows, wide.draft_tokens, wide.width, wide.tokens) == (SLOTS, DRAFTS, WIDTH, 10)
    assert wide.confidence_width == DRAFTS
    assert wide.device_allocates
    assert not prepared.graph("speculative.3").device_allocates
    assert wide.pending_view is prepared.state_views["pending"]
    assert wide.draft_cursor is not None
    assert wide.draft_cursor.view is prepared.state_views["draft"]
    assert wide.completion[CompletionField.TOKENS] == "completion.tokens"
    assert wide.resource in wide.resources
    assert prepared.graph("prefill").tuned[0].producer in prepared.tuning


def test_storage_is_named_once(prepared: PreparedContract) -> None:
    assert "slot" in prepared.transport
    assert "slot" not in prepared.buffers
    assert prepared.weights["embedding"].shape == (104, 64)
    assert prepared.defaults.temperature == 0.7


def test_unset_defaults_stay_unset() -> None:
    contract = full_contract()
    contract.defaults.ClearField("top_p")
    assert prepare_contract(contract, full_manifest()).defaults.top_p is None


@pytest.mark.parametrize("version", [1, 2])
def test_older_versions_imply_extents(version: int) -> None:
    contract, manifest = full_contract(), full_manifest()
    contract.model.version = version
    contract.model.graphs.remove(graph(contract, "speculative.4"))
    manifest.programs.remove(program(manifest, "speculative.4"))
    contract.model.cache.page_tables.pop()
    contract.speculative_widths.remove(WIDTH)
    for item in contract.model.graphs:
        for name in ("draft_tokens", "packed_token_capacity", "confidence_width"):
            item.ClearField(name)
        if version == 1:
            item.ClearField("tuned_bindings")
    if version == 1:
        program(manifest, "prefill").ClearField("tuned_inputs")
    prepared = prepare_contract(contract, manifest)
    speculative = prepared.graph("speculative.3")
    assert (speculative.draft_tokens, speculative.tokens) == (2, SLOTS * 3)
    assert prepared.graph("prefill").draft_tokens == 0
    assert prepared.graph("prefill").tokens == SLOTS * 16
    assert prepared.graph("restore").tokens == 0


def test_the_host_may_own_the_pending_token() -> None:
    prepared = prepare_contract(framed_contract(), full_manifest())
    assert prepared.graph("decode").pending_destination == "pending_token"
    assert prepared.graph("decode").pending_view is None


def test_a_text_model_has_no_vision() -> None:
    contract = full_contract()
    contract.model.ClearField("vision")
    frontend = contract.model.frontend
    frontend.image_layout = frontend_pb2.IMAGE_LAYOUT_NONE
    frontend.image_preparation = frontend_pb2.IMAGE_PREPARATION_NONE
    frontend.ClearField("image_tokens")
    frontend.ClearField("image_settings")
    prefill = graph(contract, "prefill")
    kept = [b for b in prefill.bindings if not b.destination.startswith("image_")]
    del prefill.bindings[:]
    prefill.bindings.extend(kept)
    assert prepare_contract(contract, full_manifest()).vision is None


# ---- every tool parser ---------------------------------------------------------------------

FRAMED = {tool: reasoning for reasoning, tool in PAIRED}


def with_parser(parser: kinds.ToolParser) -> pb.ServingContract:
    contract = framed_contract() if parser in FRAMED else full_contract()
    frontend = contract.model.frontend
    frontend.tool_parser = parser.value
    frontend.reasoning_parser = FRAMED.get(parser, kinds.ReasoningParser.THINK_TAGS).value
    return contract


@pytest.mark.parametrize("parser", REQUIRED_SYNTAX)
def test_every_tool_parser_can_be_selected(parser: kinds.ToolParser) -> None:
    prepared = prepare_contract(with_parser(parser), full_manifest())
    assert prepared.frontend.tool_parser is parser


@pytest.mark.parametrize(
    ("parser", "path"), [(p, path) for p, paths in REQUIRED_SYNTAX.items() for path in paths]
)
def test_every_required_part_is_required(parser: kinds.ToolParser, path: str) -> None:
    contract = with_parser(parser)
    message = contract.model.frontend.tool_syntax
    *steps, last = path.split(".")
    for step in steps:
        message = getattr(message, step)
    message.ClearField(last)
    with pytest.raises(ContractError) as caught:
        prepare_contract(contract, full_manifest())
    assert caught.value.field == f"frontend.tool_syntax.{path}"


def test_every_tool_parser_has_its_requirements() -> None:
    assert set(REQUIRED_SYNTAX) == set(kinds.ToolParser) - {kinds.ToolParser.NONE}


def test_xtml_reasoning_goes_with_xtml_tools() -> None:
    contract = with_parser(kinds.ToolParser.XTML)
    contract.model.frontend.reasoning_parser = kinds.ReasoningParser.XTML_THINK.value
    assert prepare_contract(contract, full_manifest()).frontend.reasoning_syntax is not None


# ---- enums ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("enum", "module"),
    [
        (kinds.ValueSource, pb),
        (kinds.IndexKind, pb),
        (kinds.Access, pb),
        (kinds.HistoryKind, pb),
        (kinds.CompletionField, manifest_pb2),
        (kinds.WeightStorage, manifest_pb2),
        (kinds.ToolParser, frontend_pb2),
        (kinds.ReasoningParser, frontend_pb2),
        (kinds.ImagePreparation, frontend_pb2),
        (kinds.ImageLayout, frontend_pb2),
        (kinds.ValueTyping, frontend_pb2),
        (kinds.ParallelCalls, frontend_pb2),
    ],
)
def test_python_enums_are_the_wire_s(enum: type[IntEnum], module: object) -> None:
    numbers = getattr(module, enum.__name__).values()
    assert {int(m) for m in enum.__members__.values()} == set(numbers) - {0}


# ---- sealing -------------------------------------------------------------------------------


def test_a_prepared_contract_can_t_be_rebuilt(prepared: PreparedContract) -> None:
    facts = {f.name: getattr(prepared, f.name) for f in dataclasses.fields(prepared) if f.init}
    with pytest.raises(ContractError, match="prepare_contract"):
        PreparedContract(object(), **facts)
    with pytest.raises(ValueError, match="seal"):
        dataclasses.replace(prepared, vocabulary=VOCABULARY + 1)
    with pytest.raises(ContractError):
        dataclasses.replace(prepared, seal=None, vocabulary=VOCABULARY + 1)


def test_a_prepared_graph_can_t_be_rebuilt(prepared: PreparedContract) -> None:
    decode = prepared.graph("decode")
    with pytest.raises(ValueError, match="seal"):
        dataclasses.replace(decode, rows=SLOTS + 1)
    facts = {f.name: getattr(decode, f.name) for f in dataclasses.fields(decode)}
    with pytest.raises(ContractError):
        PreparedGraph(None, **facts)


def test_a_prepared_contract_can_t_be_changed_or_copied(prepared: PreparedContract) -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        prepared.vocabulary = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        prepared.weights["norm"] = prepared.weights["embedding"]  # type: ignore[index]
    for spread in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(ContractError, match="sealed"):
            spread(prepared)


def test_preparing_reads_the_messages_and_keeps_none() -> None:
    contract, manifest = full_contract(), full_manifest()
    prepared = prepare_contract(contract, manifest)
    contract.model.vocabulary = 1
    manifest.weights[0].shape[0] = 1
    assert prepared.vocabulary == VOCABULARY
    assert prepared.weights["embedding"].shape[0] == 104


def test_graphs_are_found_by_name_and_operation(prepared: PreparedContract) -> None:
    assert [g.program for g in prepared.graphs_of(Operation.SPECULATIVE)] == [
        "speculative.1",
        "speculative.3",
        "speculative.4",
    ]
    with pytest.raises(KeyError):
        prepared.graph("nowhere")
