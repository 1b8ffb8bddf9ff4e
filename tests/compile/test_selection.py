from collections.abc import Sequence
from dataclasses import replace

import pytest

from helios.compile.capabilities import (
    CapabilityCatalog,
    DeviceDescriptor,
    Layout,
    MaterializerKind,
    MaterializerSpec,
    ProviderSpec,
)
from helios.compile.demand import Demand
from helios.compile.selection import Selection, select
from helios.contract.kinds import WeightStorage
from helios.contract.operation import Operation
from helios.contract.prepared import WeightDescriptor
from helios.errors import ConfigurationError, UnsupportedLayoutError, UnsupportedOperationError
from helios.program.builder import ProgramBuilder
from helios.program.ir import DType, ExtentKind, Program
from helios.program.ops import OPS

REPACK, TRANSCODE = MaterializerKind.REPACK, MaterializerKind.TRANSCODE


def program(bias: bool = False, tied: bool = False) -> Program:
    """A projection of [T, 8] to [T, 4], optionally biased, or by the table it embeds with."""
    builder = ProgramBuilder("p", Operation.DECODE)
    builder.extent("T", ExtentKind.DYNAMIC, 4)
    if tied:
        tokens = builder.transport("tokens", DType.I32, ("T",))
        table = builder.weight("w", (4, 8))
        x = builder.value("embedding", tokens, table)
        builder.value("linear", x, table)
    else:
        x_in = builder.transport("x", DType.F32, ("T", 8))
        added = builder.weight("b", (4,)) if bias else None
        builder.value("linear", x_in, builder.weight("w", (4, 8)), added)
    return builder.build()


def weight(name: str, storage: WeightStorage = WeightStorage.BF16) -> WeightDescriptor:
    return WeightDescriptor(name, storage, (4, 8), "weights", 0, 64)


def linear(name: str, layouts: Sequence[str], biases: Sequence[str] = ("f32",)) -> ProviderSpec:
    accepted = {"weight": tuple(layouts), "bias": tuple(biases)}
    return ProviderSpec(name, "linear", OPS["linear"].version, accepted, {}, Demand())


def embedding(name: str, layouts: Sequence[str]) -> ProviderSpec:
    return ProviderSpec(name, "embedding", 1, {"table": tuple(layouts)}, {}, Demand())


def catalog(
    providers: Sequence[ProviderSpec], materializers: Sequence[MaterializerSpec]
) -> CapabilityCatalog:
    names = {m.layout for m in materializers} | {
        layout for p in providers for chosen in p.weight_layouts.values() for layout in chosen
    }
    layouts = tuple(Layout(name, 1, 4) for name in sorted(names))
    device = DeviceDescriptor("test", "none", "f32")
    return CapabilityCatalog(device, layouts, tuple(providers), tuple(materializers))


def to(layout: str, kind: MaterializerKind = REPACK, storage: str = "bf16") -> MaterializerSpec:
    return MaterializerSpec(f"{storage}-{layout}", kind, storage, layout)


def choose(
    device: CapabilityCatalog,
    made: Program | None = None,
    approximate: dict[str, float] | None = None,
) -> Selection:
    weights = {name: weight(name) for name in ("w", "b")}
    return select([made or program()], weights, device, approximate or {})


def layouts(selection: Selection) -> dict[str, str]:
    return {name: spec.layout for name, spec in selection.materializers.items()}


def test_the_first_layout_that_a_provider_accepts_is_chosen() -> None:
    device = catalog([linear("fast", ["w4", "w8"])], [to("w8"), to("w4")])
    assert layouts(choose(device)) == {"w": "w8"}


def test_a_preferred_layout_without_a_provider_is_passed_over() -> None:
    device = catalog([linear("fast", ["w4"])], [to("w8"), to("w4")])
    assert layouts(choose(device)) == {"w": "w4"}


def test_a_weight_has_one_layout_for_all_its_uses() -> None:
    providers = [linear("l", ["w8", "f32"]), embedding("e", ["f32"])]
    device = catalog(providers, [to("w8"), to("f32")])
    assert layouts(choose(device, program(tied=True))) == {"w": "f32"}
    assert layouts(choose(device)) == {"w": "w8"}


def test_a_greedy_dead_end_is_left_again() -> None:
    """The matrix alone would take w8, but only the w4 kernel adds a bias as it is stored."""
    providers = [linear("fast", ["w8"], ["b8"]), linear("slow", ["w4"], ["f32"])]
    device = catalog(providers, [to("w8"), to("w4"), to("f32")])
    selection = choose(device, program(bias=True))
    assert layouts(selection) == {"w": "w4", "b": "f32"}
    (decision,) = selection.ops[0]
    assert decision.provider == "slow"
    assert [(r.provider, r.reason) for r in decision.rejected] == [
        ("fast", "weight is w4, accepts w8")
    ]


