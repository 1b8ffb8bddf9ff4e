"""A loaded model: packs submissions, runs them in order on its own thread, reads completions."""

import threading
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from queue import Empty, SimpleQueue
from types import TracebackType

from helios.compile.composition import CompiledModel
from helios.contract.kinds import CompletionField, HistoryKind, ValueSource
from helios.contract.operation import Operation
from helios.contract.submission import Completion, Geometry, LaneMasks, Submission, Variant
from helios.contract.tensor import Dim
from helios.errors import DeviceError, HeliosError
from helios.runtime.completions import CompletionReader
from helios.runtime.device import StepRunner
from helios.runtime.packing import GraphPacker, PackedStep
from helios.runtime.storage import Storage
from helios.runtime.tuning import require_tuned


class Model:
    """A step executor over one loaded plan.

    `submit` packs into the submission's frame and returns; a device thread runs the steps in
    order, so that packing the next step overlaps with running this one. A frame is written again
    only after its completion was waited for. `tuned` names the buffers that tuning programs have
    filled: a graph that depends on another one is not exposed, `DeviceError`.
    """

    def __init__(
        self,
        compiled: CompiledModel,
        storage: Storage,
        runner: StepRunner,
        tuned: Collection[str] = (),
    ) -> None:
        graphs = compiled.contract.graphs
        require_tuned(graphs, tuned)
        self._storage = storage
        self._runner = runner
        self._packers = {g.program: GraphPacker(g, compiled.contract) for g in graphs}
        self._readers = {g.program: CompletionReader(g) for g in graphs}
        self._geometry = _geometry(compiled)
        self._outstanding: deque[Submission] = deque()
        self._unsupplied: dict[int, Submission] = {}
        self._steps: SimpleQueue[tuple[PackedStep, threading.Event | None] | None] = SimpleQueue()
        self._results: SimpleQueue[HeliosError | None] = SimpleQueue()
        self._thread = threading.Thread(target=self._drive, name="helios-device", daemon=True)
        self._thread.start()

    @property
    def geometry(self) -> Geometry:
        """What was loaded."""
        return self._geometry

    def submit(self, submission: Submission) -> None:
        """Pack and enqueue a step. Raises `DeviceError` if it can't be run.

        Where masks are to follow and nothing else runs, this returns when the device thread has
        taken the step: the caller, who goes on to compute them, would otherwise keep the
        interpreter to itself and the device waiting.
        """
        if len(self._outstanding) >= self._geometry.frames:
            raise DeviceError(
                "every frame is in flight", field="submission.frame", value=submission.frame
            )
        if any(other.frame == submission.frame for other in self._outstanding):
            raise DeviceError(
                "the frame is in flight", field="submission.frame", value=submission.frame
            )
        packer = self._packers.get(submission.program)
        if packer is None:
            raise DeviceError(
                "no such program", field="submission.program", value=submission.program
            )
        step = packer.pack(submission, self._storage)
        first = not self._outstanding
        self._outstanding.append(submission)
        if not submission.masked:
            self._steps.put((step, None))
            return
        self._runner.hold(submission.frame)
        self._unsupplied[submission.sequence] = submission
        begun = threading.Event()
        self._steps.put((step, begun))
        if first:
            begun.wait()

    def supply(self, sequence: int, masks: Sequence[LaneMasks]) -> None:
        """Write the masks of a step's lanes into its frame, and let the step read them."""
        submission = self._unsupplied.get(sequence)
        if submission is None:
            raise DeviceError("no step waits for masks", field="sequence", value=sequence)
        self._packers[submission.program].supply(submission.frame, masks, self._storage)
        self._let_go(submission)

    def wait(self, timeout: float | None = None) -> Completion | None:
        """The completion of the oldest outstanding step, or None after `timeout` seconds."""
        if not self._outstanding:
            return None
        try:
            error = self._results.get(timeout=timeout)
        except Empty:
            return None
        submission = self._outstanding.popleft()
        self._let_go(submission)
        if error is not None:
            return Completion(submission.sequence, submission.frame, error=error)
        return self._readers[submission.program].read(submission, self._storage)

    def close(self) -> None:
        """Finish the steps in flight, stop the device thread and free its resources."""
        if self._thread.is_alive():
            for submission in tuple(self._unsupplied.values()):
                self._let_go(submission)
            self._steps.put(None)
            self._thread.join()
            self._runner.close()

    def __enter__(self) -> "Model":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _let_go(self, submission: Submission) -> None:
        """What the step waits for is there, or will never be needed."""
        if self._unsupplied.pop(submission.sequence, None) is not None:
            self._runner.release(submission.frame)

    def _drive(self) -> None:
        while (queued := self._steps.get()) is not None:
            step, begun = queued
            if begun is not None:
                begun.set()
            self._results.put(self._run(step))

    def _run(self, step: PackedStep) -> HeliosError | None:
        try:
            for update in step.updates:
                update.apply(self._storage.persistent[update.destination])
            self._runner.run(step)
        except HeliosError as error:
            return error
        except Exception as error:  # a device fault must not end the thread that reports it
            return DeviceError(f"the device failed: {error!r}", field=step.program)
        return None


def _geometry(compiled: CompiledModel) -> Geometry:
    contract, plan = compiled.contract, compiled.plan
    widths = {
        binding.source: contract.transport[binding.destination].type.shape[-1]
        for graph in contract.graphs_of(Operation.INITIALIZE)
        for binding in graph.bindings
    }
    return Geometry(
        context_tokens=plan.limits.context,
        page_tokens=contract.cache.page_tokens,
        pages=plan.limits.pages,
        slots=plan.limits.sequences,
        snapshots=plan.limits.snapshots,
        vocabulary=contract.vocabulary,
        input_vocabulary=contract.input_vocabulary,
        variants=tuple(
            Variant(
                program=g.program,
                operation=g.operation,
                rows=min(g.rows, plan.limits.sequences),
                tokens=min(g.tokens, max(plan.limits.batch_tokens, 1)),
                width=g.width,
                cursor_lag=-1 if g.draft_cursor is None else g.draft_cursor.lag_tokens,
            )
            for g in contract.graphs
        ),
        frames=max((b.copies for b in plan.buffers), default=1),
        cache_identity=contract.cache_identity,
        recurrent=any(h.kind is HistoryKind.RECURRENT for h in contract.cache.histories),
        eos_capacity=_width(widths, ValueSource.EOS_TOKENS),
        bias_capacity=_width(widths, ValueSource.LOGIT_BIAS_TOKENS),
        alternatives=_alternatives(compiled),
    )


def _width(widths: Mapping[ValueSource, Dim], source: ValueSource) -> int:
    """How many entries of a source a slot's state rows hold; none if the program takes none."""
    width = widths.get(source, 0)
    return width if isinstance(width, int) else 0


def _alternatives(compiled: CompiledModel) -> int:
    """The most alternatives that every sampling graph reports with a token."""
    shapes = {b.name: b.shape for b in compiled.plan.buffers}
    reported = [
        shapes[g.completion[CompletionField.TOP_TOKENS]][-1]
        for g in compiled.contract.graphs
        if CompletionField.TOP_TOKENS in g.completion
    ]
    return min(reported, default=0)
