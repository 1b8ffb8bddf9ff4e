"""Programs and contract agree, or the difference is named."""

from collections.abc import Callable

import pytest
from agreement_examples import toy_contract, toy_manifest, toy_programs
from program_examples import every_operation

from helios.contract.kinds import Access
from helios.contract.prepare import prepare_contract
from helios.contract.prepared import PreparedContract
from helios.errors import ContractError, ProgramError
from helios.program.agreement import check_programs, state_accesses
from helios.program.ir import Op, Program
from helios.program.text import from_text, to_text
from helios.schema import contract_pb2 as pb
from helios.schema import manifest_pb2, program_pb2

Change = Callable[[pb.ServingContract, manifest_pb2.ExecutionManifest], object]


def prepared(*changes: Change) -> PreparedContract:
    programs = toy_programs()
    contract, manifest = toy_contract(programs), toy_manifest(programs)
    for change in changes:
        change(contract, manifest)
    return prepare_contract(contract, manifest)


def edited(name: str, *edits: tuple[str, str]) -> dict[str, Program]:
    """The toy programs with one of them edited in its text form."""
    programs = toy_programs()
    text = to_text(programs[name])
    for old, new in edits:
        assert old in text, old
        text = text.replace(old, new)
    return {**programs, name: from_text(text)}


def refused(contract: PreparedContract, programs: dict[str, Program]) -> ContractError:
    with pytest.raises(ContractError) as caught:
        check_programs(contract, programs)
    assert caught.value.value is not None
    assert caught.value.remedy
    return caught.value


def test_the_toy_programs_agree() -> None:
    check_programs(prepared(), toy_programs())


def test_accesses_are_what_operations_do() -> None:
    assert state_accesses(toy_programs()["prefill"]) == {
        "endpoint": Access.READ_WRITE,
        "pending": Access.READ_WRITE,
        "counts": Access.READ_WRITE,
        "saved": Access.WRITE,
    }
    accesses = state_accesses(every_operation())
    assert accesses["prompt_counts"] is Access.READ
    assert accesses["saved.values"] is Access.READ


@pytest.mark.parametrize(
    ("name", "edits", "field", "message"),
    [
        ("decode", [("program decode", "program other")], "programs.decode", "calls itself"),
        ("decode", [("decode DECODE", "decode MIXED")], "decode.operation", "says DECODE"),
        ("decode", [("B dynamic 4", "B dynamic 3")], "extents.B", "another capacity"),
        ("decode", [("S dynamic 4", "S dynamic 5")], "extents.S", "another capacity"),
        ("prefill", [("T dynamic 8", "T dynamic 9")], "extents.T", "another capacity"),
        ("decode", [("R load 4", "R load 5")], "extents.R", "another capacity"),
        ("decode", [("N load 0", "N load 7")], "extents.N", "another capacity"),
        ("decode", [("C load 0", "C dynamic 4"), ("f16[C,", "f16[N,")], "extents.C", "other kind"),
        ("decode", [("extent C", "extent X dynamic 1\nextent C")], "extents.X", "a length"),
        ("initialize", [("extent R", "extent T dynamic 1\nextent R")], "extents.T", "a length"),
        ("decode", [("@values", "@others")], "decode.others", "no such cache buffer"),
        ("decode", [("@counts", "@others")], "decode.others", "no such state buffer"),
        ("decode", [("@query_length", "@lengths")], "decode.lengths", "no such transport"),
        ("initialize", [("i32[R, 70]", "i32[R, 71]")], "counts", "the manifest says i32[R, 70]"),
        ("decode", [("$embedding", "$embedded")], "weights.embedded", "weight catalog"),
        ("decode", [("page_tokens=8", "page_tokens=16")], "page_tokens", "8 tokens"),
        (
            "decode",
            [("histogram_add(@counts, %gather.2, %ones.2)", "state_clear(@counts, %gather.2)")],
            "decode.state",
            "access of counts is WRITE",
        ),
        (
            "decode",
            [("state_add(@endpoint, @slot, @query_length)\n", "")],
            "decode.state",
            "access of endpoint is READ",
        ),
    ],
)
def test_an_edited_program_disagrees(
    name: str, edits: list[tuple[str, str]], field: str, message: str
) -> None:
    error = refused(prepared(), edited(name, *edits))
    assert field in error.field
    assert message in error.message


def graph(contract: pb.ServingContract, name: str) -> pb.GraphContract:
    return next(g for g in contract.model.graphs if g.program == name)


def binding(contract: pb.ServingContract, name: str, destination: str) -> pb.ValueBinding:
    return next(b for b in graph(contract, name).bindings if b.destination == destination)


def program(manifest: manifest_pb2.ExecutionManifest, name: str) -> manifest_pb2.ProgramDescriptor:
    return next(p for p in manifest.programs if p.name == name)


def unbind(contract: pb.ServingContract) -> None:
    graph(contract, "decode").bindings.remove(binding(contract, "decode", "grammar_active"))


def bind_more(contract: pb.ServingContract, manifest: manifest_pb2.ExecutionManifest) -> None:
    type_ = program_pb2.TensorType(
        dtype=program_pb2.DTYPE_I32, shape=[program_pb2.Dimension(extent="B")]
    )
    manifest.transport.add(name="extra", type=type_)
    graph(contract, "decode").bindings.add(
        destination="extra",
        source=pb.VALUE_SOURCE_STATE_ROW,
        index=pb.INDEX_KIND_ACTIVE_ROW,
    )


