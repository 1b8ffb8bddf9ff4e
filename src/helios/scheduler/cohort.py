"""Program choice: which prepared variant a cohort of lanes runs in."""

from collections.abc import Iterable

from helios.contract.operation import Operation
from helios.contract.submission import Variant
from helios.errors import ConfigurationError

GENERATING = (Operation.INITIALIZE, Operation.PREFILL, Operation.DECODE)


class Programs:
    """The prepared variants of each operation, the cheapest first."""

    def __init__(self, variants: Iterable[Variant]) -> None:
        self._variants: dict[Operation, list[Variant]] = {}
        for variant in sorted(variants, key=lambda v: (v.tokens, v.rows)):
            self._variants.setdefault(variant.operation, []).append(variant)
        for operation in GENERATING:
            if operation not in self._variants:
                raise ConfigurationError(
                    f"nothing can be generated without {operation.name}",
                    field="variants",
                    value=[o.name for o in self._variants],
                    remedy="prepare the core with this operation",
                )

    def has(self, operation: Operation) -> bool:
        """Whether any variant performs the operation."""
        return operation in self._variants

    def widest(self, operation: Operation) -> Variant:
        """The variant with most rows."""
        return max(self._variants[operation], key=lambda v: v.rows)

    def roomiest(self, operation: Operation, rows: int) -> Variant:
        """Of the variants with that many rows the one with most tokens, else the widest."""
        wide = [v for v in self._variants[operation] if v.rows >= rows]
        return max(wide, key=lambda v: v.tokens) if wide else self.widest(operation)

    def fitting(self, operation: Operation, rows: int, tokens: int) -> Variant:
        """The cheapest variant that holds a cohort, which one of them does."""
        for variant in self._variants[operation]:
            if variant.rows >= rows and variant.tokens >= tokens:
                return variant
        raise ConfigurationError(
            "no variant holds the cohort",
            field=operation.name,
            value=f"{rows} rows, {tokens} tokens",
            remedy="prepare a larger variant",
        )
