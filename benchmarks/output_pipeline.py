"""Host time per token of the output pipeline: from engine events to the bytes of a stream.

    python benchmarks/output_pipeline.py [--tokens N] [--repeats N]

Each case feeds one event a token, as a decode step gives it, and prints the median over repeats.
Nothing is asserted; the aim is at most 30 microseconds for plain chat and 60 with reasoning or
tools.
"""

import argparse
import asyncio
import json
import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import uvloop
from tokenizers import Tokenizer as Builder
from tokenizers import decoders, models, pre_tokenizers, trainers

from helios.contract.kinds import (
    ImageLayout,
    ImagePreparation,
    ParallelCalls,
    ReasoningParser,
    ToolParser,
)
from helios.contract.prepared import ServingDefaults
from helios.contract.syntax import (
    AssistantEnvelope,
    Delimiters,
    PreparedFrontend,
    ReasoningSyntax,
    ToolSyntax,
)
from helios.engine.messages import Event, Finished, FinishReason, TokenLogprob, Tokens
from helios.frontend.model import Frontend
from helios.frontend.output import OutputPipeline, Presentation
from helios.frontend.parsers import parser_factory
from helios.frontend.parsing import ParserFactory, PlainParser, plain_parser
from helios.frontend.prompt import ChatPrompts
from helios.frontend.template import Template
from helios.frontend.tokenizer import Tokenizer
from helios.server.chat import prepare_chat
from helios.server.mailbox import Bell, Mailbox
from helios.server.protocol.chat import ChatRequest
from helios.server.service import ServedModel, Service

TEXT = (
    "Gravity is a fundamental concept in physics that describes the curvature of spacetime "
    "caused by the presence of mass. — 数学は美しい 🙂\n"
)


SYNTAX = PreparedFrontend(
    tool_parser=ToolParser.JSON_TAGS,
    tool_syntax=ToolSyntax(
        call=Delimiters("<tool_call>", "</tool_call>"),
        wrapping_newlines=True,
        parallel=ParallelCalls.REPEAT_BLOCK,
        name_fields=("name",),
        argument_fields=("arguments",),
        trims_content=True,
    ),
    reasoning_parser=ReasoningParser.THINK_TAGS,
    reasoning_syntax=ReasoningSyntax(Delimiters("<think>", "</think>")),
    assistant=AssistantEnvelope("<|im_start|>assistant\n", ("<|im_end|>",)),
    eos_tokens=(0,),
    add_bos=False,
    prefix_boundaries=(),
    image_preparation=ImagePreparation.NONE,
    image_layout=ImageLayout.NONE,
    image_tokens=None,
    image_settings=None,
    tokenizer_resource="tokenizer",
    template_resource="template",
    thinking_switches=(),
)


class NoEngine:
    """An engine that is never asked."""

    healthy = True

    def submit(self, request: object, sink: object) -> None:
        raise NotImplementedError

    def cancel(self, id: int) -> None:
        raise NotImplementedError

    def stats(self) -> dict[str, float]:
        return {}

    def now_ns(self) -> int:
        return 0


@dataclass
class Case:
    """A named way from events to bytes; `run` returns how many bytes it made."""

    name: str
    run: Callable[[], int]


