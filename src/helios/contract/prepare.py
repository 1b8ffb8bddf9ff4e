"""From bytes or text to a validated contract: the only way to a `PreparedContract`."""

from typing import TypeVar

from google.protobuf import json_format
from google.protobuf.message import Message

from helios.contract.decode import decode
from helios.contract.limits import check_counts
from helios.contract.prepared import PreparedContract
from helios.contract.reading import refusal
from helios.contract.rules import RULES
from helios.contract.strict import check_message, check_texts, parse
from helios.errors import ContractError
from helios.schema.contract_pb2 import ServingContract
from helios.schema.manifest_pb2 import ExecutionManifest

_M = TypeVar("_M", bound=Message)

MAX_JSON = 256 << 20
"""The longest JSON text that is parsed, in characters."""


def prepare_contract(contract: ServingContract, manifest: ExecutionManifest) -> PreparedContract:
    """Validate a contract with its manifest.

    Raises `ContractError` naming field, value and remedy of the first rule that does not hold.
    The messages are read, not kept.
    """
    check_message(contract, "contract", ContractError)
    check_message(manifest, "manifest", ContractError)
    check_texts(contract.model.frontend, "contract.model.frontend", ContractError)
    check_counts(contract, manifest)
    prepared = decode(contract, manifest)
    for rule in RULES:
        rule(prepared)
    return prepared


def contract_from_bytes(data: bytes) -> ServingContract:
    """A serialised contract as a message, to be prepared; raises `ContractError` if it is none."""
    return parse(data, ServingContract, "contract", ContractError)


def manifest_from_bytes(data: bytes) -> ExecutionManifest:
    """A serialised manifest as a message, to be prepared; raises `ContractError` if it is none."""
    return parse(data, ExecutionManifest, "manifest", ContractError)


def contract_from_json(text: str) -> ServingContract:
    """A contract in Protobuf's JSON form; unknown, doubled or mistyped fields are refused."""
    return _from_json(text, ServingContract, "contract")


def manifest_from_json(text: str) -> ExecutionManifest:
    """A manifest in Protobuf's JSON form; unknown, doubled or mistyped fields are refused."""
    return _from_json(text, ExecutionManifest, "manifest")


def contract_to_json(contract: ServingContract) -> str:
    """The JSON form that `contract_from_json` reads, with the schema's own field names."""
    return json_format.MessageToJson(contract, preserving_proto_field_name=True)


def _from_json(text: str, kind: type[_M], field: str) -> _M:
    if len(text) > MAX_JSON:
        raise refusal(field, "is too large", len(text), f"at most {MAX_JSON} characters")
    if not text.lstrip().startswith("{"):
        raise refusal(field, "is not a JSON object", text[:32], "write one")
    message = kind()
    try:
        json_format.Parse(text, message)
    except (json_format.ParseError, ValueError, RecursionError) as error:
        raise refusal(field, "is not a contract in JSON", str(error), "correct it") from None
    check_message(message, field, ContractError)
    return message
