"""Making the `tokenizer.json` of a core from what a checkpoint says of its tokenizer."""

import json
from collections.abc import Sequence
from dataclasses import replace

import tokenizers

from helios.errors import SourceError
from helios.ignition.pretokenizers import SPLITTINGS, Splitting
from helios.ignition.sentencepiece import (
    BYTE,
    CONTROL,
    SPACE,
    UNKNOWN,
    USER_DEFINED,
    ranked_merges,
)
from helios.ignition.sources.source import GgmlVocabulary, TokenizerFile
from helios.records import dataclass

Json = dict[str, object]


@dataclass(frozen=True, slots=True)
class TokenizerAsset:
    """A tokenizer ready to be put into a core.

    `special` holds the spelling of the special tokens a chat template may name (`bos_token`, …);
    `eos` the ids that end generation; `add_bos` whether text starts with `bos_token`.
    """

    json: bytes
    size: int
    eos: tuple[int, ...]
    special: dict[str, str]
    add_bos: bool


def make_tokenizer(facts: GgmlVocabulary | TokenizerFile) -> TokenizerAsset:
    """Build or adopt a tokenizer; raises `SourceError` for one that can't be used."""
    return _from_vocabulary(facts) if isinstance(facts, GgmlVocabulary) else _from_file(facts)


def _from_file(facts: TokenizerFile) -> TokenizerAsset:
    tokenizer = _load(facts.json, "tokenizer.json")
    spellings = {
        "bos_token": facts.bos,
        "eos_token": facts.eos,
        "pad_token": facts.padding,
        "unk_token": facts.unknown,
    }
    special = {name: text for name, text in spellings.items() if text is not None}
    ends = facts.eos_ids
    if not ends and facts.eos is not None:
        end = tokenizer.token_to_id(facts.eos)
        ends = () if end is None else (end,)
    # What the tokenizer itself puts before a text decides, unless the settings say otherwise.
    first = tokenizer.encode("", add_special_tokens=True).ids[:1]
    adds = bool(first) and tokenizer.id_to_token(first[0]) == facts.bos
    return TokenizerAsset(
        json=facts.json,
        size=tokenizer.get_vocab_size(with_added_tokens=True),
        eos=ends,
        special=special,
        add_bos=facts.bos is not None and (adds if facts.add_bos is None else facts.add_bos),
    )


def _from_vocabulary(facts: GgmlVocabulary) -> TokenizerAsset:
    if facts.model == "gpt2":
        layout, default_bos = _byte_level(facts)
    elif facts.model == "llama":
        layout, default_bos = _sentence_pieces(facts), True
    else:
        raise SourceError(
            "unsupported tokenizer model",
            field="tokenizer.ggml.model",
            value=facts.model,
            remedy="supported: gpt2, llama",
        )
    content = json.dumps(layout, ensure_ascii=False, separators=(",", ":")).encode()
    tokenizer = _load(content, "tokenizer.ggml")
    ids = {
        "bos_token": facts.bos,
        "eos_token": facts.eos[0] if facts.eos else None,
        "pad_token": facts.padding,
        "unk_token": facts.unknown,
    }
    return TokenizerAsset(
        json=content,
        size=tokenizer.get_vocab_size(with_added_tokens=True),
        eos=facts.eos,
        special={name: facts.tokens[i] for name, i in ids.items() if i is not None},
        add_bos=facts.bos is not None and (default_bos if facts.add_bos is None else facts.add_bos),
    )


def _byte_level(facts: GgmlVocabulary) -> tuple[Json, bool]:
    """Byte-level BPE: the file lists its merges; splitting goes by the name it states."""
    if facts.pre not in SPLITTINGS:
        raise SourceError(
            "unknown pre-tokenizer",
            field="tokenizer.ggml.pre",
            value=facts.pre,
            remedy=f"known: {', '.join(sorted(SPLITTINGS))}",
        )
    splitting = SPLITTINGS[facts.pre]
    layout = _layout(
        facts,
        False,
        normalizer={"type": "NFC"} if splitting.composed else None,
        pre_tokenizer=_pre_tokenizer(splitting),
        decoder=_BYTE_LEVEL,
        model=_bpe(facts, _listed_merges(facts), ignore_merges=splitting.whole_words),
    )
    return layout, splitting.add_bos


_BYTE_LEVEL: Json = {
    "type": "ByteLevel",
    "add_prefix_space": False,
    "trim_offsets": True,
    "use_regex": False,
}


