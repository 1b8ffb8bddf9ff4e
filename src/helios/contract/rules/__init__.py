"""The rules of a contract, one small named check each; the first that fails is reported.

Order matters where a rule relies on an earlier one: destinations exist before their types are
read, pages have a size before contexts are divided into them.
"""

from collections.abc import Callable

from helios.contract.prepared import PreparedContract
from helios.contract.rules import (
    bindings,
    cache,
    completion,
    extents,
    frontend,
    resources,
    serving,
    state,
    tuning,
    vision,
)

Rule = Callable[[PreparedContract], None]

RULES: tuple[Rule, ...] = (
    cache.page_is_sized,
    *serving.RULES,
    *bindings.RULES,
    *extents.RULES,
    *state.RULES,
    *completion.RULES,
    *tuning.RULES,
    *cache.RULES,
    *frontend.RULES,
    *vision.RULES,
    *resources.RULES,
)
