"""Tokenizers built from GGUF metadata encode as their originals do."""

import unicodedata
from collections.abc import Iterable
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_gguf import METADATA, write_gguf
from tokenizers import models, normalizers, pre_tokenizers, trainers
from transformers import AutoTokenizer, PreTrainedTokenizerBase

from helios.frontend.tokenizer import Tokenizer
from helios.ignition.pretokenizers import SPLITTINGS
from helios.ignition.sources.gguf import GgufSource
from helios.ignition.sources.source import GgmlVocabulary, TokenizerFile
from helios.ignition.tokenizer import make_tokenizer

TEXTS = [
    "",
    "Hello world",
    "  leading and   runs  \n\n\t tabs\r\n",
    "1234567 3.14159 2024-01-02 0x1F",
    "numerals ² ½ ٣٤٥ Ⅷ, a²b³",
    "naïve café “quotes” … ŒŸ e\u0301 é",
    "日本語のテキスト 한국어 العربية हिन्दी ไทย",
    "😀👩‍👩‍👧‍👦🇩🇪🏽",
    "def f(x):\n    return x**2  # comment\n\tif x != y: pass\n",
    "It's we'll I'M THEY'RE don't O'Neill",
    "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n",
    "<|im_start|> <repo_name>x<|endoftext|>",
    "\x00\x01\x7f\u200b\ufeff\u00a0\u3000",
    "a" * 200,
    "HTTPServer camelCase snake_case KEBAB-case path/to/file",
    "$100 & 50% of <b>bold</b>; [x] {y} `z` ~^|\\",
]


@pytest.fixture(scope="module")
def mine(smollm2_gguf: Path) -> tokenizers.Tokenizer:
    asset = make_tokenizer(GgufSource(smollm2_gguf).tokenizer)
    assert asset.size == 49152
    assert asset.eos == (2,)
    assert asset.special["bos_token"] == "<|im_start|>"
    assert not asset.add_bos
    return tokenizers.Tokenizer.from_str(asset.json.decode())


@pytest.fixture(scope="module")
def loaded(smollm2_gguf: Path) -> PreTrainedTokenizerBase:
    tokenizer = AutoTokenizer.from_pretrained(smollm2_gguf.parent, gguf_file=smollm2_gguf.name)
    assert isinstance(tokenizer, PreTrainedTokenizerBase)
    return tokenizer


@pytest.fixture(scope="module")
def oracle(loaded: PreTrainedTokenizerBase) -> tokenizers.Tokenizer:
    """The tokenizer transformers makes of the file, with the digit splitting it leaves out.

    SmolLM2's own tokenizer.json splits digits one by one before the byte-level expression.
    """
    tokenizer = loaded.backend_tokenizer
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    return tokenizer


@pytest.mark.parametrize("text", TEXTS)
def test_smollm2_encodes_as_transformers_does(
    mine: tokenizers.Tokenizer, oracle: tokenizers.Tokenizer, text: str
) -> None:
    assert ids(mine, text) == ids(oracle, text)


@settings(max_examples=200, derandomize=True, deadline=None)
@given(text=st.text(max_size=60))
def test_smollm2_encodes_any_text_as_transformers_does(
    mine: tokenizers.Tokenizer, oracle: tokenizers.Tokenizer, text: str
) -> None:
    assert ids(mine, text) == ids(oracle, text)


def test_a_rendered_conversation_encodes_as_transformers_does(
    loaded: PreTrainedTokenizerBase, mine: tokenizers.Tokenizer
) -> None:
    messages = [
        {"role": "user", "content": "What is gravity?"},
        {"role": "assistant", "content": "A force."},
        {"role": "user", "content": "  More, please: 10 m/s²!\n"},
    ]
    text = loaded.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
    assert ids(mine, text)[:3] == [1, 9690, 198]
    assert mine.decode(ids(mine, text), skip_special_tokens=False) == text


@pytest.mark.parametrize("pre", ["llama-bpe", "qwen2", "tekken", "gpt-4o", "gpt-2"])
def test_text_is_split_as_transformers_splits_it(pre: str, tmp_path: Path) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", {**METADATA, "tokenizer.ggml.pre": pre})
    asset = make_tokenizer(GgufSource(path).tokenizer)
    tokenizer = tokenizers.Tokenizer.from_str(asset.json.decode())
    loaded = AutoTokenizer.from_pretrained(tmp_path, gguf_file=path.name).backend_tokenizer
    for text in TEXTS:
        assert tokenizer.pre_tokenizer.pre_tokenize_str(text) == (
            loaded.pre_tokenizer.pre_tokenize_str(text)
        )


