"""What the reference device can run: one provider per operation, and its temporaries.

NumPy allocates while it computes. The demands here bound that: they count the arrays that an
operation holds at once, its fresh result included.
"""

from collections.abc import Callable, Mapping
from typing import Any

from helios.compile.capabilities import CapabilityCatalog, DeviceDescriptor, ProviderSpec
from helios.compile.demand import Demand, Term
from helios.program.ops import OPS, WEIGHT
from helios.runtime.reference import network, quantised, sampling, state
from helios.runtime.reference.materialize import F32, W8, Materialize

DESCRIPTOR = DeviceDescriptor(kind="reference", isa="numpy", numerics="f32")

_MODULES = (network, sampling, state)


def _terms(*terms: tuple[int, tuple[str, ...]]) -> Demand:
    return Demand(terms=tuple(Term(nbytes, dims) for nbytes, dims in terms))


# Bytes per element of what each operation holds beside operands, by names of its op-table row.
_SCRATCH: Mapping[str, Demand] = {
    "token_rows": _terms((24, ("tokens",))),
    "resolve_tokens": _terms((16, ("T",))),
    "last_tokens": _terms((16, ("B",)), (16, ("S",))),
    "gather": _terms((8, ("S", "..."))),
    "add_integers": _terms((4, ("A",))),
    "embedding": _terms((8, ("T", "E"))),
    "linear": _terms((8, ("A", "N")), (4 * network.TILE_ROWS, ("K",)), (128, ("N",))),
    "rms_norm": _terms(
        (16, ("...", "E")),
    ),
    "rope": _terms((20, ("T", "H", "D")), (24, ("T", "F"))),
    "cache_write": _terms((12, ("T", "G", "D"))),
    "paged_attention": _terms(
        (8, ("T", "H", "D")), (32, ("context", "G", "D")), (24, ("context", "H"))
    ),
    "gated_activation": _terms((72, ("T", "F"))),
    "add": _terms((8, ("...",))),
    "scale": _terms((8, ("...",))),
    "softcap": _terms((16, ("...",))),
    "process_logits": _terms((4, ("S", "V")), (32, ("V",))),
    "mask_logits": _terms((4, ("S", "V")), (16, ("V",))),
    "sample": _terms((64, ("V",))),
    "log_probability": _terms((32, ("V",)), (8, ("A",))),
    "top_log_probabilities": _terms((48, ("V",)), (16, ("A", "maximum"))),
    "state_read": _terms((8, ("B", "..."))),
    "ones": _terms((4, ("A",))),
    "current_page": _terms((32, ("B",))),
    "page_save": _terms((4, ("B", "L", "G", "D"))),
    "page_load": _terms((4, ("B", "L", "G", "D"))),
}
_QUANTISED: Mapping[str, Demand] = {
    "linear": _terms(
        (8, ("A", "N")),
        (4 * network.TILE_ROWS, ("K",)),
        (24 * quantised.BLOCK_ROWS, ("K",)),
    ),
    "embedding": _terms((32, ("T", "E"))),
    "tune_linear": Demand(),
}


def functions() -> Mapping[str, Callable[..., Any]]:
    """The implementation of every provider by name."""
    found = {
        f"reference.{kind}": next(getattr(m, kind) for m in _MODULES if hasattr(m, kind))
        for kind in OPS
    }
    found |= {f"reference.{kind}.w8": getattr(quantised, kind) for kind in _QUANTISED}
    return found


def catalog(materializers: Mapping[str, Materialize]) -> CapabilityCatalog:
    """The catalog of the reference device."""
    return CapabilityCatalog(
        device=DESCRIPTOR,
        layouts=(F32, W8),
        providers=(
            *(_provider(f"reference.{kind}", kind, F32.name, _SCRATCH.get(kind)) for kind in OPS),
            *(
                _provider(f"reference.{kind}.w8", kind, W8.name, scratch)
                for kind, scratch in _QUANTISED.items()
            ),
        ),
        materializers=tuple(m.spec for m in materializers.values()),
    )


def _provider(name: str, kind: str, layout: str, scratch: Demand | None) -> ProviderSpec:
    """Only matrices are ever quantised; biases stay float32."""
    weights = [o for o in OPS[kind].operands if WEIGHT in o.places]
    return ProviderSpec(
        name=name,
        operation=kind,
        version=OPS[kind].version,
        weight_layouts={o.name: (layout if len(o.shape) > 1 else F32.name,) for o in weights},
        attributes={},
        scratch=scratch or Demand(),
    )
