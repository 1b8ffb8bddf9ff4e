"""The header of a frame: who speaks, on which channel, and to whom."""

import re
from enum import Enum

from helios.contract.syntax import FrameSyntax
from helios.frontend.scan.marks import Lettering, Marks
from helios.records import dataclass


class Route(Enum):
    """What a frame's body is."""

    REASONING = "reasoning"
    VISIBLE = "visible"
    TOOL = "tool"


@dataclass(frozen=True, slots=True)
class Header:
    """A header as read. `rest` is what follows the channel's name and is none of the above."""

    route: Route
    recipient: str
    rest: str


class HeaderSyntax:
    """Reads headers. Immutable.

    The role and the recipient may stand before the channel or, in the other order, the recipient
    behind it. Where a header names several channels, only the last one counts.
    """

    def __init__(self, frame: FrameSyntax, marks: Marks) -> None:
        self._frame = frame
        self._channel = marks.private(frame.channel)
        self._constrain = marks.private(frame.constrain)
        self._recipient = re.compile(rf"{re.escape(frame.recipient)}\s*([^\s\ud800-\udfff]+)")

    def read(self, text: str) -> Header:
        """The header between a frame's opener and its body."""
        parts = text.split(self._channel) if self._channel else [text]
        speaker = parts[0].strip().removeprefix(self._frame.role)
        channel = parts[-1] if len(parts) > 1 else ""
        if self._constrain:
            channel = channel.split(self._constrain)[0]
        found = self._recipient.search(speaker) or self._recipient.search(channel)
        recipient = found.group(1) if found else ""
        name, _, rest = self._recipient.sub("", channel).strip().partition(" ")
        rest = rest if channel else self._recipient.sub("", speaker)
        return Header(self._route(Lettering.drop(name), recipient), recipient, rest)

    def _route(self, channel: str, recipient: str) -> Route:
        frame = self._frame
        if recipient in frame.reasoning:
            return Route.REASONING
        if recipient and recipient not in (*frame.visible, frame.role):
            return Route.TOOL
        if not recipient and channel in frame.reasoning:
            return Route.REASONING
        return Route.VISIBLE
