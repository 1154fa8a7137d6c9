"""Recursion that is followed only from where it is asked for.

    skip(x, y) :- next(x, y).
    skip(x, y) :- next(x, v), blank(v), skip(v, y).
    after(x, y) :- shown(x), skip(x, y), shown(y).

derives what can be skipped from every x, though it is asked for shown ones only. The first column changes on the way through
the recursion, so that asking for less would not help: every v is asked for, too. But next;blank;…;next is the same from either
end. Turned round, the first column stays, and it is enough to begin with those that are asked for:

    skip!bf:asked(x) :- shown(x).
    skip!bf(x, y) :- skip!bf:asked(x), next(x, y).
    skip!bf(x, y) :- skip!bf(x, v), blank(v), next(v, y).
    after(x, y) :- shown(x), skip!bf(x, y), shown(y).

A recursion is turned round only if what it goes along is what it begins with, perhaps under conditions on where it has come to:
then nothing is derived that was not derived before. Relations that anybody looks at are left whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, replace
from itertools import permutations

from whence.lang.order import names_in, names_met
from whence.lang.program import Atom, Comparison, Const, Literal, Negation, Program, Relation, Rule, Var, counter_in
from whence.lang.rewrite import rebuild
from whence.lang.strata import dependencies
from whence.lang.tree import walk
from whence.plan.helpers import rewritten

Columns = tuple[int, ...]
# A body is looked through in every order of what can correspond: this many literals at most.
_MOST_LITERALS = 5


def ask_closures(program: Program, wanted: frozenset[str]) -> Program:
    """The program with recursive relations that are not wanted derived as far as others ask for them."""
    tried: set[str] = set()
    while True:
        found = next((each for each in _candidates(program, wanted) if each.relation.name not in tried), None)
        if found is None:
            return program
        tried.add(found.relation.name)
        program = found.asked() or program


def _candidates(program: Program, wanted: frozenset[str]) -> Iterator[_Closure]:
    special = {each.dominated.relation for each in program.subsumptions} | wanted.union(program.base_relations)
    for stratum in program.strata:
        name, relation = stratum.relations[0], program.relations[stratum.relations[0]]
        if (
            stratum.recursive
            and len(stratum.relations) == 1
            and not stratum.stages
            and not stratum.monotone
            and name not in special
            and "!" not in name
            and not (relation.on_demand or relation.equivalence or relation.choices or relation.limit is not None)
        ):
            own = tuple(program.rules_for(name))
            if all(rule.body and not counter_in(rule) for rule in own):
                yield _Closure(program, relation, own)


@dataclass(frozen=True)
class _Closure:
    """A relation whose rules use no other relation that depends on it."""

    program: Program
    relation: Relation
    rules: tuple[Rule, ...]

    def asked(self) -> Program | None:
        """The program in which it is derived on demand, if that is possible for some columns that stay on the way."""
        uses = self._uses()
        if not uses:
            return None
        for rules in (self.rules, self._turned()):
            if rules is not None:
                columns = self._staying(rules)
                while columns:
                    questions = [self._question(rule, atom, columns) for rule, atom in uses]
                    if all(each is not None for each in questions):
                        return self._rewritten(rules, columns, [each for each in questions if each is not None])
                    # A column less, where a use does not say what it is.
                    known = [_told(atom, self._independent(rule, atom)) for rule, atom in uses]
                    fewer = tuple(at for at in columns if all(at in each for each in known))
                    columns = fewer if len(fewer) < len(columns) else ()
        return None

    def _uses(self) -> list[tuple[Rule, Atom]] | None:
        """The other rules' atoms that ask for it; None if somebody asks for something else than its rows."""
        name = self.relation.name
        found: list[tuple[Rule, Atom]] = []
        for rule in self.program.rules:
            if rule.head.relation == name:
                continue
            asking = [each for each in rule.body if isinstance(each, Atom) and each.relation == name]
            met = sum(isinstance(each, Atom) and each.relation == name for each in walk(rule.body))
            if met > len(asking):
                return None
            found += [(rule, atom) for atom in asking]
        return found

    def _staying(self, rules: tuple[Rule, ...]) -> Columns:
        """The columns that have the same variable in the head and wherever the recursion is entered."""
        staying = set(range(self.relation.arity))
        for rule in rules:
            for atom in _own(rule, self.relation.name):
                staying = {
                    at for at in staying if isinstance(atom.args[at], Var) and atom.args[at] == rule.head.args[at]
                }
            if any(each.relation == self.relation.name for each in _negated(rule)):
                return ()
        return tuple(sorted(staying))

    # -- questions

    def _independent(self, rule: Rule, atom: Atom) -> list[Atom]:
        """Atoms of the body, the narrowest first, that do not depend on this relation."""
        above = _above(self.program, self.relation.name)
        others = [
            each for each in rule.body if isinstance(each, Atom) and each is not atom and each.relation not in above
        ]
        return sorted(others, key=lambda each: len(each.args))

    def _question(self, rule: Rule, atom: Atom, columns: Columns) -> Rule | None:
        """A rule for what is asked by an atom: its values in the columns, from as few other atoms as tell them."""
        args = tuple(atom.args[at] for at in columns)
        missing = {name for arg in args for name in names_in(arg)}
        if not all(isinstance(arg, Var | Const) for arg in args):
            return None
        others = self._independent(rule, atom)
        chosen: list[Literal] = []
        while missing:
            best = max(others, key=lambda each: len(missing.intersection(_variables(each))), default=None)
            if best is None or missing.isdisjoint(_variables(best)):
                return None
            others.remove(best)
            chosen.append(best)
            missing -= _variables(best)
        known = {name for literal in chosen for name in names_met(literal)}
        above = _above(self.program, self.relation.name)
        for literal in rule.body:
            is_test = isinstance(literal, Comparison) or (
                isinstance(literal, Negation) and literal.atom.relation not in above
            )
            if chosen and is_test and known.issuperset(names_met(literal)):
                chosen.append(literal)
        name = f"{self._name(columns)}:asked"
        return Rule(f"{name}#{rule.name}", Atom(name, args, atom.span), tuple(chosen), rule.span)

    def _name(self, columns: Columns) -> str:
        adorned = "".join("b" if at in columns else "f" for at in range(self.relation.arity))
        return f"{self.relation.name}!{adorned}"

    def _rewritten(self, rules: tuple[Rule, ...], columns: Columns, questions: list[Rule]) -> Program:
        program, own, name = self.program, self.relation.name, self._name(columns)
        asked = questions[0].head.relation

        def renamed(part: object) -> object:
            return replace(part, relation=name) if isinstance(part, Atom) and part.relation == own else part

        changed: list[Rule] = []
        for rule in program.rules:
            if rule.head.relation != own:
                changed.append(rebuild(rule, renamed))
        for rule in rules:
            body = rule.body
            if not any(True for _ in _own(rule, own)):
                body = (Atom(asked, tuple(rule.head.args[at] for at in columns), rule.span), *body)
            changed.append(rebuild(replace(rule, name=f"{rule.name}{name.removeprefix(own)}", body=body), renamed))
        unique = {(each.head.args, each.body): each for each in questions}
        changed += [replace(each, name=f"{asked}#{at}") for at, each in enumerate(unique.values(), 1)]
        fields = self.relation.fields
        relations = {each: relation for each, relation in program.relations.items() if each != own}
        relations[name] = replace(self.relation, name=name)
        relations[asked] = Relation(asked, tuple(fields[at] for at in columns), self.relation.span)
        return rewritten(program, relations, changed)

    # -- turning round

    def _turned(self) -> tuple[Rule, ...] | None:
        """The rules with the recursion entered at the other end, if there are a beginning and a step that goes along it."""
        name = self.relation.name
        entering = [rule for rule in self.rules if any(True for _ in _own(rule, name))]
        beginnings = [rule for rule in self.rules if rule not in entering]
        if len(entering) != 1 or len(beginnings) != 1:
            return None
        step, beginning = entering[0], beginnings[0]
        inner = list(_own(step, name))
        if len(inner) != 1 or not all(map(_has_distinct_variables, (step.head, beginning.head, inner[0]))):
            return None
        staying = self._staying((step,))
        moving = tuple(at for at in range(self.relation.arity) if at not in staying)
        if not staying or len(staying) != len(moving):
            return None
        along = [literal for literal in step.body if literal is not inner[0]]
        if not all(isinstance(each, Atom | Negation | Comparison) for each in (*along, *beginning.body)):
            return None
        # The staying variables only go through, and where the step arrives is a row's beginning.
        through = {each for at in staying for each in names_in(step.head.args[at])}
        if any(not through.isdisjoint(names_met(literal)) for literal in along):
            return None
        for order in permutations(moving):
            ends = dict(zip(staying, order, strict=True))
            turned = self._turned_with(step, beginning, inner[0], along, ends)
            if turned is not None:
                return (beginning, turned)
        return None

    def _turned_with(
        self, step: Rule, beginning: Rule, inner: Atom, along: Sequence[Literal], ends: dict[int, int]
    ) -> Rule | None:
        """The step turned round, if it goes along what the beginning says, from the moving columns of the head to those of the
        inner atom; `ends` says which moving column goes on where a staying one arrived."""
        if any(self.relation.fields[one].kind != self.relation.fields[other].kind for one, other in ends.items()):
            return None
        names: dict[str, Var] = {}
        for at, arg in enumerate(beginning.head.args):
            target = inner.args[ends[at]] if at in ends else step.head.args[at]
            assert isinstance(arg, Var)
            assert isinstance(target, Var)
            names[arg.name] = target
        match = _matched(beginning.body, along, names)
        if match is None:
            return None
        used, full = match
        conditions = [literal for literal in along if not any(literal is each for each in used)]
        arrived = {name for at in ends.values() for name in names_in(inner.args[at])}
        inside = {each.name for each in full.values()} - arrived
        if any(not inside.isdisjoint(names_met(literal)) for literal in conditions):
            return None
        # head(X, Y) :- inner'(X, V), conditions(V), beginning(V, Y).
        first = {at: inner.args[ends[at]] if at in ends else step.head.args[at] for at in range(self.relation.arity)}
        last: dict[str, Var] = {}
        for at, arg in enumerate(beginning.head.args):
            going = step.head.args[at] if at in ends else inner.args[at]
            assert isinstance(arg, Var)
            assert isinstance(going, Var)
            last[arg.name] = going

        def gone_on(part: object) -> object:
            return last.get(part.name, Var(f"{part.name}#on", part.kind)) if isinstance(part, Var) else part

        entered = Atom(inner.relation, tuple(first[at] for at in range(self.relation.arity)), inner.span)
        return replace(step, body=(entered, *conditions, *rebuild(beginning.body, gone_on)))


