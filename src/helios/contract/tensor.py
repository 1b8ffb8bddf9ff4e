"""Element types, storage kinds and tensor types: words that contract and programs share."""

from collections.abc import Mapping
from enum import IntEnum

from helios.records import dataclass
from helios.schema import program_pb2 as pb

Dim = int | str
Shape = tuple[Dim, ...]


class DType(IntEnum):
    """Element types, numbered as on the wire."""

    F32 = pb.DTYPE_F32
    F16 = pb.DTYPE_F16
    BF16 = pb.DTYPE_BF16
    I32 = pb.DTYPE_I32
    U32 = pb.DTYPE_U32
    U64 = pb.DTYPE_U64
    U8 = pb.DTYPE_U8
    I64 = pb.DTYPE_I64

    __hash__ = int.__hash__  # that of an Enum is a function of Python's, and keys hold many

    @property
    def nbytes(self) -> int:
        """Bytes of one element."""
        return _NBYTES[self]

    @property
    def text(self) -> str:
        """The name in the text form: `f32`, `i32`, …"""
        return self.name.lower()


_NBYTES = {
    DType.F32: 4,
    DType.F16: 2,
    DType.BF16: 2,
    DType.I32: 4,
    DType.U32: 4,
    DType.U64: 8,
    DType.U8: 1,
    DType.I64: 8,
}


class BufferKind(IntEnum):
    """What a buffer is for, numbered as on the wire."""

    TRANSPORT = pb.BUFFER_KIND_TRANSPORT
    COMPLETION = pb.BUFFER_KIND_COMPLETION
    STATE = pb.BUFFER_KIND_STATE
    CACHE = pb.BUFFER_KIND_CACHE
    TUNED = pb.BUFFER_KIND_TUNED


@dataclass(frozen=True, slots=True)
class TensorType:
    """An element type and a shape whose dimensions are integers or extent names."""

    dtype: DType
    shape: Shape

    def __str__(self) -> str:
        return f"{self.dtype.text}[{', '.join(str(d) for d in self.shape)}]"

    def resolve(self, lengths: Mapping[str, int]) -> tuple[int, ...]:
        """The concrete shape where every extent has the length given for it."""
        return tuple(d if isinstance(d, int) else lengths[d] for d in self.shape)

    def nbytes(self, lengths: Mapping[str, int]) -> int:
        """Bytes of a contiguous tensor of this type at the given extent lengths."""
        count = self.dtype.nbytes
        for dim in self.shape:
            count *= dim if isinstance(dim, int) else lengths[dim]
        return count
