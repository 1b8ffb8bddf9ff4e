"""What packing writes of grammar masks, and when: along copied proposals too."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from contract_examples import DRAFTS, WORDS, full_contract, full_manifest

from helios.contract.kinds import ValueSource
from helios.contract.operation import Operation
from helios.contract.prepare import prepare_contract
from helios.contract.submission import Lane, Submission
from helios.contract.tensor import DType
from helios.errors import DeviceError
from helios.runtime.late import late_inputs
from helios.runtime.packing import GraphPacker

CONTRACT = prepare_contract(full_contract(), full_manifest())
ROWS = 4
ALL = b"\xff" * (4 * WORDS)


class Frames:
    """A storage of two frames, in which every number is 7 until it is written."""

    def __init__(self, graph: Any) -> None:
        self._frames = [
            {binding.destination: self._array(binding) for binding in graph.bindings}
            for _ in range(2)
        ]

    def array(self, name: str, frame: int) -> np.ndarray[Any, Any]:
        return self._frames[frame][name]

    def _array(self, binding: Any) -> np.ndarray[Any, Any]:
        given = CONTRACT.transport[binding.destination].type
        shape = [ROWS if dim == "B" else dim for dim in given.shape]
        return np.full(shape, 7, dtype=np.uint32 if given.dtype is DType.U32 else np.int32)


def graph_of(*sources: str) -> Any:
    """A graph's facts that packing reads, with these bindings of the example's."""
    wanted = {ValueSource[source] for source in sources}
    bindings = {b.source: b for g in CONTRACT.graphs for b in g.bindings if b.source in wanted}
    return SimpleNamespace(program="p", rows=ROWS, tokens=16, bindings=tuple(bindings.values()))


def pack(graph: Any, frames: Any, *lanes: Lane) -> GraphPacker:
    packer = GraphPacker(graph, CONTRACT)
    packer.pack(Submission(0, 1, Operation.SPECULATIVE, "p", lanes), frames)
    return packer


def mask(number: int) -> bytes:
    return number.to_bytes(4 * WORDS, "little")


def lane(slot: int, **options: Any) -> Lane:
    return Lane(slot, slot + 10, slot + 20, query_length=1, sample=True, **options)


SPECULATIVE = graph_of(
    "GRAMMAR_MASK",
    "PROPOSAL_TOKENS",
    "PROPOSAL_COUNT",
    "PROPOSAL_GENERATION",
    "PROPOSAL_ENDPOINT",
    "PROPOSAL_GRAMMAR_MASK",
)


def test_late_inputs_are_the_masks() -> None:
    assert late_inputs(CONTRACT) == {"grammar_mask", "proposal_grammar_mask"}


def test_masks_allow_everything_until_they_are_supplied() -> None:
    graph = graph_of("GRAMMAR_MASK", "GRAMMAR_ACTIVE")
    frames: Any = Frames(graph)
    packer = pack(graph, frames, lane(0, masked=True), lane(1), lane(2, masked=True))
    masks = frames.array("grammar_mask", 1)
    assert frames.array("grammar_active", 1)[:3].tolist() == [1, 0, 1]
    assert [masks[row].tobytes() for row in (0, 2)] == [ALL, ALL]
    packer.supply(1, [(mask(5),), (), (None,)], frames)
    assert [masks[row].tobytes() for row in (0, 2)] == [mask(5), ALL]
    packer.supply(1, [(b"\x03",), (), (mask(9),)], frames)
    assert [masks[row].tobytes() for row in (0, 2)] == [mask(3), mask(9)]
    assert (masks[1] == 7).all(), "an unmasked lane's mask is nobody's business"
    assert (frames.array("grammar_mask", 0) == 7).all(), "nor is the other frame's"


def test_masks_along_proposals_go_to_their_positions() -> None:
    frames: Any = Frames(SPECULATIVE)
    packer = pack(
        SPECULATIVE,
        frames,
        lane(0, masked=True, proposals=(31, 32)),
        lane(3, masked=True, proposals=(33,)),
    )
    rest = [-1] * (DRAFTS - 2)
    assert frames.array("proposal_tokens", 1)[:2].tolist() == [[31, 32, *rest], [33, -1, *rest]]
    assert frames.array("proposal_count", 1)[:2].tolist() == [2, 1]
    assert frames.array("proposal_generation", 1)[:2].tolist() == [10, 13]
    assert frames.array("proposal_endpoint", 1)[:2].tolist() == [20, 23]
    masks = frames.array("proposal_grammar_mask", 1)
    first = frames.array("grammar_mask", 1)
    assert {row.tobytes() for row in masks[:2].reshape(-1, WORDS)} == {ALL}
    packer.supply(1, [(mask(1), mask(2), mask(3)), (mask(4), None)], frames)
    assert [row.tobytes() for row in first[:2]] == [mask(1), mask(4)]
    assert [m.tobytes() for m in masks[0]] == [mask(2), mask(3), *[ALL] * (DRAFTS - 2)]
    assert [m.tobytes() for m in masks[1]] == [ALL] * DRAFTS


def test_more_proposals_than_there_is_room_for_are_refused() -> None:
    frames: Any = Frames(SPECULATIVE)
    with pytest.raises(DeviceError, match="proposal_tokens"):
        pack(SPECULATIVE, frames, lane(0, proposals=[1] * (DRAFTS + 1)))