def _own(rule: Rule, name: str) -> Iterator[Atom]:
    return (each for each in rule.body if isinstance(each, Atom) and each.relation == name)


def _negated(rule: Rule) -> Iterator[Atom]:
    """Atoms inside of something else than the body itself."""
    direct = {id(each) for each in rule.body}
    return (part for part in walk(rule.body) if isinstance(part, Atom) and id(part) not in direct)


def _variables(atom: Atom) -> Set[str]:
    return {arg.name for arg in atom.args if isinstance(arg, Var)}


def _told(atom: Atom, others: list[Atom]) -> Columns:
    """The columns of an atom that a constant or one of the others tells."""
    known = {name for each in others for name in _variables(each)}
    return tuple(
        at for at, arg in enumerate(atom.args) if isinstance(arg, Const) or (isinstance(arg, Var) and arg.name in known)
    )


def _above(program: Program, name: str) -> Set[str]:
    """The relations that depend on one, and itself."""
    reads: dict[str, set[str]] = {}
    for rule in program.rules:
        for dependency in dependencies(rule):
            reads.setdefault(dependency.body, set()).add(dependency.head)
    for each in program.subsumptions:
        for dependency in dependencies(each):
            reads.setdefault(dependency.body, set()).add(dependency.head)
    found, pending = {name}, [name]
    while pending:
        more = reads.get(pending.pop(), set()) - found
        found |= more
        pending += more
    return found


