"""What an approximate materializer did to a tensor, and whether it was allowed to."""

from helios.compile.plan import WeightPlan
from helios.errors import AccuracyError
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class TensorError:
    """How far a materialised tensor is from the stored one.

    `relative_l2` is the norm of the difference over the norm of the stored values, taken over
    the finite ones; `non_finite` counts values that are not finite before or after.
    """

    relative_l2: float
    non_finite: int


def require_accuracy(weight: WeightPlan, error: TensorError) -> None:
    """Raise `AccuracyError` where an approximation is worse than its bound."""
    if error.non_finite:
        raise AccuracyError(
            "values that are not finite can't be approximated",
            field=f"weights.{weight.name}",
            value=error.non_finite,
            remedy=f"load without --materialize {weight.materializer}",
        )
    if weight.bound is not None and not error.relative_l2 <= weight.bound:
        raise AccuracyError(
            f"{weight.materializer} makes a larger relative L2 error than was allowed",
            field=f"weights.{weight.name}",
            value=error.relative_l2,
            remedy=f"allow more than {weight.bound:g}, or load this weight exactly",
        )
