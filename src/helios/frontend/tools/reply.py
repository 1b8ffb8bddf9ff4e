"""One response as its grammars see it."""

from helios.frontend.scan.marks import Lettering
from helios.frontend.scan.output import Output
from helios.frontend.scan.shapes import Boundary
from helios.frontend.scan.source import Cut, Source, Steps
from helios.frontend.tools.arguments import Arguments
from helios.frontend.tools.literals import JSON, Dialect, Literals
from helios.frontend.tools.schemas import Toolbox
from helios.records import dataclass


@dataclass(frozen=True, slots=True)
class Reply:
    """The text still to come, what has been said, and the tools on offer."""

    source: Source
    output: Output
    lettering: Lettering
    tools: Toolbox

    def commit(self) -> None:
        """What is being read is a call or the ruins of one, but no longer text."""
        self.source.forget()

    def start(self, name: str, call_id: str = "") -> None:
        """Open a call."""
        self.commit()
        self.output.start(name, call_id)

    def finish(self, closer: Boundary | None) -> Steps[None]:
        """Close the call whose arguments have just been read.

        A missing closer is forgiven where something else follows or the text ended in good
        order. At a limit it is not: the call may be cut.
        """
        found = None if closer is None else (yield from self.source.accept(closer))
        if closer and not found and self.source.ended and not self.source.natural:
            raise Cut
        self.output.end()

    def arguments(self) -> Arguments:
        """A writer of the newest call's arguments."""
        return Arguments(self.output, self.lettering.spell)

    def literals(self, dialect: Dialect = JSON) -> Literals:
        """A reader of values that stand here."""
        return Literals(self.source, self.lettering.spell, dialect)