def complete_less(contract: pb.ServingContract, manifest: manifest_pb2.ExecutionManifest) -> None:
    """The contract stops reading a record that only scored prefills must have."""
    kept = [c for c in program(manifest, "initialize").completion if "endpoint" not in c.buffer]
    assert len(kept) == 2
    extra = program(manifest, "initialize").completion
    del extra[:]
    extra.extend(kept)
    extra.add(field=manifest_pb2.COMPLETION_FIELD_ENDPOINT, buffer="completion.accepted")


def tune(contract: pb.ServingContract, manifest: manifest_pb2.ExecutionManifest) -> None:
    manifest.buffers.add(
        name="tiles",
        kind=program_pb2.BUFFER_KIND_TUNED,
        type=program_pb2.TensorType(
            dtype=program_pb2.DTYPE_I32, shape=[program_pb2.Dimension(constant=4)]
        ),
    )
    manifest.tuning.add(
        name="tune",
        operation=program_pb2.OPERATION_TUNING,
        resource="program/tune",
        tuned_outputs=["tiles"],
    )
    graph(contract, "decode").tuned_bindings.add(buffer="tiles", producer="tune")
    program(manifest, "decode").tuned_inputs.add(buffer="tiles", producer="tune")


def widen(contract: pb.ServingContract, manifest: manifest_pb2.ExecutionManifest) -> None:
    contract.model.input_vocabulary += 1


@pytest.mark.parametrize(
    ("change", "field", "message"),
    [
        (lambda c, m: unbind(c), "bindings.grammar_active", "nothing fills this input"),
        (bind_more, "bindings.extra", "reads no such"),
        (
            lambda c, m: setattr(
                binding(c, "decode", "sampled_row"), "source", pb.VALUE_SOURCE_STATE_ROW
            ),
            "bindings.sampled_row",
            "runs over B",
        ),
        (
            lambda c, m: setattr(
                binding(c, "decode", "grammar_active"), "source", pb.VALUE_SOURCE_SAMPLED_ROW
            ),
            "bindings.grammar_active",
            "runs over S",
        ),
        (complete_less, "initialize.completion", "the program stores no such record"),
        (widen, "embedding.table", "71 tokens"),
    ],
)
def test_a_changed_contract_disagrees(change: Change, field: str, message: str) -> None:
    error = refused(prepared(change), toy_programs())
    assert field in error.field
    assert message in error.message


def test_tuned_buffers_must_be_in_the_program() -> None:
    tuning = from_text("program tune TUNING\n")
    error = refused(prepared(tune), {**toy_programs(), "tune": tuning})
    assert error.field == "programs.decode.tuned.tiles"


def test_tuning_programs_are_expected_too() -> None:
    assert refused(prepared(tune), toy_programs()).field == "programs.tune"


def test_programs_are_exactly_those_of_the_catalogs() -> None:
    programs = toy_programs()
    spare = {**programs, "spare": programs["decode"]}
    assert refused(prepared(), spare).message == "no catalog names this program"
    del programs["decode"]
    assert refused(prepared(), programs).message == "there is no such program"


def test_logits_are_as_wide_as_the_vocabulary() -> None:
    narrow = [("$head f32[70, 16]", "$head f32[69, 16]"), ("f32[S, 70]", "f32[S, 69]")]
    programs = {n: edited(n, *narrow)[n] for n in ("prefill", "decode")}

    def store_narrow(c: pb.ServingContract, m: manifest_pb2.ExecutionManifest) -> None:
        head = next(w for w in m.weights if w.name == "head")
        head.shape[0], head.nbytes = 69, 69 * 16 * 4

    error = refused(prepared(store_narrow), {**toy_programs(), **programs})
    assert error.field.endswith("mask_logits.logits")
    assert "70 tokens" in error.message


def test_records_have_their_field_s_shape() -> None:
    def swap(c: pb.ServingContract, m: manifest_pb2.ExecutionManifest) -> None:
        for item in m.programs:
            records = {r.buffer: r for r in item.completion}
            if "completion.tokens" in records:
                records["completion.tokens"].buffer = "completion.endpoint"
                records["completion.endpoint"].buffer = "completion.tokens"

    error = refused(prepared(swap), toy_programs())
    assert error.field.startswith("graphs.prefill.completion.")
    assert "must be [" in error.message


def test_a_weight_is_stored_in_the_shape_the_program_takes() -> None:
    def reshape(c: pb.ServingContract, m: manifest_pb2.ExecutionManifest) -> None:
        head = next(w for w in m.weights if w.name == "head")
        head.shape[:] = [16, 70]

    error = refused(prepared(reshape), toy_programs())
    assert error.field.endswith("weights.head")
    assert "[16, 70]" in error.message


def test_an_ill_formed_program_is_refused_first() -> None:
    programs = toy_programs()
    decode = programs["decode"]
    broken = Program(decode.name, decode.operation, decode.extents, (Op("nonsense", (), ()),))
    with pytest.raises(ProgramError, match="unknown operation"):
        check_programs(prepared(), {**programs, "decode": broken})