@pytest.mark.parametrize(
    ("pre", "text", "pieces"),
    [
        ("default", "ab12345, x", ["ab", "123", "45", ",", "Ġx"]),
        ("default", "a  b", ["a", "Ġ", "Ġb"]),
        ("default", "$5.00", ["$", "5", ".", "00"]),
        (
            "deepseek-coder",
            "if x1>=22:\n  y",
            ["if", "Ġx", "1", ">=", "2", "2", ":", "Ċ", "Ġ", "Ġy"],
        ),
        ("deepseek-llm", "Ab cd, 12\n", ["Ab", "Ġcd", ",", "Ġ", "1", "2", "Ċ"]),
        ("deepseek-v3", "12345 .foo(x)", ["123", "45", "Ġ.", "foo", "(x", ")"]),
        ("seed-coder", "x+=12\n", ["x", "+=", "1", "2", "Ċ"]),
        ("smaug-bpe", "It's 12345", ["It", "'s", "Ġ", "123", "45"]),
    ],
)
def test_text_is_split_as_the_vocabulary_was_learned(
    tmp_path: Path, pre: str, text: str, pieces: list[str]
) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", {**METADATA, "tokenizer.ggml.pre": pre})
    asset = make_tokenizer(GgufSource(path).tokenizer)
    tokenizer = tokenizers.Tokenizer.from_str(asset.json.decode())
    assert [p for p, _ in tokenizer.pre_tokenizer.pre_tokenize_str(text)] == pieces


@pytest.mark.parametrize("pre", SPLITTINGS)
def test_every_splitting_keeps_all_of_a_text(tmp_path: Path, pre: str) -> None:
    path = write_gguf(tmp_path / "tiny.gguf", {**METADATA, "tokenizer.ggml.pre": pre})
    tokenizer = Tokenizer(make_tokenizer(GgufSource(path).tokenizer).json.decode())
    for text in TEXTS:
        expected = unicodedata.normalize("NFC", text) if SPLITTINGS[pre].composed else text
        assert tokenizer.decode(tokenizer.encode(text)) == expected


# ---- SentencePiece -----------------------------------------------------------------------

BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
WORDS = ["the", "she", "sea", "shells", "aa", "banana", "cat", "é", "😀"]
CORPUS = [
    "the cat sat on the mat and the dog sat on the log",
    "she sells sea shells on the sea shore; the shells she sells are sea shells",
    "aaaa aaa aa a bananas and ananas",
] * 3


@pytest.fixture(scope="module")
def trained() -> tokenizers.Tokenizer:
    """A BPE vocabulary with its merges, from which a file of scores is made."""
    tokenizer = tokenizers.Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>"))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    special = ["<unk>", "<s>", "</s>", *BYTES]
    trainer = trainers.BpeTrainer(vocab_size=380, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(CORPUS, trainer)
    return tokenizer


def sentence_pieces(tokenizer: tokenizers.Tokenizer, **changes: object) -> GgmlVocabulary:
    """The vocabulary as GGUF states it: scores in place of merges, best first."""
    tokens = [tokenizer.id_to_token(i) for i in range(tokenizer.get_vocab_size())]
    kinds = {"<unk>": 2, "<s>": 3, "</s>": 3, **dict.fromkeys(BYTES, 6)}
    facts: dict[str, object] = {
        "model": "llama",
        "pre": "default",
        "tokens": tuple(tokens),
        "types": tuple(kinds.get(token, 1) for token in tokens),
        "scores": tuple(-float(i) for i in range(len(tokens))),
        "merges": (),
        "bos": 1,
        "eos": (2,),
        "unknown": 0,
        "padding": None,
        "add_bos": None,
        "add_space_prefix": True,
    }
    return GgmlVocabulary(**{**facts, **changes})


@settings(max_examples=150, derandomize=True, deadline=None)
@given(
    text=st.one_of(
        st.text(max_size=20),
        st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join),
    )
)
def test_scores_give_the_merges_they_came_from(trained: tokenizers.Tokenizer, text: str) -> None:
    asset = make_tokenizer(sentence_pieces(trained))
    mine = tokenizers.Tokenizer.from_str(asset.json.decode())
    plain = text.replace("<", "(")  # spelled-out control tokens are matched whole here
    assert ids(mine, plain) == ids(trained, plain)


