"""What the lines of `whence shell` mean: questions, updates, rules tried out. Nothing here knows about a terminal."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from difflib import get_close_matches
from pathlib import Path

from whence.cli.questions import facts_that_fit
from whence.cli.terminal import counted
from whence.cli.whatif import told as told_changes
from whence.cli.whynot import told as told_whynot
from whence.io.bags import as_often
from whence.io.changes import Changes, Update
from whence.io.order import sort_rows
from whence.io.updates import reported_writing
from whence.lang import ProgramError
from whence.lang.bags import bag_rows, named_relations
from whence.lang.diagnostics import render
from whence.lang.program import output_names
from whence.limits import RunawayError
from whence.provenance import Bounds, CannotExplain, Fact, graph_of, how, whatif, why, whynot
from whence.provenance.base import check_relation, parse_fact
from whence.provenance.derive import Deriver
from whence.provenance.matching import parse_pattern
from whence.provenance.show import by_shown_name, show_fact, show_value, source_text
from whence.provenance.whynot import closest_absent
from whence.query import Answer
from whence.session import Session
from whence.text_table import aligned

_PAGE = 20  # rows at a time
_SHOWN = 3  # facts that a pattern is explained for
_FACTS, _SECONDS = 20_000, 5.0  # bounds of `how`
_SEMIRINGS = ("posbool", "lineage", "counting")

HELP = """\
reach(x, "b"), link(x, y)          the values of x and y for which it holds; _ is any value
SELECT ... FROM reach ...          the same in SQL
why FACT    how FACT               where a fact comes from; why 'reach("a", _)' takes all that fit
whynot FACT                        what is missing for it
whatif - FACT + FACT ...           what would change; nothing does
+ FACT      - FACT                 put a base fact in, take it out; several in a line are one epoch
name: head(x) :- body.             try a rule out: what it changes is shown, and it stays until it is dropped
.drop NAME                         drop a rule
.keep FILE                         write the rules that were tried out to a file
.relations  .rules [RELATION]      what there is
.more                              more rows of the last answer
.stats                             what the last epoch took
.profile [+ FACT - FACT ...]       what each rule costs: evaluated anew, or under these updates; nothing changes
.help       .quit                  this; leave (so does Ctrl-D)"""


class Mistake(Exception):
    """Something in a line that is not as it has to be, as it is shown."""


class Shell:
    """A session, and what lines ask of it."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self.added: list[str] = []  # rules that were tried out, and stay
        self._waiting: Iterator[str] = iter(())
        self._commands: Mapping[str, Callable[[str], Iterator[str]]] = {
            ".help": lambda _: iter([HELP]),
            ".relations": lambda _: self._relations(),
            ".rules": self._rules,
            ".drop": self._drop,
            ".keep": self._keep,
            ".more": lambda _: self._page(),
            ".stats": lambda _: self._stats(),
            ".profile": self._profile,
        }

    @property
    def commands(self) -> tuple[str, ...]:
        return (*self._commands, ".quit")

    def execute(self, line: str) -> Iterator[str]:
        """What the line asks for. Raises Mistake, and leaves everything as it was then."""
        text = line.strip()
        try:
            yield from self._meant(text)
        except ProgramError as error:
            raise Mistake("\n".join(render(each, error.source) for each in error.diagnostics)) from None
        except (CannotExplain, ValueError, RunawayError) as error:
            problem, _, advice = str(error).partition("; ")
            raise Mistake(f"error: {problem}" + (f"\n  hint: {advice}" if advice else "")) from None

    def _meant(self, text: str) -> Iterator[str]:
        first, _, rest = text.partition(" ")
        questions: Mapping[str, Callable[[str], Iterator[str]]] = {
            "why": self._why,
            "how": self._how,
            "whynot": self._whynot,
            "whatif": self._whatif,
        }
        if not text:
            return iter(())
        if text.startswith("."):
            if first not in self._commands:
                near = get_close_matches(first, self.commands, 1)
                advice = f"did you mean {near[0]}?" if near else ".help shows those that there are"
                raise ValueError(f"there is no command {first}; {advice}")
            return self._commands[first](rest.strip())
        if first in questions:
            return questions[first](rest.strip())
        if text[0] in "+-":
            return self._update(text)
        if ":-" in text or (text.endswith(".") and not text.upper().startswith(("SELECT", "WITH"))):
            return self._try_out(text)
        return self._query(text)

    # -- questions

    def _query(self, text: str) -> Iterator[str]:
        answer = self.session.query(text)
        if not answer.columns:
            yield "yes" if answer.rows else "no"
            return
        kinds = [each.kind for each in answer.fields]
        rows = sort_rows(answer.rows, kinds)
        self._waiting = self._pages(Answer(answer.fields, rows))
        yield from self._page()

    def _pages(self, answer: Answer) -> Iterator[str]:
        for start in range(0, len(answer), _PAGE) or range(1):
            rows = answer.rows[start : start + _PAGE]
            shown = ([value if isinstance(value, str) else show_value(value) for value in row] for row in rows)
            yield aligned([list(answer.columns), *shown])
            left = len(answer) - start - _PAGE
            yield counted(len(answer), "row") if left <= 0 else f"{left:,} more of {len(answer):,} rows: .more"

    def _page(self) -> Iterator[str]:
        table = next(self._waiting, None)
        if table is None:
            yield "there is nothing more"
            return
        yield table
        yield next(self._waiting)

    def _why(self, text: str) -> Iterator[str]:
        found = self._facts(text)
        for fact in found[:_SHOWN]:
            yield str(why(self.session, *fact)).rstrip()
        if len(found) > _SHOWN:
            yield f"{len(found) - _SHOWN:,} more fit {text}: give values for _ to see them"

    def _how(self, text: str) -> Iterator[str]:
        for fact in self._facts(text)[:_SHOWN]:
            graph = graph_of(self.session, *fact, bounds=Bounds(None, _FACTS, _SECONDS))
            yield show_fact(fact)
            for semiring in _SEMIRINGS:
                yield f"  {semiring:<10}  {how(graph, fact, semiring, program=self.session.program)}"

    def _whynot(self, text: str) -> Iterator[str]:
        asked = parse_pattern(_bare(text), self.session.program)
        facts = [asked] if isinstance(asked, Fact) else closest_absent(self.session, asked, _SHOWN).facts
        if not facts:
            raise ValueError(f"all that could fit {text}, with the values that base facts have, is there")
        for fact in facts:
            answer = whynot(self.session, *fact)
            yield "\n".join(told_whynot(answer, self.session.program, asked_for=3))

    def _whatif(self, text: str) -> Iterator[str]:
        updates = self._updates(text)
        gone = [Fact(each.relation, each.tuple) for each in updates if each.op == "-"]
        come = [Fact(each.relation, each.tuple) for each in updates if each.op == "+"]
        yield from self._told(whatif(self.session, without=gone, given=come), "nothing would change")

    # -- changes

    def _update(self, text: str) -> Iterator[str]:
        changes = self.session.apply(self._updates(text))
        yield from self._told(as_often(self.session.program, changes), "nothing changes")

    def _updates(self, text: str) -> list[Update]:
        """`+ FACT - FACT …`; a pattern behind a minus is every fact that fits."""
        found: list[Update] = []
        for op, fact in _signed(text):
            facts = [self._fact(fact)] if op == "+" else self._facts(fact)
            found += [Update(op, *each) for each in facts]
        if not found:
            raise ValueError('say which facts: + link("a", "b") comes, - link("a", "b") goes')
        return found

    def _told(self, changes: Changes, nothing: str) -> Iterator[str]:
        shown = output_names(self.session.program)
        listed = [each for each in changes if each.relation in shown]
        yield "\n".join(told_changes(listed)) if listed else nothing

    # -- rules

    def _try_out(self, text: str) -> Iterator[str]:
        before = {rule.name for rule in self.session.program.rules}
        changes = self.session.add_rule(text)
        self.added.append(text)
        names = [rule.name for rule in self.session.program.rules if rule.name not in before]
        own = {rule.head.relation for rule in self.session.program.rules if rule.name in names}
        shown = {*output_names(self.session.program), *own}
        listed = [each for each in changes if each.relation in shown]
        yield "\n".join(told_changes(listed)) if listed else "nothing changes"
        yield f"added {', '.join(names)}; .drop takes it out again" if names else "added"

    def _drop(self, name: str) -> Iterator[str]:
        if not name:
            raise ValueError("say which rule: .rules lists their names")
        written = {
            rule.name: " ".join(_text_of(self.session, rule.span).split()) for rule in self.session.program.rules
        }
        own = {rule.head.relation for rule in self.session.program.rules if rule.name == name}
        before = {each: set(self.session.relation(each)) for each in own}
        changes = self.session.drop_rule(name)
        self.added = [each for each in self.added if " ".join(each.split()) != written.get(name)]
        # Without its last rule a relation is no more, and no epoch tells of its rows.
        lost = {each: rows for each, rows in before.items() if each not in self.session.program.relations}
        listed = [Update("-", each, row) for each, rows in lost.items() for row in rows]
        shown = {*output_names(self.session.program), *own} - lost.keys()
        listed += [each for each in changes if each.relation in shown]
        yield "\n".join(told_changes(listed)) if listed else "nothing changes"
        yield f"dropped {name}"

    def _keep(self, name: str) -> Iterator[str]:
        (path,) = (Path(each) for each in shlex.split(name)) if name else (None,)
        if path is None:
            raise ValueError("say to which file: .keep tried.dl")
        if path.exists():
            raise ValueError(f"{path} is there already")
        with reported_writing(path):
            path.write_text("".join(f"{each}\n" for each in self.added))
        yield f"{counted(len(self.added), 'rule')} in {path}"

    # -- what there is

    def _relations(self) -> Iterator[str]:
        program, base = self.session.program, set(self.session.prepared.base)
        lines = []
        for name in named_relations(program):
            relation = program.relations[name]
            fields = relation.fields[: relation.arity - relation.hidden]
            columns = ", ".join(f"{each.name}:{each.type}" for each in fields)
            rows = f"{len(self.session.relation(name)):,}"
            lines.append([f"{name}({columns})", "base" if name in base else "view", rows])
        yield aligned(lines)

    def _rules(self, relation: str) -> Iterator[str]:
        if relation:
            check_relation(relation, self.session.program)
        program = self.session.program
        known, views = set(named_relations(program)), dict(bag_rows(program))
        queries = set()  # one may be several rules
        for name, rule in by_shown_name(program):
            head = views.get(rule.head.relation, rule.head.relation)
            if not rule.is_fact and head in known and relation in ("", head) and (head, rule.span) not in queries:
                queries.add((head, rule.span))
                text = source_text(program, rule.span)
                yield text if text.startswith(name) else f"{name}  {text}"

    def _stats(self) -> Iterator[str]:
        work = self.session.last_epoch
        seconds = sum(work["seconds"].values())
        yield f"{seconds * 1000:.1f} ms, {counted(work['rounds'], 'round')}, {counted(work['derivations'], 'derivation')}"

    def _profile(self, text: str) -> Iterator[str]:
        """On a session of its own, with all that is there now."""
        from whence.profile import Profile, report, to_text  # noqa: PLC0415 - few ask for it

        updates = self._updates(text) if text else []
        profile = Profile()
        base = {name: list(rows) for name, rows in self.session.base().items()}
        session = Session(self.session.program, facts=base, profile=profile)
        if updates:
            profile.restart()
            session.apply(updates)
        yield to_text(report(profile, session, of_last_epoch=bool(updates)))

    # -- facts

    def _fact(self, text: str) -> Fact:
        return parse_fact(_bare(text), self.session.program)

    def _facts(self, text: str) -> list[Fact]:
        return facts_that_fit(parse_pattern(_bare(text), self.session.program), text, Deriver(self.session))


def _bare(text: str) -> str:
    """Quotes around a whole fact are a habit from the command line."""
    if not text:
        raise ValueError('say which fact, such as reach("a", "b")')
    return text[1:-1] if len(text) > 1 and text[0] == text[-1] == "'" else text


def _signed(text: str) -> Iterator[tuple[str, str]]:
    """Facts with the signs before them. A sign stands before a fact, outside of strings and brackets."""
    op, start, depth, quote = "", 0, 0, ""
    for at, char in enumerate(text):
        if quote:
            quote = "" if char == quote and text[at - 1] != "\\" else quote
        elif char == '"':
            quote = char
        elif char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        elif char in "+-" and not depth:
            if text[start:at].strip(" ,"):
                yield op or "?", text[start:at].strip(" ,")
            op, start = char, at + 1
    if text[start:].strip(" ,"):
        if not op:
            raise ValueError("a sign says what becomes of a fact: + comes, - goes")
        yield op, text[start:].strip(" ,")


def _text_of(session: Session, span: tuple[int, int]) -> str:
    return session.program.source.text[slice(*span)]