def build_tokenizer() -> Tokenizer:
    builder = Builder(models.BPE())
    builder.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    builder.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=600,
        special_tokens=["<|im_end|>", "<tool_call>", "</tool_call>", "<think>", "</think>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    builder.train_from_iterator([TEXT] * 4, trainer)
    return Tokenizer(builder.to_str())


def events_of(tokens: Sequence[int], logprobs: int) -> list[Event]:
    top = tuple((number, -float(number)) for number in range(logprobs))
    scores = (TokenLogprob(-0.5, top),) if logprobs else ()
    return [Tokens(1, (token,), scores) for token in tokens]


def cases(tokenizer: Tokenizer, tokens: Sequence[int]) -> list[Case]:
    template = Template("{{ messages[0].content }}{{ tools }}")
    chat = ChatPrompts(tokenizer, template, tools_supported=True)

    def served(parsers: ParserFactory) -> Service:
        frontend = Frontend(tokenizer, chat, parsers, frozenset({0}))
        words = tokenizer.vocabulary
        model = ServedModel("small", (), 1 << 20, words, ServingDefaults(), frontend)
        return Service(model, NoEngine())

    service, able = served(plain_parser), served(parser_factory(SYNTAX, tokenizer))
    end = Finished(1, FinishReason.EOS, 8, len(tokens))

    def pipeline_only(presentation: Presentation, logprobs: int = 0) -> Callable[[], int]:
        events = events_of(tokens, logprobs)

        def run() -> int:
            pipeline = OutputPipeline(tokenizer, PlainParser(), presentation)
            for event in events:
                pipeline.feed((event,))
            return len(pipeline.feed((end,)))

        return run

    def streamed(
        service: Service = service, tokens: Sequence[int] = tokens, **fields: object
    ) -> Callable[[], int]:
        body = {"model": "small", "messages": [{"role": "user", "content": "hi"}], **fields}
        request = ChatRequest(**body)  # type: ignore[arg-type]
        events = events_of(tokens, request.top_logprobs or 0)

        def run() -> int:
            exchange = prepare_chat(service, request, 0)
            streamer, pipeline = exchange.streamer(), exchange.jobs[0].pipeline
            length = 0
            for event in [*events, end]:
                for output in pipeline.feed((event,)):
                    length += len(streamer.add(0, output))
            return length

        return run

    def delivered() -> int:
        """The same, through a mailbox and a loop that wakes for every token."""

        async def read(mailbox: Mailbox) -> int:
            exchange = prepare_chat(service, ChatRequest(model="small", messages=[HI]), 0)
            streamer, pipeline = exchange.streamer(), exchange.jobs[0].pipeline
            length = 0
            for event in [*events_of(tokens, 0), end]:
                mailbox.put((event,))
                for taken in await mailbox.take():
                    for output in pipeline.feed((taken,)):
                        length += len(streamer.add(0, output))
            return length

        async def main() -> int:
            return await read(Mailbox(Bell(asyncio.get_running_loop())))

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            return runner.run(main())

    def spoken(before: str, text: str, after: str) -> list[int]:
        """As many tokens, nearly all of which are those of the text."""
        words = tokenizer.encode(text)
        repeats = len(tokens) // len(words)
        said = [*tokenizer.encode(before), *words * repeats, *tokenizer.encode(after)]
        return (said + words)[: len(tokens)]

    thought = spoken("<think>\n", TEXT, "\n</think>\n\nYes.")
    answered = spoken("<think>\nWell.\n</think>\n\n", TEXT, "")
    book = '<tool_call>\n{"name": "book", "arguments": {"note": "'
    escaped = json.dumps(TEXT, ensure_ascii=False)[1:-1]
    called = spoken(book, escaped, '"}}\n</tool_call>')
    short = f'{book}window seat", "guests": 4, "tags": ["a", "b"]}}}}\n</tool_call>\n'
    many = spoken("", short, "")

    return [
        Case("pipeline, plain", pipeline_only(Presentation())),
        Case("pipeline, string stops", pipeline_only(Presentation(stop_strings=("zzz", "spa ")))),
        Case("pipeline + SSE, plain chat", streamed()),
        Case("pipeline + SSE, 5 log-probabilities", streamed(logprobs=True, top_logprobs=5)),
        Case("pipeline + SSE, observed", streamed(return_token_ids=True)),
        Case("pipeline + SSE, reasoning", streamed(able, thought)),
        Case("pipeline + SSE, content after reasoning", streamed(able, answered)),
        Case("pipeline + SSE, one long call", streamed(able, called, tools=TOOLS)),
        Case("pipeline + SSE, many short calls", streamed(able, many, tools=TOOLS)),
        Case("mailbox + pipeline + SSE, plain chat", delivered),
    ]


HI = {"role": "user", "content": "hi"}
TOOLS = [{"type": "function", "function": {"name": "book", "parameters": {"type": "object"}}}]


def measure(case: Case, tokens: int, repeats: int) -> float:
    """Median microseconds a token."""
    case.run()
    times = []
    for _ in range(repeats):
        started = time.perf_counter()
        case.run()
        times.append(time.perf_counter() - started)
    return statistics.median(times) / tokens * 1e6


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tokens", type=int, default=5000)
    arguments.add_argument("--repeats", type=int, default=5)
    options = arguments.parse_args()
    tokenizer = build_tokenizer()
    words = tokenizer.encode(TEXT)
    tokens = (words * (options.tokens // len(words) + 1))[: options.tokens]
    for case in cases(tokenizer, tokens):
        cost = measure(case, len(tokens), options.repeats)
        print(f"{case.name:40} {cost:7.2f} us a token")


if __name__ == "__main__":
    main()
