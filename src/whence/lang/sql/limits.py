"""ORDER BY with LIMIT, OFFSET and FETCH: which rows of a query are kept, by their number in its order."""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from whence.lang import tree
from whence.lang.diagnostics import Diagnostic, SqlUnsupported
from whence.lang.sql.nodes import inner
from whence.lang.sql.parse import span_of

_CLAUSES = ("limit", "offset")


@dataclass(frozen=True)
class Limit:
    """Rows behind the first `skipped`, and `count` of them at most."""

    skipped: int
    count: int | None
    with_ties: bool = False

    def formulas(self, number: tree.Term, span: tree.Span) -> list[tree.Formula]:
        kept: list[tree.Formula] = []
        if self.skipped:
            kept.append(tree.Constraint(">", number, tree.Number(self.skipped), span))
        if self.count is not None:
            kept.append(tree.Constraint("<=", number, tree.Number(self.skipped + self.count), span))
        return kept


def has_windows(select: exp.Expr) -> bool:
    """Whether rows depend on their order: by window functions, DISTINCT ON, or LIMIT."""
    distinct = select.args.get("distinct")
    if distinct is not None and distinct.args.get("on") is not None:
        return True
    if any(select.args.get(clause) for clause in (*_CLAUSES, "qualify")):
        return True
    return any(
        isinstance(part, exp.Window)
        for item in select.expressions
        for part in item.walk(prune=lambda part: isinstance(part, exp.Query))
    )


def limits_of(select: exp.Expr, found: list[Diagnostic]) -> Limit | None:
    limit, offset = (select.args.get(clause) for clause in _CLAUSES)
    if limit is None and offset is None:
        return None
    count: int | None = None
    with_ties = False
    if isinstance(limit, exp.Fetch):
        options = limit.args.get("limit_options")
        with_ties = options is not None and bool(options.args.get("with_ties"))
        if options is not None and options.args.get("percent"):
            found.append(SqlUnsupported(span_of(limit), feature="FETCH … PERCENT", advice="give a number of rows"))
        count = _number(limit.args.get("count") or exp.Literal.number(1), "FETCH", found)
    elif limit is not None:
        count = _number(limit.expression, "LIMIT", found)
    skipped = _number(offset.expression, "OFFSET", found) if offset is not None else 0
    if with_ties and skipped:
        found.append(SqlUnsupported(span_of(limit), feature="WITH TIES and OFFSET", advice="leave one of them out"))
    return Limit(skipped, count, with_ties)


def _number(node: exp.Expr, clause: str, found: list[Diagnostic]) -> int:
    node = inner(node)
    if isinstance(node, exp.Literal) and node.is_int:
        return int(node.name)
    found.append(SqlUnsupported(span_of(node), feature=f"{clause} of an expression", advice="write a number"))
    return 0


def with_limit_outside(query: exp.Expr) -> exp.Expr:
    """LIMIT of what is DISTINCT or made of several queries, as a LIMIT of a SELECT from it."""
    if not any(query.args.get(clause) for clause in _CLAUSES):
        return query
    distinct = query.args.get("distinct")
    if isinstance(query, exp.Select) and (distinct is None or distinct.args.get("on") is not None):
        return query
    made = exp.Select(expressions=[exp.Star()])
    inside = query.copy()
    for clause in ("order", *_CLAUSES):
        value = inside.args.get(clause)
        if value is not None:
            value.pop()
            made.set(clause, value)
    for part in made.find_all(exp.Column):
        part.set("table", None)
    inside.set("with_", None)
    source = inside if isinstance(inside, exp.Subquery) and not inside.alias else exp.Subquery(this=inside)
    source.set("alias", exp.TableAlias(this=exp.to_identifier("limited")))
    made.set("from_", exp.From(this=source))
    return made
