"""What native steps need beside operands and results, as demands over an operation's dimensions.

Two kinds: each thread's own memory, of which the largest step's counts, and regions that carry
something from one step to a later one (quantised rows, rotation tables, partial attention). The
figures bound what the executor asks for when a program is loaded, so that it never needs memory
of its own.
"""

from dataclasses import replace

from helios.compile.demand import Demand, Term

_PAGE = 4096  # a thread's memory is rounded up to this
_TILE_TOKENS = 16  # quantised rows are stored in tiles
_QUERIES = 144  # an attention tile has at most so many query rows
_HEAD = 16  # their width is padded to a multiple of it
_KEYS = 64  # positions of a block of keys
_SPAN = 256  # positions of one partial result, at most; a short context has one
_PARTIAL_NBYTES = 8 << 20
_SELECTION_NBYTES = 16 << 10  # buckets of top-k and top-p
_PRODUCT_NBYTES = 32 << 10  # tiles of a matrix product
_TRIAL_TOKENS = 128  # tokens of the largest product that tuning tries
_TRIAL_NBYTES = 1 << 20  # of its result


def scratch(kind: str, threads: int) -> Demand:
    """Memory of all threads while one step of that kind runs."""
    fixed = 0
    terms: tuple[Term, ...]
    if kind in ("linear", "tune_linear"):
        fixed, terms = _PRODUCT_NBYTES, (Term(64, ("K",)),)
    elif kind == "sample":
        fixed, terms = _SELECTION_NBYTES, (Term(16, ("V",)),)
    elif kind == "paged_attention":
        # Queries and two results of each; keys and values of a block; a row of output.
        padded = 4 * (3 * _QUERIES + 2 * _KEYS)
        fixed = 4 * (_QUERIES * (_KEYS + 7) + 16) + 12 * _QUERIES + 256
        terms = (Term(padded * _HEAD, ("D",), _HEAD), Term(4, ("D",)))
    elif kind == "rms_norm":
        terms = (Term(4, ("E",)),)
    else:
        return Demand()
    return Demand(
        fixed=threads * (fixed + _PAGE),
        terms=tuple(replace(term, nbytes=threads * term.nbytes) for term in terms),
    )


def held(kind: str, planes: int) -> Demand:
    """Regions that a kind of step fills for later ones; `planes` are bytes of an activation."""
    if kind == "linear":
        return _quantised(planes, "A", "K")
    if kind == "tune_linear":
        record = 16 + 44 * planes
        tokens = Term(4 * _TRIAL_TOKENS, ("K",))
        if planes:
            tokens = Term(record * _TRIAL_TOKENS, ("K",), 32)
        result = Term(4 * _TRIAL_TOKENS, ("N",), most=_TRIAL_NBYTES)
        return Demand(fixed=128, terms=(tokens, result))
    if kind == "rms_norm":
        return _quantised(planes, "...", "E")
    if kind == "rope":
        return Demand(fixed=4096, terms=(Term(16, ("T", "F")),))
    if kind == "paged_attention":
        quantised = _quantised(planes, "T", "H", "D")
        spans = Term(5, ("T", "H", "M", "L", "D"), _SPAN // 4, most=_PARTIAL_NBYTES)
        return Demand(fixed=4096, terms=(*quantised.terms, spans))
    return Demand()


def _quantised(planes: int, rows: str, *columns: str) -> Demand:
    """Rows as integers with a scale and sums per 32, in whole tiles of rows."""
    record = 16 + 44 * planes
    if not planes:
        return Demand()
    return Demand(
        terms=(
            Term(record, (rows, *columns), 32),
            Term(record * _TILE_TOKENS, columns, 32),
        )
    )
