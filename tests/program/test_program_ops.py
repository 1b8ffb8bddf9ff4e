"""The op table itself: rows that unify, rules that hold, and a negative test for each."""

from collections.abc import Callable

import pytest
from program_examples import Writer, every_operation

from helios.contract.operation import Operation
from helios.errors import ProgramError
from helios.program.ir import BufferKind, DType, Ref
from helios.program.ops import OPS, READ, TRANSPORT, VALUE, OpSpec
from helios.program.rules import RULES

T, B, S, R = "T", "B", "S", "R"


@pytest.mark.parametrize("spec", OPS.values(), ids=lambda spec: spec.kind)
def test_every_result_dimension_comes_from_somewhere(spec: OpSpec) -> None:
    bound = {d for o in spec.operands if not o.optional for d in o.shape}
    attributes = {a.name: a.type for a in spec.attributes}
    for result in spec.results:
        for dim in result.shape:
            assert dim in bound or attributes.get(str(dim)) in (int, str), (result.name, dim)
        assert isinstance(result.dtype, DType) or any(
            o.name == result.dtype and not o.optional for o in spec.operands
        )


@pytest.mark.parametrize("spec", OPS.values(), ids=lambda spec: spec.kind)
def test_a_row_is_complete(spec: OpSpec) -> None:
    assert spec.version >= 1
    assert spec.meaning.endswith((".", "…"))
    names = [o.name for o in spec.operands] + [a.name for a in spec.attributes]
    assert len(names) == len(set(names))
    assert spec.results or any(o.access != READ for o in spec.operands), "it does something"
    optional = [o.optional for o in spec.operands]
    assert optional == sorted(optional), "optional operands come last"
    for operand in spec.operands:
        writes = operand.access != READ
        assert not writes or not operand.places & {VALUE, TRANSPORT}, "inputs are not written"
        assert operand.shape.count("...") <= 1


def test_the_example_uses_every_row() -> None:
    """Every row of a serving program: tuning programs are tested where tuning is."""
    assert {op.kind for op in every_operation().ops} == set(OPS) - {"tune_linear"}


def test_rules_are_of_known_kinds() -> None:
    assert set(RULES) <= set(OPS)


# ---- a negative test for every rule --------------------------------------------------------


class Shelf(Writer):
    """Operands by type, for calls that go wrong."""

    def __init__(self) -> None:
        super().__init__("p", Operation.PREFILL)

    def real(self, *shape: int | str) -> Ref:
        name = f"real.{'.'.join(map(str, shape))}"
        return self.builder.transport(name, DType.F32, shape)

    def whole(self, extent: str, name: str = "") -> Ref:
        return self.builder.transport(f"int.{extent}{name}", DType.I32, (extent,))

    def cached(self, groups: int, name: str = "keys") -> Ref:
        return self.builder.buffer(name, BufferKind.CACHE, DType.F16, ("N", 8, groups, 4))

    def kept(self, dtype: DType = DType.F32) -> Ref:
        return self.builder.state(f"kept.{dtype.text}", dtype, ("C", 8, 2, 4))


def attend(s: Shelf, heads: int = 4, groups: int = 2, **attributes: object) -> object:
    return s.builder.op(
        "paged_attention",
        s.real(T, heads, 4),
        s.whole(T),
        s.whole(T),
        s.whole(B),
        s.table(),
        s.cached(groups),
        s.cached(groups),
        **{"scale": 1.0, **attributes},
    )


def turn(s: Shelf, frequencies: int = 2, **attributes: object) -> object:
    weight = s.builder.weight("f", (frequencies,))
    return s.builder.op("rope", s.real(T, 4, 4), s.whole(T), weight, **attributes)


def mask(s: Shelf, words: int, width: int) -> object:
    bits = s.builder.transport("mask", DType.U32, (B, width))
    return s.builder.op("mask_logits", s.real(S, 70), s.whole(S), bits, s.whole(B), words=words)


def top(s: Shelf, maximum: int) -> object:
    return s.builder.op("top_log_probabilities", s.real(S, 70), s.whole(S), maximum=maximum)


