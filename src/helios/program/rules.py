"""What an operation asks beyond unifying shapes: one small rule each, in a table by kind.

A rule sees operands and attributes that already unify, and raises `ProgramError` naming the
operand or attribute, what was found and what would do.
"""

from collections.abc import Callable, Mapping
from typing import NoReturn

from helios.errors import ProgramError
from helios.program.ir import AttributeValue, Extent, ExtentKind, Ref
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Call:
    """One operation with its operands by name and its attributes, defaults filled in."""

    kind: str
    operands: Mapping[str, Ref]
    attributes: Mapping[str, AttributeValue]
    extents: Mapping[str, Extent]

    def integer(self, name: str) -> int:
        """An attribute that the table declares an integer."""
        value = self.attributes[name]
        assert isinstance(value, int)
        return value

    def real(self, name: str) -> float:
        """An attribute that the table declares a float."""
        value = self.attributes[name]
        assert isinstance(value, float)
        return value

    def constant(self, operand: str, axis: int) -> int:
        """A dimension that must not be symbolic."""
        dim = self.operands[operand].type.shape[axis]
        if isinstance(dim, str):
            self.refuse(operand, f"dimension {axis} must be a constant", dim, "fix its length")
        return dim

    def refuse(self, name: str, message: str, value: object, remedy: str) -> NoReturn:
        """Raise a `ProgramError` about an operand or attribute."""
        raise ProgramError(message, field=f"{self.kind}.{name}", value=value, remedy=remedy)


Rule = Callable[[Call], None]


def check_rules(call: Call) -> None:
    """Raise `ProgramError` unless every rule of the operation's kind holds."""
    for rule in RULES.get(call.kind, ()):
        rule(call)


# ---- rules that several kinds share --------------------------------------------------------


def positive_integer(name: str) -> Rule:
    """The attribute is at least 1."""

    def rule(call: Call) -> None:
        if call.integer(name) < 1:
            call.refuse(name, "must be positive", call.integer(name), "give at least 1")

    return rule


def not_negative(name: str) -> Rule:
    """The attribute, an integer or a float, is at least 0."""

    def rule(call: Call) -> None:
        value = call.attributes[name]
        if isinstance(value, int | float) and value < 0:
            call.refuse(name, "must not be negative", value, "give 0 or more")

    return rule


def positive_real(name: str) -> Rule:
    """The attribute is above 0."""

    def rule(call: Call) -> None:
        if call.real(name) <= 0:
            call.refuse(name, "must be positive", call.real(name), "give more than 0")

    return rule


def same_dtype(name: str, other: str) -> Rule:
    """Two operands whose element types the table leaves open have the same one."""

    def rule(call: Call) -> None:
        dtype, expected = call.operands[name].type.dtype, call.operands[other].type.dtype
        if dtype is not expected:
            call.refuse(name, f"must have the element type of {other}", dtype.text, expected.text)

    return rule


# ---- rules of one kind ---------------------------------------------------------------------


def tokens_is_dynamic(call: Call) -> None:
    """The packed tokens are counted by a dynamic extent."""
    name = call.attributes["tokens"]
    extent = call.extents.get(str(name))
    if extent is None or extent.kind is not ExtentKind.DYNAMIC:
        call.refuse("tokens", "must name a dynamic extent", name, "declare the extent")


def rotation_fits_head(call: Call) -> None:
    """A head has the 2F elements that F frequencies rotate."""
    rotated, width = 2 * call.constant("frequencies", 0), call.constant("x", 2)
    if rotated > width:
        call.refuse("frequencies", f"rotate {rotated} elements", width, "use fewer frequencies")


def heads_fit_width(call: Call) -> None:
    """The selected columns lie within x."""
    end = call.integer("offset") + call.integer("heads") * call.integer("dim")
    if end > call.constant("x", 1):
        call.refuse("x", f"has no column {end - 1}", call.constant("x", 1), "select fewer heads")


def width_is_heads(call: Call) -> None:
    """The merged width is that of all heads."""
    width = call.constant("x", 1) * call.constant("x", 2)
    if call.integer("width") != width:
        call.refuse("width", "must be heads times head size", call.integer("width"), f"use {width}")


def heads_divide(call: Call) -> None:
    """Query heads share key heads evenly."""
    heads, groups = call.constant("q", 1), call.constant("keys", 2)
    if heads % groups:
        call.refuse("q", f"heads must be a multiple of the {groups} key heads", heads, "regroup")


def words_cover_vocabulary(call: Call) -> None:
    """A mask row has one bit per token and no spare word."""
    words = -(-call.constant("logits", 1) // 32)
    if call.integer("words") != words:
        call.refuse("words", "must be one per 32 tokens", call.integer("words"), f"use {words}")
    if call.constant("mask", 1) != words:
        call.refuse("mask", "must be `words` wide", call.constant("mask", 1), f"use {words}")


def maximum_fits_vocabulary(call: Call) -> None:
    """No more alternatives than tokens."""
    if call.integer("maximum") > call.constant("logits", 1):
        call.refuse(
            "maximum",
            "exceeds the vocabulary",
            call.integer("maximum"),
            f"at most {call.constant('logits', 1)}",
        )


RULES: Mapping[str, tuple[Rule, ...]] = {
    "token_rows": (tokens_is_dynamic,),
    "rms_norm": (positive_real("epsilon"),),
    "rope": (positive_real("magnitude"), rotation_fits_head),
    "split_heads": (
        positive_integer("heads"),
        positive_integer("dim"),
        not_negative("offset"),
        heads_fit_width,
    ),
    "paged_attention": (
        positive_real("scale"),
        not_negative("window"),
        not_negative("softcap"),
        heads_divide,
    ),
    "merge_heads": (width_is_heads,),
    "softcap": (positive_real("cap"),),
    "mask_logits": (words_cover_vocabulary,),
    "top_log_probabilities": (positive_integer("maximum"), maximum_fits_vocabulary),
    "state_write": (same_dtype("value", "state"),),
    "current_page": (positive_integer("page_tokens"),),
    "page_save": (same_dtype("continuation", "plane"),),
    "page_load": (same_dtype("continuation", "plane"),),
    "store": (same_dtype("value", "record"),),
}
