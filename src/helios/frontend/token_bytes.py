"""How a tokenizer's decoder spells bytes: what its tokens mean one at a time.

Two families are in use. Byte-level BPE writes each byte as one printable character (the table of
GPT-2's encoder). SentencePiece-like vocabularies write text as it is, a space as U+2581, and
bytes that are no text of their own as `<0x0A>`.
"""

import re
from collections.abc import Callable
from typing import Any

from helios.errors import ContractError
from helios.records import dataclass

_BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")


@dataclass(frozen=True, slots=True)
class TokenSpelling:
    """How tokens become bytes: `bytes_of` for the vocabulary, `added_bytes` for added tokens.

    `leading_strip` says that one space at the start of a text belongs to the tokenizer.
    """

    bytes_of: Callable[[str], bytes]
    added_bytes: Callable[[str], bytes]
    leading_strip: bool = False


def byte_level_characters() -> dict[str, int]:
    """The byte that each character of byte-level BPE stands for.

    Printable Latin-1 bytes stand for themselves; the others follow from U+0100 on, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    others = [byte for byte in range(256) if byte not in set(printable)]
    table = {chr(byte): byte for byte in printable}
    table.update({chr(0x100 + number): byte for number, byte in enumerate(others)})
    return table


def read_spelling(decoder: dict[str, Any] | None) -> TokenSpelling:
    """The spelling that a `decoder` entry of tokenizer.json describes; refuses other kinds."""
    steps = _steps(decoder)
    kinds = [step.get("type") for step in steps]
    if "ByteLevel" in kinds:
        return TokenSpelling(_byte_level, str.encode)
    return _sentence_spelling(steps)


def _steps(decoder: dict[str, Any] | None) -> list[dict[str, Any]]:
    if decoder is None:
        raise _unsupported(None)
    if decoder.get("type") == "Sequence":
        return list(decoder.get("decoders", []))
    return [decoder]


_BYTE_LEVEL = byte_level_characters()


def _byte_level(token: str) -> bytes:
    try:
        return bytes([_BYTE_LEVEL[character] for character in token])
    except KeyError:
        return token.encode()


def _sentence_spelling(steps: list[dict[str, Any]]) -> TokenSpelling:
    replacements: list[tuple[str, str]] = []
    byte_fallback = leading_strip = False
    for step in steps:
        match step:
            case {"type": "Replace", "pattern": {"String": str(pattern)}, "content": str(content)}:
                replacements.append((pattern, content))
            case {"type": "ByteFallback"}:
                byte_fallback = True
            case {"type": "Fuse"}:
                pass
            case {"type": "Strip", "content": " ", "start": int(start), "stop": 0} if start < 2:
                leading_strip = leading_strip or start == 1
            case {"type": "Metaspace", "replacement": str(replacement)}:
                replacements.append((replacement, " "))
                scheme = step.get("prepend_scheme", "always")
                leading_strip = scheme != "never" and step.get("add_prefix_space", True)
            case _:
                raise _unsupported(step)

    def written(token: str) -> bytes:
        for pattern, content in replacements:
            token = token.replace(pattern, content)
        return token.encode()

    def bytes_of(token: str) -> bytes:
        if byte_fallback and (match := _BYTE_TOKEN.fullmatch(token)):
            return bytes([int(match[1], 16)])
        return written(token)

    return TokenSpelling(bytes_of, written, leading_strip)


def _unsupported(step: object) -> ContractError:
    return ContractError(
        "this way of decoding tokens is not supported",
        field="frontend.tokenizer_resource.decoder",
        value=step,
        remedy="use a byte-level or SentencePiece-like tokenizer",
    )
