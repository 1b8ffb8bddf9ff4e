"""The capacities that programs are captured at."""

from helios.ignition.recipes.recipe import LayerHistory
from helios.program.ir import DType
from helios.records import dataclass

EOS_LIMIT = 16  # end tokens a request may name
BIAS_LIMIT = 256  # biased tokens a request may name
TOP_LIMIT = 20  # alternatives reported with a token


@dataclass(frozen=True, slots=True)
class Geometry:
    """Capacities of all programs of one model.

    `concurrency` is the captured number of request slots and the row capacity of every program;
    `prefill_tokens` and `scored_tokens` bound the packed prompt tokens of one submission.
    """

    vocabulary: int
    context: int
    page_tokens: int
    concurrency: int
    prefill_tokens: int
    scored_tokens: int
    cache_dtype: DType
    histories: tuple[LayerHistory, ...]

    @property
    def table_pages(self) -> int:
        """Page-table entries of one slot: pages that a full context takes."""
        return -(-self.context // self.page_tokens)

    @property
    def mask_words(self) -> int:
        """32-bit words of one row of the grammar mask."""
        return -(-self.vocabulary // 32)

    def record_bytes(self, history: LayerHistory) -> int:
        """Bytes of one token in one plane of that history."""
        return history.heads * history.dim * self.cache_dtype.nbytes
