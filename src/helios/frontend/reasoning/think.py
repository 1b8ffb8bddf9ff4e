"""Think tags: the shapes that open and close reasoning."""

from helios.contract.syntax import ReasoningSyntax
from helios.frontend.scan.marks import Marks
from helios.frontend.scan.shapes import Boundary, boundary, literal, optional, sequence, spaces


class ThinkTags:
    """The compiled delimiters. Wrapping newlines, one inside each delimiter and two behind the
    closer, belong to them."""

    def __init__(self, syntax: ReasoningSyntax, marks: Marks) -> None:
        opener = literal(marks.private(syntax.delimiters.open))
        closer = literal(marks.private(syntax.delimiters.close))
        wrap = syntax.wrapping_newlines
        newline = literal("\n")
        self.open = sequence(spaces(), opener)
        self.close = sequence(optional(newline), closer) if wrap else closer
        self.open_is_token = marks.is_token(syntax.delimiters.open)
        self.opened: Boundary = boundary(here=self.open)
        self.closed: Boundary = boundary(here=sequence(spaces(), closer))
        self.newline: Boundary = boundary(here=newline if wrap else None)
