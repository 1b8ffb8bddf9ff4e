"""Numerical profiles: which products see their input coarsely, and in which forms it is left."""

import numpy as np
import pytest
from native_programs import Bench
from native_tools import ISAS, Array, Packed, stored

from helios.errors import ConfigurationError
from helios.program.ir import BufferKind, Ref
from helios.runtime.cpu.numerics import PROFILES, Numerics, profile
from helios.runtime.cpu.regions import quantised_regions
from helios.runtime.cpu.schedule import Gated, Node, Quantise, Round, schedule

TOKENS = 5
WIDTH, INNER = 64, 96


def block(bench: Bench) -> None:
    """A norm that a fine product and a coarse gated pair read, a coarse product of what comes of
    those, and a fine one of the same."""
    rng = np.random.default_rng(7)
    builder = bench.builder

    def matrix(name: str, rows: int, columns: int) -> Ref:
        raw = stored("Q4_1", rows, columns, rng)
        return bench.matrix(name, Packed(bench.executor, "Q4_1", raw, columns))

    x = rng.standard_normal((TOKENS, WIDTH), dtype=np.float32)
    given = bench.buffer("x", x, BufferKind.TRANSPORT, "T")
    scale = bench.vector("norm", np.ones(WIDTH, dtype=np.float32))
    normed = builder.value("rms_norm", given, scale, epsilon=1e-5, name="normed")

    def told(name: str, product: Ref) -> None:
        kept = np.zeros((TOKENS, product.type.shape[-1]), dtype=np.float32)
        builder.op("store", product, bench.buffer(name, kept, BufferKind.COMPLETION, "T"))

    told("fine", builder.value("linear", normed, matrix("query", 48, WIDTH)))
    gate = builder.value("linear", normed, matrix("gate", INNER, WIDTH), coarse=True)
    up = builder.value("linear", normed, matrix("up", INNER, WIDTH), coarse=True)
    active = builder.value("gated_activation", gate, up, function="silu", name="active")
    told("coarse_down", builder.value("linear", active, matrix("down", 40, INNER), coarse=True))
    told("fine_down", builder.value("linear", active, matrix("other", 40, INNER)))


def results(isa: str, numerics: Numerics, *, fuse: bool) -> dict[str, Array]:
    bench = Bench(isa, 2, numerics)
    block(bench)
    bench.run({"T": TOKENS}, fuse=fuse)
    return bench.arrays


@pytest.mark.parametrize("isa", ISAS)
def test_each_product_has_the_numbers_of_its_own_form(isa: str) -> None:
    uniform = {planes: results(isa, Numerics(planes, planes), fuse=True) for planes in (1, 2)}
    mixed = results(isa, PROFILES["mixed"], fuse=True)
    plain = results(isa, PROFILES["mixed"], fuse=False)
    np.testing.assert_array_equal(mixed["fine"], uniform[2]["fine"])
    for name in ("fine", "coarse_down", "fine_down"):
        np.testing.assert_array_equal(mixed[name], plain[name])
        assert not np.array_equal(uniform[1][name], uniform[2][name])
    # What both read comes of coarse products; how finely they see that is their own affair.
    np.testing.assert_array_equal(mixed["coarse_down"], uniform[1]["coarse_down"])
    assert not np.array_equal(mixed["fine_down"], uniform[1]["fine_down"])


def test_a_producer_leaves_the_finer_form_and_the_other_is_made() -> None:
    bench = Bench(ISAS[0], 1, PROFILES["mixed"])
    block(bench)
    layouts = {name: weight.layout for name, weight in bench.weights.items()}
    nodes = schedule(bench.builder.build(), layouts, fuse=True, numerics=PROFILES["mixed"]).nodes
    norm = next(n for n in nodes if isinstance(n, Node) and n.op.kind == "rms_norm")
    gated = next(n for n in nodes if isinstance(n, Gated))
    assert (norm.leaves, norm.plain) == (2, True)
    assert (gated.planes, gated.leaves, gated.plain) == (1, 2, True)
    assert sorted((n.x.name, n.planes) for n in nodes if isinstance(n, Quantise)) == [
        ("active", 1),
        ("normed", 1),
    ]
    assert sorted(n.planes for n in nodes if isinstance(n, Round)) == [1, 2, 2]
    regions = quantised_regions(nodes)
    assert len({regions["active", 1], regions["active", 2]}) == 2


def test_profiles_go_from_the_fastest_to_the_most_exact() -> None:
    bytes_of = [(n.coarse or 4, n.fine or 4) for n in map(profile, PROFILES)]
    assert bytes_of == sorted(bytes_of)
    with pytest.raises(ConfigurationError, match="a8, mixed, a16, f32"):
        profile("a4")