def _has_distinct_variables(atom: Atom) -> bool:
    return len(_variables(atom)) == len(atom.args)


def _matched(
    pattern: tuple[Literal, ...], literals: Sequence[Literal], names: dict[str, Var]
) -> tuple[list[Literal], dict[str, Var]] | None:
    """Which of the literals say the same as the pattern, one for each of its own, and with which variables for those of it that
    `names` does not tell; None if there are no such."""
    if len(pattern) > len(literals) or len(literals) > _MOST_LITERALS:
        return None
    for choice in permutations(literals, len(pattern)):
        full = dict(names)
        is_same = all(_same(one, other, full) for one, other in zip(pattern, choice, strict=True))
        # Two variables must not have become one: that would say more than the pattern does.
        if is_same and len({each.name for each in full.values()}) == len(full):
            return list(choice), full
    return None


def _same(pattern: object, other: object, names: dict[str, Var]) -> bool:
    """Whether two literals are the same but for variables, which `names` learns."""
    left, right = list(walk(pattern)), list(walk(other))
    if len(left) != len(right):
        return False
    for one, two in zip(left, right, strict=True):
        if isinstance(one, Var) and isinstance(two, Var):
            if one.kind != two.kind or names.setdefault(one.name, two) != two:
                return False
        elif type(one) is not type(two) or _shape(one) != _shape(two):
            return False
    return True


def _shape(node: object) -> object:
    """What a node says without what is below it."""
    match node:
        case Atom(relation=relation, args=args):
            return relation, len(args)
        case Comparison(op=op):
            return op
        case Const():
            return node
        case _:
            return tuple(
                value
                for each in getattr(node, "__slots__", ())
                if isinstance(value := getattr(node, each), str | int | bool | None) and each != "span"
            )