def _pre_tokenizer(splitting: Splitting) -> Json:
    steps: list[Json] = [
        {
            "type": "Split",
            "pattern": {"Regex": expression},
            "behavior": "Isolated",
            "invert": False,
        }
        for expression in splitting.expressions
    ]
    return {"type": "Sequence", "pretokenizers": [*steps, _BYTE_LEVEL]}


def _listed_merges(facts: GgmlVocabulary) -> list[tuple[str, str]]:
    pairs = [tuple(merge.split(" ")) for merge in facts.merges]
    wrong = next((pair for pair in pairs if len(pair) != 2), None)
    if not pairs or wrong is not None:
        raise SourceError(
            "every merge must be two entries with a space between",
            field="tokenizer.ggml.merges",
            value=wrong,
            remedy="convert the model again",
        )
    return [(pair[0], pair[1]) for pair in pairs]


def _sentence_pieces(facts: GgmlVocabulary) -> Json:
    """SentencePiece BPE: text as it is, spaces as U+2581, unknown characters as their bytes.

    SentencePiece finds user-defined entries in text whose spaces are marked already. A vocabulary
    that puts a space before every text can't have that here, since the entries would get one too.
    """
    marked = not facts.add_space_prefix
    if marked:
        facts = _with_marked_spaces(facts)
    spaces: Json = {"type": "Replace", "pattern": {"String": " "}, "content": SPACE}
    steps: list[Json] = [
        {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
        {"type": "ByteFallback"},
        {"type": "Fuse"},
    ]
    normalizer = spaces
    if facts.add_space_prefix:
        prefix: Json = {"type": "Prepend", "prepend": SPACE}
        normalizer = {"type": "Sequence", "normalizers": [prefix, spaces]}
        steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
    return _layout(
        facts,
        marked,
        normalizer=normalizer,
        pre_tokenizer=None,
        decoder={"type": "Sequence", "decoders": steps},
        model=_bpe(
            facts,
            ranked_merges(facts.tokens, facts.types, facts.scores),
            unk_token=None if facts.unknown is None else facts.tokens[facts.unknown],
            fuse_unk=True,
            byte_fallback=BYTE in facts.types,
        ),
    )


def _with_marked_spaces(facts: GgmlVocabulary) -> GgmlVocabulary:
    """User-defined entries as SentencePiece spells them; GGUF files spell their spaces plainly."""
    pairs = zip(facts.tokens, facts.types, strict=True)
    tokens = [t.replace(" ", SPACE) if kind == USER_DEFINED else t for t, kind in pairs]
    return replace(facts, tokens=tuple(tokens))


def _bpe(facts: GgmlVocabulary, merges: Sequence[tuple[str, str]], **settings: object) -> Json:
    vocabulary = {token: i for i, token in enumerate(facts.tokens)}
    if len(vocabulary) != len(facts.tokens):
        raise SourceError(
            "two entries have one spelling",
            field="tokenizer.ggml.tokens",
            value=len(facts.tokens) - len(vocabulary),
            remedy="convert the model again",
        )
    return {"type": "BPE", "vocab": vocabulary, "merges": merges, **settings}


def _layout(facts: GgmlVocabulary, marked: bool, **parts: object) -> Json:
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(facts, marked),
        "post_processor": None,
        **parts,
    }


def _added_tokens(facts: GgmlVocabulary, marked: bool) -> list[Json]:
    """Entries that are matched whole: control tokens, which are special, and user-defined ones.

    Ids that the file names are control tokens, also where their types do not say so. User-defined
    ones are looked for in text as the normaliser leaves it where that is `marked`.
    """
    named = {facts.bos, facts.unknown, facts.padding, *facts.eos}
    kinds = [CONTROL if i in named else kind for i, kind in enumerate(facts.types)]
    return [
        {
            "id": i,
            "content": token,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": marked and kind == USER_DEFINED,
            "special": kind != USER_DEFINED,
        }
        for i, (token, kind) in enumerate(zip(facts.tokens, kinds, strict=True))
        if kind in (CONTROL, USER_DEFINED, UNKNOWN)
    ]


def _load(content: bytes, field: str) -> tokenizers.Tokenizer:
    try:
        return tokenizers.Tokenizer.from_str(content.decode())
    except Exception as error:  # the library raises bare exceptions
        raise SourceError(
            f"the tokenizer can't be built: {error}",
            field=field,
            remedy="use an intact checkpoint",
        ) from None