def test_the_first_provider_wins_and_the_others_say_so() -> None:
    device = catalog([linear("a", ["w8"]), linear("b", ["w8"]), linear("c", ["w4"])], [to("w8")])
    (decision,) = choose(device).ops[0]
    assert decision.provider == "a"
    assert {r.provider: r.reason for r in decision.rejected} == {
        "b": "a is preferred",
        "c": "weight is w8, accepts w4",
    }
    assert "w8" in decision.reason


def test_an_operation_that_the_device_lacks_is_named() -> None:
    device = catalog([embedding("e", ["w8"])], [to("w8")])
    with pytest.raises(UnsupportedOperationError, match="no provider") as caught:
        choose(device)
    assert caught.value.field == "linear"


def test_an_operation_of_another_version_is_unsupported() -> None:
    device = catalog([replace(linear("old", ["w8"]), version=7)], [to("w8")])
    with pytest.raises(UnsupportedOperationError, match="version 2, device has"):
        choose(device)


def test_a_layout_that_nothing_accepts_is_named() -> None:
    device = catalog([linear("fast", ["w4"])], [to("w8"), to("w4", storage="f16")])
    with pytest.raises(UnsupportedLayoutError, match="no choice of layouts") as caught:
        choose(device)
    assert caught.value.value == {"w": ["w8"]}
    assert "fast accepts" in caught.value.remedy


def test_a_storage_that_nothing_reads_is_named() -> None:
    device = catalog([linear("fast", ["w4"])], [to("w4", storage="f16")])
    with pytest.raises(UnsupportedLayoutError, match="reads this storage") as caught:
        choose(device)
    assert (caught.value.value, "f16" in caught.value.remedy) == ("bf16", True)


def test_approximate_materializers_need_consent() -> None:
    device = catalog([linear("fast", ["w8"])], [to("w8", TRANSCODE)])
    with pytest.raises(UnsupportedLayoutError, match="--materialize") as caught:
        choose(device)
    assert "bf16-w8" in caught.value.remedy
    selection = choose(device, approximate={"bf16-w8": 0.01})
    assert layouts(selection) == {"w": "w8"}
    assert selection.bounds == {"w": 0.01}


def test_consent_makes_an_approximation_preferred() -> None:
    device = catalog([linear("any", ["f32", "w8"])], [to("f32"), to("w8", TRANSCODE)])
    assert layouts(choose(device)) == {"w": "f32"}
    assert layouts(choose(device, approximate={"*-w8": 0.02})) == {"w": "w8"}


def test_the_strictest_bound_holds() -> None:
    device = catalog([linear("any", ["w8"])], [to("w8", TRANSCODE)])
    selection = choose(device, approximate={"*-w8": 0.02, "bf16-*": 0.001})
    assert selection.bounds == {"w": 0.001}


@pytest.mark.parametrize("pattern", ["nothing", "bf16-w4"])
def test_consent_that_applies_to_nothing_is_refused(pattern: str) -> None:
    """No such materializer, and one whose layout nothing accepts."""
    providers = [linear("any", ["f32"])]
    device = catalog(providers, [to("f32"), to("w4", TRANSCODE)])
    with pytest.raises(ConfigurationError, match="no weight"):
        choose(device, approximate={pattern: 0.1})


def test_consent_to_an_exact_materializer_changes_nothing() -> None:
    device = catalog([linear("any", ["f32"])], [to("f32")])
    selection = choose(device, approximate={"bf16-f32": 0.1})
    assert (layouts(selection), dict(selection.bounds)) == ({"w": "f32"}, {})


def test_attributes_and_element_types_restrict_providers() -> None:
    picky = replace(embedding("picky", ["w8"]), attributes={"scale": (2.0,)})
    typed = replace(embedding("typed", ["w8"]), dtypes={"tokens": ("i64",)})
    plain = embedding("plain", ["w8"])
    device = catalog([picky, typed, plain, linear("l", ["w8"])], [to("w8")])
    decision = choose(device, program(tied=True)).ops[0][0]
    assert decision.provider == "plain"
    assert {r.provider: r.reason for r in decision.rejected} == {
        "picky": "scale is 1.0, accepts [2.0]",
        "typed": "tokens is i32, accepts i64",
    }


def test_when_every_provider_refuses_all_reasons_are_given() -> None:
    picky = replace(embedding("picky", ["w8"]), attributes={"scale": (2.0,)})
    typed = replace(embedding("typed", ["w8"]), dtypes={"tokens": ("i64",)})
    device = catalog([picky, typed, linear("l", ["w8"])], [to("w8")])
    with pytest.raises(UnsupportedOperationError, match="every provider") as caught:
        choose(device, program(tied=True))
    assert caught.value.value == (
        "picky: scale is 1.0, accepts [2.0]; typed: tokens is i32, accepts i64"
    )
