"""Tuning programs in the op table, the contract and the manifest, and what is refused of them."""

from collections.abc import Callable

import pytest
from toy_models import Shape, ToyModel

from helios.contract.kinds import WeightStorage
from helios.contract.operation import Operation
from helios.contract.prepare import prepare_contract
from helios.errors import ContractError, ProgramError
from helios.program.agreement import check_programs
from helios.program.ir import Buffer, BufferKind, Program
from helios.program.text import from_text, to_text
from helios.program.verify import verify
from helios.program.wire import program_from_bytes, program_to_bytes
from helios.schema import contract_pb2, manifest_pb2, program_pb2

HEAD = "program tune TUNING\ntuned @choices i32[5]\nweight $w f32[64, 96]\n"
ONE = "tune_linear($w, @choices) coarse=false\n"
Change = Callable[[contract_pb2.ServingContract, manifest_pb2.ExecutionManifest], object]


@pytest.fixture(scope="module")
def model() -> ToyModel:
    return ToyModel()


def tuned(program: Program) -> set[str]:
    return {b.name for b in program.buffers() if b.kind is BufferKind.TUNED}


def test_products_of_one_shape_share_their_choices(model: ToyModel) -> None:
    tune = model.program(Operation.TUNING)
    shapes = [op.operands[0].type.shape for op in tune.ops if op.operands[0]]
    assert sorted(shapes) == [(32, 64), (64, 64), (64, 96), (96, 64), (100, 64)]
    decode = model.program(Operation.DECODE)
    products = [op for op in decode.ops if op.kind == "linear"]
    assert len(products) == 2 * 7 + 1
    for op in products:
        _, weight, bias, choices = op.operands
        assert weight is not None
        assert bias is None
        assert isinstance(choices, Buffer)
        rows, columns = weight.type.shape
        assert choices.name == f"tuned.linear.{rows}x{columns}.q8_0"


def test_every_graph_binds_what_it_reads_and_the_producer_fills_it(model: ToyModel) -> None:
    contract, (entry,) = model.prepared, model.manifest.tuning
    assert entry.operation == program_pb2.OPERATION_TUNING
    programs = {p.name: p for p in model.captured}
    for graph in contract.graphs:
        bound = {b.buffer for b in graph.tuned}
        assert bound == tuned(programs[graph.program])
        assert bound <= set(entry.tuned_outputs)
        assert {b.producer for b in graph.tuned} <= {entry.name}
        assert bool(bound) == (graph.tokens > 0)
    assert set(entry.tuned_outputs) == tuned(programs["tune"])


def test_tuning_programs_survive_text_and_wire(model: ToyModel) -> None:
    for program in model.captured:
        assert from_text(to_text(program)) == program
        assert program_from_bytes(program_to_bytes(program)) == program


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (HEAD.replace("TUNING", "DECODE") + ONE, "only tuning programs fill it"),
        (HEAD + ONE + ONE, "tuned written twice"),
        (HEAD.replace("tuned", "state") + ONE, "must live in tuned"),
        (HEAD.replace("i32[5]", "f32[5]") + ONE, "element type must be i32"),
        (HEAD.replace("i32[5]", "i32[5, 2]") + ONE, "wants 1 dimensions"),
        (
            HEAD
            + "extent B dynamic 4\ntransport @x f32[B, 96]\n%y f32[B, 64] = "
            + "linear(@x, $w, _, @choices) coarse=false\n",
            "a tuning program fills it",
        ),
    ],
)
def test_programs_that_are_not_well_formed(text: str, message: str) -> None:
    with pytest.raises(ProgramError, match=message):
        verify(from_text(text))


def forget_producer(
    contract: contract_pb2.ServingContract, manifest: manifest_pb2.ExecutionManifest
) -> None:
    del manifest.tuning[:]
    for graph in contract.model.graphs:
        if "program/tune" in graph.resources:
            graph.resources.remove("program/tune")


def forget_output(
    _contract: contract_pb2.ServingContract, manifest: manifest_pb2.ExecutionManifest
) -> None:
    manifest.tuning[0].tuned_outputs.pop()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (forget_producer, "is not in the tuning catalog"),
        (forget_output, "tune does not fill it"),
    ],
)
def test_a_binding_without_a_producer_is_refused(
    model: ToyModel, change: Change, message: str
) -> None:
    contract, manifest = contract_pb2.ServingContract(), manifest_pb2.ExecutionManifest()
    contract.CopyFrom(model.contract)
    manifest.CopyFrom(model.manifest)
    change(contract, manifest)
    with pytest.raises(ContractError, match=message):
        prepare_contract(contract, manifest)


def disagreement(model: ToyModel, text: str) -> str:
    programs = {p.name: p for p in model.captured} | {"tune": from_text(text)}
    with pytest.raises(ContractError) as caught:
        check_programs(model.prepared, programs)
    return caught.value.message


def test_a_tuning_program_does_what_its_entry_says_and_no_more(model: ToyModel) -> None:
    text = to_text(model.program(Operation.TUNING))
    lines = text.splitlines()
    extent = text.replace("TUNING\n", "TUNING\nextent B dynamic 4\n")
    assert disagreement(model, extent) == "nothing gives it a length at start-up"
    shorter = "\n".join(line for line in lines if "96x64" not in line and "gate" not in line)
    assert disagreement(model, shorter + "\n") == "is not in the program"
    wider = text.replace("i32[5]", "i32[6]")
    assert disagreement(model, wider).startswith("the manifest says")
    other = text.replace("$layers.0.attention.key", "$nobody")
    assert disagreement(model, other) == "is not in the weight catalog"
    serving = text.replace("TUNING", "DECODE")
    with pytest.raises(ProgramError):
        check_programs(
            model.prepared, {p.name: p for p in model.captured} | {"tune": from_text(serving)}
        )


def test_a_tuning_program_touches_no_other_buffer(model: ToyModel) -> None:
    text = to_text(model.program(Operation.TUNING)).replace(
        "\n\n", "\nstate @pending i32[8]\ntransport @rows i32[8]\n\n", 1
    )
    assert disagreement(model, text + "state_clear(@pending, @rows)\n") == "is no tuned buffer"


def test_storages_of_one_shape_are_classes_of_their_own() -> None:
    models = [ToyModel(Shape(storage=s)) for s in (WeightStorage.F16, WeightStorage.Q8_0)]
    left, right = (tuned(model.program(Operation.TUNING)) for model in models)
    assert not left & right
