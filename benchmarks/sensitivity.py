"""Which matrix products bear inputs in 8 bits: `python -m benchmarks.sensitivity`.

`transformers` runs a checkpoint in float32, and again with the inputs of one group of matrices
rounded to 8 bits a block of 32, as the runtime's coarse products see them. It prints how far the
distributions of next tokens move. Recipes call coarse what moves them little
(docs/architecture.md).
"""

import argparse
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from benchmarks.corpus import corpus_text, windows
from benchmarks.divergence import Divergence, Floats, Summary
from benchmarks.logits import Reference
from benchmarks.places import model_path

GROUPS = {
    "query, key, value": r"\.[qkv]_proj$",
    "attention's output": r"\.o_proj$",
    "gate and up": r"\.(gate|up)_proj$",
    "down": r"\.down_proj$",
    "head": r"^lm_head$",
}
BLOCK, LARGEST = 32, 127

Chosen = Callable[[str], bool]


class Rounding(Reference):
    """A model whose matrices, where they are chosen by name, see their input in 8 bits."""

    def __init__(self, path: Path, threads: int) -> None:
        super().__init__(path, threads)
        self._chosen: Chosen = lambda _: False
        self.matrices: list[str] = []
        for name, module in self._model.named_modules():
            if isinstance(module, self._torch.nn.Linear):
                self.matrices.append(name)
                module.register_forward_pre_hook(self._hook(name))

    def rounded(self, tokens: Sequence[int], chosen: Chosen) -> Floats:
        """Logits [tokens, vocabulary] with the chosen inputs rounded."""
        self._chosen = chosen
        try:
            return self(tokens)
        finally:
            self._chosen = lambda _: False

    def _hook(self, name: str) -> Callable[[Any, tuple[Any, ...]], tuple[Any, ...] | None]:
        def hook(_module: Any, inputs: tuple[Any, ...]) -> tuple[Any, ...] | None:
            return (self._in_8_bits(inputs[0]),) if self._chosen(name) else None

        return hook

    def _in_8_bits(self, x: Any) -> Any:
        blocks = x.reshape(*x.shape[:-1], -1, BLOCK)
        step = blocks.abs().amax(-1, keepdim=True) / LARGEST
        step = self._torch.where(step > 0, step, self._torch.ones_like(step))
        return ((blocks / step).round() * step).reshape(x.shape)


def measured(
    model: Rounding, parts: Sequence[Sequence[int]], cases: Mapping[str, Chosen], console: Console
) -> dict[str, Summary]:
    """The divergence of every case from the model as it is, over all windows."""
    found = {name: Divergence() for name in cases}
    for number, part in enumerate(parts, 1):
        expected = model(part)
        for name, chosen in cases.items():
            found[name].add(expected, model.rounded(part, chosen), part[1:])
        console.print(f"window {number} of {len(parts)}", end="\r")
    return {name: divergence.summary() for name, divergence in found.items()}


def cases_of(matrices: list[str], by_layer: bool) -> Iterator[tuple[str, Chosen]]:
    """Every group of matrices, and with `by_layer` each group in each layer alone."""
    for title, pattern in GROUPS.items():
        names = {name for name in matrices if re.search(pattern, name)}
        yield title, names.__contains__
        layers = sorted({int(m[1]) for n in names if (m := re.search(r"layers\.(\d+)\.", n))})
        for layer in layers if by_layer else ():
            mine = {name for name in names if f"layers.{layer}." in name}
            yield f"{title}, layer {layer}", mine.__contains__
    yield "all", lambda _: True


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.sensitivity", description=__doc__)
    parser.add_argument("--file", type=Path, default=None, help="a GGUF file; default: SmolLM2")
    parser.add_argument("--tokens", type=int, default=4096)
    parser.add_argument("--window", type=int, default=512)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--by-layer", action="store_true", help="every layer alone, too")
    options = parser.parse_args()
    path: Path = options.file or model_path()
    from transformers import AutoTokenizer

    words = AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name)
    tokens = words(corpus_text(), add_special_tokens=False)["input_ids"]
    model = Rounding(path, options.threads)
    console = Console(highlight=False)
    cases = dict(cases_of(model.matrices, options.by_layer))
    parts = windows(tokens, options.tokens, options.window)
    found = measured(model, parts, cases, console)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("", "mean KL", "99%", "top-1"):
        table.add_column(name, justify="right" if name else "left", no_wrap=True)
    for name, s in found.items():
        table.add_row(name, f"{s.mean:.1e}", f"{s.p99:.1e}", f"{s.top1:.2%}")
    console.print(f"{path.name}: 8-bit inputs of")
    console.print(table)


if __name__ == "__main__":
    main()