def split(s: Shelf, **attributes: object) -> object:
    return s.builder.op("split_heads", s.real(T, 16), **{"heads": 4, "dim": 4, **attributes})


def page(s: Shelf, kind: str, dtype: DType) -> object:
    plane, kept, rows, pages = s.cached(2), s.kept(dtype), s.whole(B), s.whole(B)
    operands = (plane, pages, kept, rows) if kind == "page_save" else (kept, rows, plane, pages)
    return s.builder.op(kind, *operands)


def store(s: Shelf) -> object:
    return s.builder.op("store", s.real(B), s.builder.completion("c", DType.I32, (B,)))


WRONG: list[tuple[str, str, Callable[[Shelf], object]]] = [
    ("token_rows", "tokens", lambda s: s.builder.op(
        "token_rows", s.whole(B), s.whole(B), tokens=R)),
    ("token_rows", "tokens", lambda s: s.builder.op(
        "token_rows", s.whole(B), s.whole(B), tokens="nowhere")),
    ("rms_norm", "epsilon", lambda s: s.builder.op(
        "rms_norm", s.real(T, 16), s.builder.weight("n", (16,)), epsilon=0.0)),
    ("rope", "magnitude", lambda s: turn(s, magnitude=-1.0)),
    ("rope", "frequencies", lambda s: turn(s, frequencies=3)),
    ("split_heads", "heads", lambda s: split(s, heads=0)),
    ("split_heads", "dim", lambda s: split(s, dim=-4)),
    ("split_heads", "offset", lambda s: split(s, offset=-1)),
    ("split_heads", "x", lambda s: split(s, offset=1)),
    ("paged_attention", "scale", lambda s: attend(s, scale=0.0)),
    ("paged_attention", "window", lambda s: attend(s, window=-1)),
    ("paged_attention", "softcap", lambda s: attend(s, softcap=-1.0)),
    ("paged_attention", "q", lambda s: attend(s, groups=3)),
    ("merge_heads", "width", lambda s: s.builder.op("merge_heads", s.real(T, 4, 4), width=15)),
    ("softcap", "cap", lambda s: s.builder.op("softcap", s.real(T, 4), cap=0.0)),
    ("mask_logits", "words", lambda s: mask(s, 2, 2)),
    ("mask_logits", "mask", lambda s: mask(s, 3, 4)),
    ("top_log_probabilities", "maximum", lambda s: top(s, 0)),
    ("top_log_probabilities", "maximum", lambda s: top(s, 71)),
    ("state_write", "value", lambda s: s.builder.op(
        "state_write", s.state("s"), s.whole(B), s.real(B))),
    ("current_page", "page_tokens", lambda s: s.builder.op(
        "current_page", s.whole(B), s.whole(B), s.whole(B), s.table(), page_tokens=0)),
    ("page_save", "continuation", lambda s: page(s, "page_save", DType.F32)),
    ("page_load", "continuation", lambda s: page(s, "page_load", DType.BF16)),
    ("store", "value", store),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "name", "call"), WRONG)
def test_a_rule_refuses_what_breaks_it(
    kind: str, name: str, call: Callable[[Shelf], object]
) -> None:
    with pytest.raises(ProgramError) as caught:
        call(Shelf())
    assert caught.value.field == f"{kind}.{name}"
    assert caught.value.value is not None
    assert caught.value.remedy


def test_the_calls_are_right_otherwise() -> None:
    s = Shelf()
    turn(s, magnitude=1.0)
    split(s)
    attend(s)
    mask(s, 3, 3)
    top(s, 70)
    page(s, "page_save", DType.F16)
    page(s, "page_load", DType.F16)


def test_every_kind_with_rules_is_refused_somewhere() -> None:
    assert {kind for kind, _, _ in WRONG} == set(RULES)


def test_symbolic_widths_are_refused_where_a_constant_is_needed() -> None:
    s = Shelf()
    with pytest.raises(ProgramError, match="must be a constant"):
        s.builder.op("merge_heads", s.real(T, "B", 4), width=4)
