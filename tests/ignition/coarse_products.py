"""Which products a core's programs call coarse, by the names of their weights."""

from helios.core.reader import Core
from helios.program.ir import Weight


def coarse_products(core: Core) -> set[str]:
    """The weights of coarse products.

    Every program says the same of a weight, and products are tuned among their like.
    """
    weights: dict[str, bool] = {}
    classes: dict[str, bool] = {}
    for program in core.programs():
        for op in program.ops:
            if op.kind not in ("linear", "tune_linear"):
                continue
            coarse, choices = bool(op.attributes["coarse"]), op.operands[-1]
            assert choices is not None
            assert classes.setdefault(choices.name, coarse) == coarse
            weight = next(o for o in op.operands if isinstance(o, Weight))
            assert weights.setdefault(weight.name, coarse) == coarse
    return {name for name, coarse in weights.items() if coarse}
