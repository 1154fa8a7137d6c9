"""What `%%whence` cells and `%whence` lines do.

A cell holds rules, declarations and facts: the first makes a session, those after it add to it, and what changes is shown. A line
is a question, a query or updates. The session is a variable of the notebook like any other, `session` unless it is named.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from whence.cli.whynot import told as told_whynot
from whence.html import shown_block, shown_text
from whence.io.changes import Changes, Update
from whence.lang import ProgramError, load
from whence.lang.revise import add_rules
from whence.limits import RunawayError
from whence.provenance import CannotExplain, Why, how, whatif, why, whynot
from whence.provenance.base import free_facts
from whence.provenance.derive import Deriver
from whence.provenance.graph import Fact
from whence.provenance.matching import parse_pattern
from whence.provenance.show import show_fact
from whence.provenance.why import graph_of
from whence.provenance.whynot import closest_absent
from whence.session import Session

NAME = "session"
_MOST = 3  # facts that a pattern is answered for


class Text:
    """Text that a notebook shows as it is."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return shown_block(shown_text(self.text))


class Cells:
    """Cells and lines over the variables of a notebook."""

    def __init__(self, variables: dict[str, Any]) -> None:
        self.variables = variables
        self._stated: dict[int, set[Fact]] = {}  # what cells have stated for a session

    def cell(self, line: str, text: str) -> Session | Changes:
        """`%%whence [NAME]`: rules of a new session, or more rules of the one that is there. `--new` begins again.

        Facts of base relations go in like updates, so that they can be taken out again.
        """
        words = line.split()
        name = next((each for each in words if not each.startswith("-")), NAME)
        found = self.variables.get(name)
        if isinstance(found, Session) and "--new" not in words:
            return self._add(found, text, name)
        program, stated = free_facts(load(text, name=f"<{name}>"))
        made = self.variables[name] = Session(program, facts=stated)
        self._stated[id(made)] = {Fact(relation, row) for relation, rows in stated.items() for row in rows}
        return made

    def _add(self, session: Session, text: str, name: str) -> Changes:
        program, stated = free_facts(add_rules(session.program, text, name=f"<{name}>"))
        before = self._stated.setdefault(id(session), set())
        new = [Fact(relation, row) for relation, rows in stated.items() for row in rows]
        new = [fact for fact in new if fact not in before]
        revised = session.revise(program)
        applied = session.apply([Update("+", *fact) for fact in new]) if new else Changes()
        before.update(new)
        return _both(revised, applied)

    def line(self, text: str) -> object:
        """`%whence [NAME:] QUESTION`."""
        before, colon, after = text.partition(":")
        is_named = bool(colon) and before.strip().isidentifier()
        name, question = (before.strip(), after.strip()) if is_named else (NAME, text.strip())
        session = self.variables.get(name)
        if not isinstance(session, Session):
            raise CannotExplain(f"there is no session {name} yet: a %%whence cell with rules makes one")
        if not question:
            return session
        if question[0] in "+-":
            return session.apply(_signed(question))
        word, _, rest = question.partition(" ")
        return _QUESTIONS[word](session, rest.strip()) if word in _QUESTIONS else session.query(question)


def _both(first: Changes, second: Changes) -> Changes:
    """The net changes of two epochs."""
    net: dict[tuple[str, Any], int] = {}
    for each in (*first, *second):
        net[each.relation, each.tuple] = net.get((each.relation, each.tuple), 0) + (1 if each.op == "+" else -1)
    sides: dict[int, dict[str, list[Any]]] = {1: {}, -1: {}, 0: {}}
    for (relation, row), sign in net.items():
        sides[sign].setdefault(relation, []).append(row)
    return Changes(sides[1], sides[-1])


def _signed(text: str) -> list[str]:
    """Updates of a line: a sign and a fact each, with semicolons between them."""
    return [each.strip() for each in text.split(";") if each.strip()]


def _facts(session: Session, text: str) -> list[Fact]:
    asked = parse_pattern(text, session.program)
    found = [asked] if isinstance(asked, Fact) else sorted(Deriver(session).matching(asked), key=show_fact)
    if not found:
        raise CannotExplain(f"no fact fits {text}")
    return found


def _why(session: Session, text: str) -> Why:
    answers = [why(session, *fact) for fact in _facts(session, text)[:_MOST]]
    proofs = tuple(proof for answer in answers for proof in answer.proofs)
    return Why(session.program, proofs, all(answer.is_certain for answer in answers))


def _how(session: Session, text: str) -> Text:
    found = (
        (fact, how(graph_of(session, *fact), fact, program=session.program)) for fact in _facts(session, text)[:_MOST]
    )
    return Text("\n".join(f"{show_fact(fact)}  {value}" for fact, value in found))


def _whynot(session: Session, text: str) -> Text:
    asked = parse_pattern(text, session.program)
    facts = [asked] if isinstance(asked, Fact) else closest_absent(session, asked, _MOST).facts

    def lines() -> Iterator[str]:
        for fact in facts:
            yield from told_whynot(whynot(session, *fact), session.program, asked_for=3)

    return Text("\n".join(lines()))


def _whatif(session: Session, text: str) -> Changes:
    signed = _signed(text)
    return whatif(
        session,
        without=[fact for each in signed if each[0] == "-" for fact in _facts(session, each[1:].strip())],
        given=[each[1:].strip() for each in signed if each[0] == "+"],
    )


_QUESTIONS: Mapping[str, Callable[[Session, str], object]] = {
    "why": _why,
    "how": _how,
    "whynot": _whynot,
    "whatif": _whatif,
}


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext whence`, in an `IPython.core.interactiveshell.InteractiveShell`."""
    cells = Cells(shell.user_ns)

    def whence(line: str, cell: str | None = None) -> object:
        """Rules in a cell (%%whence [NAME] [--new]); a query, why, how, whynot, whatif or updates in a line (%whence)."""
        try:
            return cells.line(line) if cell is None else cells.cell(line, cell)
        except (ProgramError, CannotExplain, ValueError, RunawayError) as error:
            # Where the mistake is, and no traceback of ours.
            sys.stderr.write(f"{error}\n")
            return None

    shell.register_magic_function(whence, magic_kind="line_cell")
