"""A derivation graph as a page of HTML with everything in it: the picture, the derivations one by one, and the rules."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from html import escape
from importlib.resources import files
from itertools import islice

from whence.lang.program import Program
from whence.provenance.graph import Cut, Derivation, DerivationGraph, Fact
from whence.provenance.picture import draw
from whence.provenance.show import absences, printable, rule_texts, show_aggregate, show_fact

_FEW = 40  # so many entries are open from the start
_DRAWN = 60  # of more derived facts no picture can be read


def to_html(graph: DerivationGraph, program: Program) -> str:
    return "\n".join(_Page(graph, program).lines())


class _Page:
    def __init__(self, graph: DerivationGraph, program: Program) -> None:
        self.graph = graph
        self.derived = dict(_from_the_roots(graph))
        self.places = {fact: f"fact-{at}" for at, fact in enumerate(self.derived, 1)}
        self.rules = rule_texts(program, {firing.rule for firings in self.derived.values() for firing in firings})
        self.rule_places = {rule.name: f"rule-{at}" for at, rule in enumerate(self.rules, 1)}
        self.cut = graph.cut.facts if graph.cut else frozenset()

    def lines(self) -> Iterator[str]:
        roots = ", ".join(show_fact(root) for root in self.graph.roots)
        yield '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
        yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
        yield f"<title>{_text(f'Why {roots}?')}</title>"
        yield f"<style>\n{_resource('page.css')}</style>\n</head>\n<body>"
        yield f"<h1>Why <code>{_text(roots)}</code>?</h1>"
        yield f"<p>{self._summary()}</p>"
        parts = ["picture", *(["derivations"] if self.derived else []), *(["rules"] if self.rules else [])]
        yield "<nav>" + " ".join(f'<a href="#{part}">{part.capitalize()}</a>' for part in parts) + "</nav>"
        yield from self._picture()
        yield from self._derivations() if self.derived else ()
        yield from self._rules() if self.rules else ()
        yield f"<script>\n{_resource('page.js')}</script>\n</body>\n</html>"

    def _summary(self) -> str:
        if not self.derived:
            return "A base fact: it was given, no rule made it."
        firings = sum(map(len, self.derived.values()))
        counts = ", ".join(
            _counted(count, word)
            for count, word in ((len(self.derived), "derived fact"), (firings, "derivation"), (len(self.graph.base), "base fact"))
        )  # fmt: skip
        if self.graph.cut is None:
            return f"{counts}."
        looked = f"{_counted(len(self.cut), 'fact')} not looked into"
        return f"{counts}. <strong>Cut off at {_text(self.graph.cut.reason)}</strong>: {looked}."

    def _picture(self) -> Iterator[str]:
        kinds = {"derived": "derived fact", "base": "base fact", "firing": "firing of a rule"}
        drawn = nearest(self.graph, _DRAWN)
        if len(drawn.derivations) < len(self.derived):
            kinds["cut"] = "drawn no further"
        elif self.cut:
            kinds["cut"] = "not looked into"
        legend = " ".join(f'<span class="{kind}">{text}</span>' for kind, text in kinds.items())
        yield f'<section id="picture">\n<h2>Picture</h2>\n<p class="legend">{legend}</p>'
        yield "<p>A firing stands between what it made, above, and what it used, below."
        if len(drawn.derivations) < len(self.derived):
            yield f'Only the {_DRAWN} facts nearest to the top are drawn; all are in the <a href="#derivations">list</a>.'
        yield "</p>"
        yield '<p class="tools" hidden>'
        yield '<button type="button" data-zoom="out" aria-label="Smaller">−</button>'  # noqa: RUF001
        yield '<button type="button" data-zoom="in" aria-label="Larger">+</button>'
        yield '<button type="button" data-zoom="fit">Fit the width</button>'
        yield '<button type="button" data-zoom="full">Full size</button>'
        yield '</p>\n<div class="picture" tabindex="0" role="region" aria-label="The picture, which scrolls">'
        yield draw(drawn, {fact: f"#{place}" for fact, place in self.places.items()})
        yield "</div>\n</section>"

    def _derivations(self) -> Iterator[str]:
        yield '<section id="derivations">\n<h2>Derivations</h2>'
        yield '<p class="tools" hidden><button type="button" data-open="1">Open all</button>'
        yield '<button type="button" data-open="">Close all</button></p>'
        for fact, firings in self.derived.items():
            is_open = len(self.derived) <= _FEW or fact in self.graph.roots
            ways = _counted(len(firings), "derivation") + (", and a base fact" if fact in self.graph.base else "")
            yield f"<details{' open' if is_open else ''}>"
            yield f"<summary><code>{_text(show_fact(fact))}</code> <small>{ways}</small></summary>"
            yield f'<ul id="{self.places[fact]}">'
            yield from (f"<li>by {self._rule(firing.rule)}: {self._used(firing)}</li>" for firing in firings)
            yield "</ul>\n</details>"
        yield "</section>"

    def _used(self, firing: Derivation) -> str:
        used = [*map(self._fact, firing.body), *(f"<code>{_text(each)}</code>" for each in absences(firing))]
        for each in firing.aggregates:
            facts = ", ".join(map(self._fact, each.facts)) or "no facts"
            used.append(f"<code>{_text(show_aggregate(each))}</code> over {facts}")
        return ", ".join(used)

    def _fact(self, fact: Fact) -> str:
        kind = "cut" if fact in self.cut else "base" if fact in self.graph.base else "derived"
        text = f'<code class="{kind}">{_text(show_fact(fact))}</code>'
        return f'<a href="#{self.places[fact]}">{text}</a>' if fact in self.places else text

    def _rule(self, name: str) -> str:
        text = _text(name)
        return f'<a href="#{self.rule_places[name]}">{text}</a>' if name in self.rule_places else text

    def _rules(self) -> Iterator[str]:
        yield '<section id="rules">\n<h2>Rules</h2>\n<dl>'
        for rule in self.rules:
            place = f"<small>{_text(rule.file)}:{rule.line}</small>"
            yield f'<dt id="{self.rule_places[rule.name]}">{_text(rule.name)} {place}</dt>'
            yield f"<dd><code>{_text(rule.text)}</code></dd>"
        yield "</dl>\n</section>"


def nearest(graph: DerivationGraph, count: int) -> DerivationGraph:
    """The graph from its roots down to so many derived facts. What they use and is derived itself is cut off there."""
    derived = dict(_from_the_roots(graph))
    kept = dict(islice(derived.items(), count))
    used = {*graph.roots, *(each for firings in kept.values() for firing in firings for each in firing.premises)}
    cut = graph.cut.facts if graph.cut else frozenset()
    rest = frozenset(fact for fact in used if fact in cut or (fact in derived and fact not in kept))
    return DerivationGraph(graph.roots, kept, graph.base & used, Cut("", rest) if rest else None)


def _from_the_roots(graph: DerivationGraph) -> Iterator[tuple[Fact, tuple[Derivation, ...]]]:
    """Derived facts with their derivations, each behind a fact that uses it."""
    met = set(graph.roots)
    pending = deque(graph.roots)
    while pending:
        fact = pending.popleft()
        firings = graph.derivations.get(fact, ())
        if firings:
            yield fact, firings
        for premise in (premise for firing in firings for premise in firing.premises):
            if premise not in met:
                met.add(premise)
                pending.append(premise)


def _text(text: str) -> str:
    return escape(printable(text))


def _counted(count: int, word: str) -> str:
    return f"{count:,} {word}{'' if count == 1 else 's'}"


def _resource(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
