"""What the schema does not know is refused, wherever it stands; and nothing but ContractError."""

import json
import math

import pytest
from contract_examples import full_contract, full_manifest
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message
from hypothesis import given, settings
from hypothesis import strategies as st
from message_tools import assignments, messages

from helios.contract import strict
from helios.contract.prepare import (
    contract_from_bytes,
    contract_from_json,
    contract_to_json,
    manifest_from_bytes,
    manifest_from_json,
    prepare_contract,
)
from helios.contract.prepared import PreparedContract
from helios.errors import ContractError
from helios.schema.contract_pb2 import ServingContract
from helios.schema.manifest_pb2 import ExecutionManifest

UNKNOWN_FIELD = b"\xc0\x3e\x01"  # field 1000, varint 1
REALS = (FieldDescriptor.TYPE_DOUBLE, FieldDescriptor.TYPE_FLOAT)


def count(message: Message, kind: str) -> int:
    return len(list(assignments(message, lambda d: is_kind(d, kind))))


def is_kind(descriptor: FieldDescriptor, kind: str) -> bool:
    if kind == "enum":
        return descriptor.enum_type is not None
    return descriptor.type in REALS


SEEDS = (full_contract().SerializeToString(), full_manifest().SerializeToString())


def both() -> tuple[Message, Message]:
    return ServingContract.FromString(SEEDS[0]), ExecutionManifest.FromString(SEEDS[1])


def refused(contract: Message, manifest: Message) -> ContractError:
    with pytest.raises(ContractError) as caught:
        prepare_contract(contract, manifest)
    return caught.value


def test_an_unknown_number_in_any_enum_field_is_refused() -> None:
    seen = 0
    for which in (0, 1):
        for index in range(count(both()[which], "enum")):
            pair = both()
            descriptor, assign = list(assignments(pair[which], lambda d: is_kind(d, "enum")))[index]
            assign(9999)
            error = refused(*pair)
            assert descriptor.name in error.field
            assert error.value == 9999
            seen += 1
    assert seen > 400


def test_a_number_that_is_not_finite_is_refused_in_any_field() -> None:
    for which in (0, 1):
        for index in range(count(both()[which], "real")):
            for value in (math.nan, math.inf):
                pair = both()
                descriptor, assign = list(assignments(pair[which], lambda d: is_kind(d, "real")))[
                    index
                ]
                assign(value)
                assert descriptor.name in refused(*pair).field


def test_an_unknown_field_in_any_message_is_refused() -> None:
    for which in (0, 1):
        for index in range(len(list(messages(both()[which])))):
            pair = both()
            list(messages(pair[which]))[index].MergeFromString(UNKNOWN_FIELD)
            error = refused(*pair)
            assert "unknown field" in error.message
            assert error.value == 1000


def test_over_long_text_and_lists_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(strict, "MAX_TEXT", 100)
    contract = full_contract()
    contract.model.frontend.assistant.open = "x" * 101
    assert "too long" in refused(contract, full_manifest()).message
    monkeypatch.setattr(strict, "MAX_ITEMS", 3)
    assert "too many" in refused(full_contract(), full_manifest()).message


def test_bytes_that_are_no_contract_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    data = full_contract().SerializeToString()
    assert contract_from_bytes(data) == full_contract()
    for broken in (data[:-1], data + b"\x0a", b"\x0a\x01\xff", b"\xff" * 20):
        with pytest.raises(ContractError):
            contract_from_bytes(broken)
    manifest = manifest_from_bytes(full_manifest().SerializeToString() + UNKNOWN_FIELD)
    assert "unknown field" in refused(full_contract(), manifest).message
    monkeypatch.setattr(strict, "MAX_BYTES", len(data) - 1)
    with pytest.raises(ContractError, match="too large"):
        contract_from_bytes(data)


# ---- JSON ----------------------------------------------------------------------------------


def test_json_round_trips() -> None:
    assert contract_from_json(contract_to_json(full_contract())) == full_contract()


