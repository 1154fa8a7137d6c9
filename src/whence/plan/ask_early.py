"""What one rule asks of a relation is asked where the relation is derived.

    out(l, p) :- needs(a, l, p), alive(a, p).
    broken(l, p) :- breaks(p, l), out(l, p).

derives all of `out`, of which `broken` looks at the few rows that `breaks` has too. If nobody else looks at it:

    out!asked(l, p) :- needs(a, l, p), alive(a, p), breaks(p, l).
    broken(l, p) :- breaks(p, l), out!asked(l, p).

A row that is asked for is looked up once more, one that is not is neither made nor looked at. So the relation that asks has to
have a known number of rows, few beside one that the others are made from, and all variables of the atom and no others.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from whence.lang.order import names_met
from whence.lang.program import Atom, Const, Program, Rule, Var
from whence.lang.tree import walk
from whence.plan.helpers import rewritten
from whence.plan.project_early import is_plain

# A relation asks for little if one that the answers are made from has so many times as many rows, and more than so many.
SHARE, FEW = 8, 1_000
_ASKED = "!asked"


class _Question(NamedTuple):
    """An atom, the one that asks in the same body, and the rules that answer."""

    atom: Atom
    by: Atom
    answers: Sequence[Rule]


def ask_early(program: Program, wanted: frozenset[str], sizes: Mapping[str, int]) -> Program:
    """The program without rows that nobody asks for. `sizes` tells how many rows relations have, as far as that is known."""
    while questions := {each.atom.relation: each for each in _questions(program, wanted, sizes)}:
        program = _asked(program, questions)
    return program


def _questions(program: Program, wanted: frozenset[str], sizes: Mapping[str, int]) -> Iterator[_Question]:
    stratum_of = {name: stratum for stratum in program.strata for name in stratum.relations}
    rules_of: defaultdict[str, list[Rule]] = defaultdict(list)
    for rule in program.rules:
        rules_of[rule.head.relation].append(rule)
    given = {name for name in sizes if name not in rules_of}
    bodies = [*(rule.body for rule in program.rules), *program.subsumptions]
    met = Counter(part.relation for body in bodies for part in walk(body) if isinstance(part, Atom))
    kept = wanted.union(program.base_relations)
    for rule in program.rules:
        if not is_plain(rule, stratum_of[rule.head.relation], program):
            continue
        atoms = [each for each in rule.body if isinstance(each, Atom)]
        for atom in atoms:
            answers, stratum = rules_of[atom.relation], stratum_of[atom.relation]
            is_alone = met[atom.relation] == 1 and atom.relation not in kept and not stratum.recursive
            if not is_alone or not _can_be_asked(atom, answers):
                continue
            if not all(is_plain(each, stratum, program) for each in answers):
                continue
            asking = (each for each in atoms if each.relation in given and _asks(each, atom))
            by = next((each for each in asking if _is_little(sizes[each.relation], answers, sizes)), None)
            if by is not None:
                yield _Question(atom, by, answers)


def _can_be_asked(atom: Atom, answers: Sequence[Rule]) -> bool:
    names = [arg.name for arg in atom.args if isinstance(arg, Var)]
    heads = [arg for rule in answers for arg in rule.head.args]
    is_plain_head = all(isinstance(arg, Var | Const) for arg in heads)
    return not atom.relation.endswith(_ASKED) and len(set(names)) == len(atom.args) > 0 and is_plain_head


def _asks(by: Atom, atom: Atom) -> bool:
    return all(isinstance(arg, Var | Const) for arg in by.args) and set(names_met(by)) == set(names_met(atom))


def _is_little(size: int, answers: Sequence[Rule], sizes: Mapping[str, int]) -> bool:
    """Whether each answer is made from a relation that is much larger."""
    most = [
        max((sizes.get(part.relation, 0) for part in rule.body if isinstance(part, Atom)), default=0)
        for rule in answers
    ]
    return all(each > FEW and SHARE * size <= each for each in most)


def _asked(program: Program, questions: Mapping[str, _Question]) -> Program:
    names = {name: f"{name}{_ASKED}" for name in questions}
    asked = {id(each.atom): replace(each.atom, relation=names[name]) for name, each in questions.items()}
    rules = []
    for rule in program.rules:
        head, body = rule.head, tuple(asked.get(id(each), each) for each in rule.body)
        if head.relation in questions:
            body = (*body, _question_of(questions[head.relation], head))
            head = replace(head, relation=names[head.relation])
        rules.append(replace(rule, head=head, body=body))
    relations = {
        names.get(name, name): replace(each, name=names.get(name, name)) for name, each in program.relations.items()
    }
    return rewritten(program, relations, rules)


def _question_of(question: _Question, head: Atom) -> Atom:
    """The atom that asks, as a rule with this head puts it."""
    terms = {arg.name: term for arg, term in zip(question.atom.args, head.args, strict=True) if isinstance(arg, Var)}
    return replace(
        question.by, args=tuple(terms[arg.name] if isinstance(arg, Var) else arg for arg in question.by.args)
    )
