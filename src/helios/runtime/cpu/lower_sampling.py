"""Lowering everything from logits to tokens."""

from helios.runtime.cpu.lowering import Lowering, operands
from helios.runtime.cpu.schedule import Node


def process_logits(low: Lowering, node: Node) -> None:
    """process_logits."""
    found = operands(node, 12)
    low.named(
        node,
        "logits",
        "slots",
        "prompt_histogram",
        "output_histogram",
        "repetition",
        "presence",
        "frequency",
        "bias_tokens",
        "bias_values",
        "minimum_output",
        "output_count",
        "eos_tokens",
        vocabulary=low.inner(found[0]),
        biases=low.inner(found[7]),
        eos_count=low.inner(found[11]),
        state_rows=low.rows(found[2]),
    )


def mask_logits(low: Lowering, node: Node) -> None:
    """mask_logits."""
    found = operands(node, 4)
    names = ("logits", "sampled_rows", "mask", "active")
    low.named(node, *names, vocabulary=low.inner(found[0]), words=low.inner(found[2]))


def sample(low: Lowering, node: Node) -> None:
    """sample."""
    names = ("logits", "temperature", "top_k", "top_p", "min_p", "seed", "position")
    low.named(node, *names, vocabulary=low.inner(operands(node, 7)[0]))


def log_probability(low: Lowering, node: Node) -> None:
    """log_probability."""
    low.named(node, "logits", "tokens", vocabulary=low.inner(operands(node, 2)[0]))


def top_log_probabilities(low: Lowering, node: Node) -> None:
    """top_log_probabilities."""
    logits, count = operands(node, 2)
    tokens, values = node.op.results
    low.emit(
        "top_log_probabilities",
        count=low.count(logits),
        logits=low.at(logits),
        wanted=low.at(count),
        tokens=low.at(tokens),
        values=low.at(values),
        vocabulary=low.inner(logits),
        maximum=node.op.attributes["maximum"],
    )