def test_equal_scores_go_by_the_order_of_the_vocabulary(trained: tokenizers.Tokenizer) -> None:
    facts = sentence_pieces(trained)
    level = sentence_pieces(trained, scores=(-1000.0,) * len(facts.tokens))
    assert make_tokenizer(level).json == make_tokenizer(facts).json


def test_sentence_pieces_come_back_as_text(trained: tokenizers.Tokenizer) -> None:
    asset = make_tokenizer(sentence_pieces(trained))
    assert asset.add_bos  # what a file that does not say means
    assert asset.eos == (2,)
    tokenizer = Tokenizer(asset.json.decode())
    for text in ("the cat", " the  cat\n", "日本 😀", "<s>the</s>"):
        decoded = tokenizer.decode(tokenizer.encode(text))
        assert decoded.replace("<s> ", "<s>") == text


def test_without_space_prefix_text_starts_as_it_is(trained: tokenizers.Tokenizer) -> None:
    facts = sentence_pieces(trained, add_space_prefix=False, add_bos=False)
    asset = make_tokenizer(facts)
    assert not asset.add_bos
    tokenizer = Tokenizer(asset.json.decode())
    assert tokenizer.decode(tokenizer.encode("the cat")) == "the cat"
    assert tokenizer.encode("the")[0] != tokenizer.encode(" the")[0]


def test_user_defined_tokens_are_matched_whole_and_are_text(trained: tokenizers.Tokenizer) -> None:
    facts = sentence_pieces(trained)
    added = sentence_pieces(
        trained,
        tokens=(*facts.tokens, "<think>"),
        types=(*facts.types, 4),
        scores=(*facts.scores, 0.0),
    )
    tokenizer = Tokenizer(make_tokenizer(added).json.decode())
    token = tokenizer.single_token("<think>")
    assert token is None or token == len(facts.tokens)
    assert len(facts.tokens) in tokenizer.encode("a<think>b")
    assert len(facts.tokens) not in tokenizer.special_tokens


def test_tokens_that_the_file_names_are_special_whatever_their_type(
    trained: tokenizers.Tokenizer,
) -> None:
    facts = sentence_pieces(trained)
    typed = sentence_pieces(trained, types=(2, *[1] * (len(facts.types) - 1)))
    tokenizer = Tokenizer(make_tokenizer(typed).json.decode())
    assert {0, 1, 2} <= tokenizer.special_tokens
    assert tokenizer.encode("a</s>")[-1] == 2


def test_user_defined_spaces_are_matched_before_any_merge(trained: tokenizers.Tokenizer) -> None:
    """GGUF files spell such entries with plain spaces, which text no longer has when they count."""
    facts = sentence_pieces(trained)
    count = len(facts.tokens)
    added = sentence_pieces(
        trained,
        tokens=(*facts.tokens, "  ", "   "),
        types=(*facts.types, 4, 4),
        scores=(*facts.scores, -1000.0, -1000.0),
        add_space_prefix=False,
    )
    tokenizer = Tokenizer(make_tokenizer(added).json.decode())
    assert tokenizer.encode("a     b")[1:-1] == [count + 1, count]
    assert tokenizer.encode("a \u2581b") == tokenizer.encode("a  b")
    assert tokenizer.decode(tokenizer.encode("a     b")) == "a     b"


# ---- tokenizer.json ----------------------------------------------------------------------


def test_a_tokenizer_file_is_taken_as_it_is() -> None:
    tokenizer = tokenizers.Tokenizer(models.BPE({"a": 0, "<s>": 1, "</s>": 2}, []))
    tokenizer.add_special_tokens(["<s>", "</s>"])
    content = tokenizer.to_str().encode()
    facts = TokenizerFile(content, "<s>", "</s>", None, None, (), None)
    asset = make_tokenizer(facts)
    assert asset.json == content
    assert asset.eos == (2,)
    assert asset.special == {"bos_token": "<s>", "eos_token": "</s>"}
    assert not asset.add_bos
    tokenizer.post_processor = tokenizers.processors.TemplateProcessing(
        single="<s> $A", special_tokens=[("<s>", 1)]
    )
    adding = TokenizerFile(tokenizer.to_str().encode(), "<s>", "</s>", None, None, (2,), None)
    assert make_tokenizer(adding).add_bos


def ids(tokenizer: tokenizers.Tokenizer, text: str) -> Iterable[int]:
    found: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    return found