@pytest.mark.parametrize(
    "text",
    [
        '{"served_id": "a", "history_drafting": true}',
        '{"model": {"graphs": [{"replay": 1}]}}',
        '{"served_id": 1}',
        '{"context_tokens": -1}',
        '{"context_tokens": 1e30}',
        '{"context_tokens": 1, "context_tokens": 2}',
        '{"model": {"frontend": {"tool_parser": "TOOL_PARSER_TELEPATHY"}}}',
        '{"model": {"frontend": {"tool_parser": 99}}}',
        '{"defaults": {"temperature": "NaN"}}',
        "[]",
        "",
        "{",
        '{"model": ' * 5000,
    ],
)
def test_json_with_anything_unknown_is_refused(text: str) -> None:
    with pytest.raises(ContractError) as caught:
        contract_from_json(text)
    assert caught.value.field.startswith("contract")
    assert caught.value.remedy


def test_manifest_json_is_as_strict() -> None:
    assert manifest_from_json('{"abi": 3}').abi == 3
    with pytest.raises(ContractError):
        manifest_from_json('{"abi": 3, "engine": "x"}')


def test_json_names_the_schema_s_fields() -> None:
    assert json.loads(contract_to_json(full_contract()))["served_id"] == "example-1B"


# ---- anything at all -----------------------------------------------------------------------


@st.composite
def disturbed(draw: st.DrawFn, data: bytes) -> bytes:
    """A few bytes changed, removed, inserted or repeated."""
    changed = bytearray(data)
    for _ in range(draw(st.integers(0, 4))):
        at = draw(st.integers(0, max(len(changed) - 1, 0)))
        length = draw(st.integers(0, 8))
        new = draw(st.binary(max_size=8))
        repeat = draw(st.booleans())
        changed[at : at + length] = new + changed[at : at + length] if repeat else new
    return bytes(changed)


@settings(max_examples=400, derandomize=True, deadline=None)
@given(contract=disturbed(SEEDS[0]), manifest=disturbed(SEEDS[1]))
def test_disturbed_bytes_give_a_contract_or_a_contract_error(
    contract: bytes, manifest: bytes
) -> None:
    try:
        prepared = prepare_contract(contract_from_bytes(contract), manifest_from_bytes(manifest))
    except ContractError as error:
        explained(error)
    else:
        assert isinstance(prepared, PreparedContract)


def explained(error: ContractError) -> None:
    assert error.field
    assert error.remedy
    assert str(error)


def _random_value(draw: st.DrawFn, descriptor: FieldDescriptor) -> object:
    if descriptor.enum_type is not None:
        return draw(st.integers(0, 120))
    if descriptor.type == FieldDescriptor.TYPE_STRING:
        return draw(st.sampled_from(["", "slot", "keys", "pending", "\x00", "tune", "decode"]))
    if descriptor.type == FieldDescriptor.TYPE_BOOL:
        return draw(st.booleans())
    if descriptor.type in REALS:
        return draw(st.floats(allow_nan=True, width=32))
    if descriptor.type == FieldDescriptor.TYPE_INT64:
        return draw(st.integers(-(1 << 63), (1 << 63) - 1) | st.integers(-3, 300))
    bits = 32 if descriptor.type == FieldDescriptor.TYPE_UINT32 else 64
    return draw(st.integers(0, (1 << bits) - 1) | st.integers(0, 300))


@settings(max_examples=250, derandomize=True, deadline=None)
@given(data=st.data())
def test_disturbed_fields_give_a_contract_or_a_contract_error(data: st.DataObject) -> None:
    pair = both()
    for _ in range(data.draw(st.integers(1, 3))):
        choices = list(
            assignments(pair[data.draw(st.integers(0, 1))], lambda d: d.message_type is None)
        )
        descriptor, assign = choices[data.draw(st.integers(0, len(choices) - 1))]
        assign(data.draw(st.composite(_random_value)(descriptor)))
    try:
        prepare_contract(*pair)
    except ContractError as error:
        explained(error)
