"""Small llamas of any shape that exist in memory only, and cores that hold them."""

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import gguf
import numpy as np

from helios.contract.kinds import WeightStorage
from helios.contract.operation import Operation
from helios.contract.prepared import PreparedContract
from helios.ignition.options import PrepareOptions
from helios.ignition.outline import outline
from helios.ignition.sources.facts import Facts
from helios.ignition.sources.source import (
    Dialect,
    License,
    SamplingDefaults,
    SourceTensor,
    TokenizerFile,
)
from helios.ignition.sources.storage import stored_nbytes
from helios.program.ir import Program
from helios.schema import contract_pb2, manifest_pb2


@dataclass(frozen=True)
class Shape:
    """The numbers that make a llama."""

    layers: int = 2
    width: int = 64
    heads: int = 4
    key_heads: int = 2
    inner: int = 96
    vocabulary: int = 100
    context: int = 256
    storage: WeightStorage = WeightStorage.Q8_0
    tied: bool = True


EIGHT_BILLION = Shape(
    layers=32,
    width=4096,
    heads=32,
    key_heads=8,
    inner=14336,
    vocabulary=128256,
    context=131072,
    storage=WeightStorage.Q4_K,
    tied=False,
)


def random_shape(seed: int) -> Shape:
    """A shape that is legal and small, different for every seed."""
    chosen = random.Random(seed)
    key_heads = chosen.choice([1, 2, 3])
    heads = key_heads * chosen.choice([1, 2, 4])
    dim = chosen.choice([16, 32, 64])
    width = -(-heads * dim // 32) * 32
    while width % heads:
        width += 32
    return Shape(
        layers=chosen.randint(1, 4),
        width=width,
        heads=heads,
        key_heads=key_heads,
        inner=32 * chosen.randint(1, 12),
        vocabulary=chosen.randint(40, 3000),
        context=chosen.choice([64, 96, 200, 512, 1000]),
        storage=chosen.choice(
            [WeightStorage.F32, WeightStorage.F16, WeightStorage.Q8_0, WeightStorage.Q4_1]
        ),
        tied=chosen.random() < 0.5,
    )


class ToySource:
    """A checkpoint whose tensors are made when they are read."""

    dialect = Dialect.GGUF
    architecture = "llama"
    name = "Toy"
    path = Path("toy.gguf")
    tokenizer = TokenizerFile(b"{}", None, None, None, None, (), None)
    chat_template = None
    license = License()
    sampling = SamplingDefaults()

    def __init__(self, shape: Shape) -> None:
        head = shape.width // shape.heads
        self.config = Facts(
            {
                "block_count": shape.layers,
                "context_length": shape.context,
                "embedding_length": shape.width,
                "feed_forward_length": shape.inner,
                "attention.head_count": shape.heads,
                "attention.head_count_kv": shape.key_heads,
                "attention.layer_norm_rms_epsilon": 1e-5,
            },
            "llama.",
        )
        keys = shape.key_heads * head
        shapes: dict[str, tuple[int, ...]] = {
            "token_embd.weight": (shape.vocabulary, shape.width),
            "output_norm.weight": (shape.width,),
        }
        if not shape.tied:
            shapes["output.weight"] = (shape.vocabulary, shape.width)
        for layer in range(shape.layers):
            for name, dims in {
                "attn_norm": (shape.width,),
                "attn_q": (shape.width, shape.width),
                "attn_k": (keys, shape.width),
                "attn_v": (keys, shape.width),
                "attn_output": (shape.width, shape.width),
                "ffn_norm": (shape.width,),
                "ffn_gate": (shape.inner, shape.width),
                "ffn_up": (shape.inner, shape.width),
                "ffn_down": (shape.width, shape.inner),
            }.items():
                shapes[f"blk.{layer}.{name}.weight"] = dims
        self.tensors: Mapping[str, SourceTensor] = {
            name: _tensor(name, dims, shape.storage) for name, dims in shapes.items()
        }

    def sha256(self) -> bytes:
        return bytes(32)


def _tensor(name: str, shape: tuple[int, ...], storage: WeightStorage) -> SourceTensor:
    storage = storage if len(shape) > 1 else WeightStorage.F32
    nbytes = stored_nbytes(name, storage, shape)

    def load() -> memoryview:
        values = np.random.default_rng(len(name)).standard_normal(shape).astype(np.float32)
        spread = 0.1 if len(shape) == 1 else shape[-1] ** -0.5
        scaled = values * np.float32(spread) + np.float32(len(shape) == 1)
        stored = gguf.quantize(scaled, gguf.GGMLQuantizationType[storage.name])
        return memoryview(np.ascontiguousarray(stored).tobytes())

    return SourceTensor(name, storage, shape, nbytes, load)


@dataclass(frozen=True)
class _Data:
    data: memoryview


class ToyModel:
    """A prepared toy: contract and programs, and the part of a core that loading needs."""

    copied_nbytes = 0

    def __init__(self, shape: Shape | None = None, **options: object) -> None:
        self.source = ToySource(shape or Shape())
        made = outline(self.source, PrepareOptions(**options))  # type: ignore[arg-type]
        self.prepared: PreparedContract = made.contract
        self.captured: Sequence[Program] = made.programs
        self._outline = made

    @property
    def contract(self) -> contract_pb2.ServingContract:
        return self._outline.messages[0]

    @property
    def manifest(self) -> manifest_pb2.ExecutionManifest:
        return self._outline.messages[1]

    def programs(self) -> Sequence[Program]:
        return self.captured

    def weight(self, name: str) -> _Data:
        return _Data(self._outline.tensors[name].data())

    def program(self, operation: Operation) -> Program:
        """The program of an operation."""
        return next(p for p in self.captured if p.operation is operation)
