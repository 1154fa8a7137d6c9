"""The plans of a query: how it can be split, which operators there are for it, and what they cost by the statistics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from whence.optimizer import cost
from whence.optimizer.estimates import factors_of, group_log, sum_within
from whence.optimizer.query import ColumnOf, Query, bits_of, places_of, reach
from whence.optimizer.space import Alternative, Node, Touch, all_nodes, least_of
from whence.optimizer.statistics import Statistics

# A property is a number: an order, an index, a place, whether the place is where the rows come from, and which rows are together
# in a part: those with the same value of some columns that are equal.
_INDEX, _PLACE, _THERE, _PART = 8, 16, 24, 32
_ORDER_BITS, _INDEX_BITS, _PLACE_BITS, _PART_BITS = 0xFF, 0xFF << _INDEX, 0xFF << _PLACE, 0xFF << _PART
_EVERYWHERE = 0xFF << _PART  # every part has all rows

Choice = tuple[str, str, Node | None, Node | None]

_Formula = Callable[[float, float], float]

# By the rows of the two inputs, or by the rows and their width where there is one.
_FORMULAS: Mapping[str, _Formula] = {
    "hash": cost.hash_join,
    "pipelined hash": cost.pipelined_hash,
    "sort-merge": cost.sort_merge,
    "block nested loops": cost.block_nested_loops,
    "indexed nested loops": lambda _index, outer: cost.indexed_nested_loops(outer),
    "sort": lambda rows, _width: cost.sort(rows),
    "hash aggregate": lambda rows, _width: cost.hash_aggregate(rows),
    "sorted aggregate": lambda rows, _width: cost.sorted_aggregate(rows),
    "ship": cost.ship,
    "repartition": cost.ship,
}


class QuerySpace:
    """`left_linear` has every join read a relation; `streaming` has no operator wait for the end of an input."""

    def __init__(
        self, query: Query, statistics: Statistics, *, left_linear: bool = False, streaming: bool = False
    ) -> None:
        self.query = query
        self.left_linear = left_linear
        self.streaming = streaming
        count = len(query.relations)
        self.whole = (1 << count) - 1
        self.grouped = 0 if query.group is None else 1 << count  # the bit of what is aggregated
        self.factors = factors_of(query, statistics)
        self.groups = group_log(query, statistics)
        self.scales: dict[int, int] = {}  # by which operators that make an expression cost more than by the model
        self._cheapened = False  # whether there are joins that cost less than by the model
        self._tables = [statistics.table(relation.table) for relation in query.relations]
        self.table_logs = [cost.to_log(table.rows) for table in self._tables]
        self._widths = [
            sum(table.column(name).width for name in relation.columns) or 8.0
            for relation, table in zip(query.relations, self._tables, strict=True)
        ]
        self.parts = statistics.parts
        to_all: _Formula = lambda rows, width: cost.ship(rows, width) * statistics.parts  # noqa: E731 - one of many
        self._formulas = {**_FORMULAS, "broadcast": to_all}
        self._name_places(statistics)
        self._name_orders()
        self._forget()

    def _name_places(self, statistics: Statistics) -> None:
        named = {table.place for table in self._tables if table.place}
        wanted = statistics.place or min(named, default="")
        self.places = sorted(named | {wanted}) if named else []
        self._home = [self.places.index(each.place or wanted) + 1 if named else 0 for each in self._tables]
        self._wanted_place = self.places.index(wanted) + 1 if named else 0

    def _name_orders(self) -> None:
        """Orders are numbered from 1: those of columns that are joined, and what GROUP BY and ORDER BY ask for."""
        self.orders: list[tuple[ColumnOf | str, ...]] = [tuple(sorted(each)) for each in self.query.classes]
        self._joined = len(self.orders)
        self._members = [bits_of(column.at for column in each) for each in self.query.classes]
        self._group_order = self._order_of(self.query.group or ())
        wanted = self._order_of(self.query.order)
        self.root: Node = (self.whole | self.grouped, wanted | self._wanted_place << _PLACE)

    def _order_of(self, columns: Sequence[ColumnOf | str]) -> int:
        if not columns:
            return 0
        for number, members in enumerate(self.orders, 1):
            if (number <= self._joined and len(columns) == 1 and columns[0] in members) or members == tuple(columns):
                return number
        self.orders.append(tuple(columns))
        return len(self.orders)

    def _forget(self) -> None:
        self._alternatives: dict[Node, tuple[Alternative, ...]] = {}
        self._splits: dict[int, list[tuple[int, int]]] = {}
        self._logs: dict[int, int] = {}
        self._rows: dict[int, float] = {}
        self._leaf_floors: dict[int, tuple[int, int, int]] = {}
        self._leaf_sums: dict[int, tuple[int, int]] = {}
        self._pure: dict[int, float] = {}

    def fresh(self) -> QuerySpace:
        """The same with nothing worked out yet: what an optimizer meets that starts from scratch."""
        copied = object.__new__(QuerySpace)
        copied.__dict__.update(self.__dict__)
        copied.factors, copied.scales, copied.table_logs = dict(self.factors), dict(self.scales), list(self.table_logs)
        copied._forget()
        return copied

    # -- names

    def order_name(self, order: int, expression: int) -> str:
        """The columns of an order, as an expression has them."""
        members = self.orders[order - 1]
        there = [each for each in members if not isinstance(each, ColumnOf) or expression >> each.at & 1]
        named = [each if isinstance(each, str) else each.name for each in there]
        return named[0] if order <= self._joined else ", ".join(named)

    def place_name(self, wanted: int) -> str:
        return self.places[((wanted & _PLACE_BITS) >> _PLACE) - 1]

    # -- rows

    def log(self, expression: int) -> int:
        """How many rows an expression has, as a logarithm."""
        found = self._logs.get(expression)
        if found is None:
            inner = expression & self.whole
            found = sum_within(self.factors, inner)
            if expression != inner:
                found = min(found, self.groups)
            self._logs[expression] = found
            self._rows[expression] = cost.to_rows(found)
        return found

    def rows(self, expression: int) -> float:
        found = self._rows.get(expression)
        if found is None:
            self.log(expression)
            found = self._rows[expression]
        return found

    def width(self, expression: int) -> float:
        found = self._pure.get(expression)
        if found is None:
            found = self._pure[expression] = sum(self._widths[at] for at in places_of(expression & self.whole))
        return found

    # -- changes

    def change_rows(self, expression: int, log: int, *, table: bool = False) -> Touch:
        """All that contains an expression has more rows, or fewer; a `table` is read with as many more."""
        self.factors[expression] = self.factors.get(expression, 0) + log
        if table:
            at = places_of(expression)[0]
            self.table_logs[at] += log
        logs, rows = self._logs, self._rows
        for each in self._known_above(expression):
            logs[each] = found = logs[each] + log
            rows[each] = cost.to_rows(found)
        top = self.whole | self.grouped
        if self.grouped and top in logs:
            logs[top] = found = min(self.log(self.whole), self.groups)
            rows[top] = cost.to_rows(found)
        self._forget_floors(expression)
        return Touch(expression, log, rows=True)

    def _known_above(self, expression: int) -> list[int]:
        """The expressions that contain this one, but for what is grouped, and whose rows have been worked out."""
        logs = self._logs
        rest = self.whole & ~expression
        if 1 << rest.bit_count() > len(logs):
            return [each for each in logs if expression & ~each == 0 and each <= self.whole]
        found, more = [], rest
        while True:
            if expression | more in logs:
                found.append(expression | more)
            if not more:
                return found
            more = (more - 1) & rest

    def change_cost(self, expression: int, log: int) -> Touch:
        """Operators that make an expression cost more, or less: the scans of a table, the joins of some."""
        self.scales[expression] = self.scales.get(expression, 0) + log
        self._forget_floors(expression)
        self._cheapened = any(each < 0 and bits & (bits - 1) for bits, each in self.scales.items())
        return Touch(expression, log, rows=False)

    def _forget_floors(self, expression: int) -> None:
        if self._leaf_floors.pop(expression, None) is not None:
            self._leaf_sums.clear()

    # -- alternatives

    def alternatives(self, node: Node) -> Sequence[Alternative]:
        found = self._alternatives.get(node)
        if found is None:
            choices = enumerate(self._choices(*node))
            found = self._alternatives[node] = tuple(Alternative(at, *choice) for at, choice in choices)
        return found

    def nodes(self) -> Iterable[Node]:
        return all_nodes(self)

    def _choices(self, expression: int, wanted: int) -> Iterator[Choice]:
        place = (wanted & _PLACE_BITS) >> _PLACE
        if expression > self.whole:
            yield from self._aggregations(wanted)
        elif expression & (expression - 1):
            yield from self._joins(expression, wanted)
        elif place == self._home[expression.bit_length() - 1]:
            yield from self._scans(expression, wanted)
        order, part = wanted & _ORDER_BITS, wanted & _PART_BITS
        if order and not wanted & _INDEX_BITS and not self.streaming:
            yield "sort", "sort", (expression, wanted & ~_ORDER_BITS), None
        elif part and not order and not wanted & _INDEX_BITS:
            yield (
                "ship",
                "broadcast" if part == _EVERYWHERE else "repartition",
                (expression, wanted & ~_PART_BITS),
                None,
            )
        if place and not wanted >> _THERE:
            homes = {self._home[at] for at in places_of(expression & self.whole)}
            for home in sorted(homes - {place}):
                there = wanted & ~_PLACE_BITS | home << _PLACE | 1 << _THERE
                yield "ship", "ship", (expression, there), None

    def _scans(self, expression: int, wanted: int) -> Iterator[Choice]:
        at = expression.bit_length() - 1
        table, order, index = self._tables[at], wanted & _ORDER_BITS, wanted & _INDEX_BITS
        if not self._is_parted(at, wanted & _PART_BITS):
            return
        if index:
            yield "scan", "index lookup", None, None
            return
        if not order or ColumnOf(at, table.ordered) == self._column(order, at):
            yield "scan", "table scan", None, None
        if order:
            column = self._column(order, at)
            if column is not None and column.name in table.indexes:
                yield "scan", "index scan", None, None
        elif self._filter_index(at):
            yield "scan", "index scan", None, None

    def _is_parted(self, at: int, part: int) -> bool:
        """Whether a table has the rows together that are wanted so. One that is everywhere has all of them."""
        by = self._tables[at].partitioned
        if not part or by == "*":
            return True
        return part != _EVERYWHERE and ColumnOf(at, by) == self._column(part >> _PART, at)

    def _column(self, order: int, at: int) -> ColumnOf | None:
        """The column of a relation that an order is about, if it is about one."""
        members = self.orders[order - 1]
        if order > self._joined and len(members) > 1:
            return None
        return next((each for each in members if isinstance(each, ColumnOf) and each.at == at), None)

    def _filter_index(self, at: int) -> bool:
        indexes = self._tables[at].indexes
        return any(
            each.column and each.column.at == at and each.column.name in indexes for each in self.query.conditions
        )

    def _has_order(self, order: int, expression: int) -> bool:
        """Whether an expression has the columns of an order: one of those that are equal, or all that are listed."""
        if order <= self._joined:
            return bool(self._members[order - 1] & expression)
        return all(isinstance(each, ColumnOf) and expression >> each.at & 1 for each in self.orders[order - 1])

    def _joins(self, expression: int, wanted: int) -> Iterator[Choice]:
        if self.parts:
            yield from self._joins_in_parts(expression, wanted)
            return
        order, place = wanted & _ORDER_BITS, wanted & _PLACE_BITS
        for left, right in self.splits(expression):
            both = [at for at, members in enumerate(self._members, 1) if members & left and members & right]
            if not order:
                if both:
                    if not self.streaming:
                        yield "join", "hash", (left, place), (right, place)
                    yield "join", "pipelined hash", (left, place), (right, place)
                if not self.streaming or not both:
                    yield "join", "block nested loops", (left, place), (right, place)
            if self.streaming:
                continue
            for number in both:
                if order in (0, number):
                    yield "join", "sort-merge", (left, number | place), (right, number | place)
                if not left & (left - 1) and (not order or self._has_order(order, right)):
                    at = left.bit_length() - 1
                    column = self._column(number, at)
                    if column is not None and column.name in self._tables[at].indexes and self._is_home(at, place):
                        yield "join", "indexed nested loops", (left, number << _INDEX | place), (right, order | place)

    def _joins_in_parts(self, expression: int, wanted: int) -> Iterator[Choice]:
        """Rows that are joined have to meet: by the columns that are equal, or because one side is everywhere."""
        order, part = wanted & _ORDER_BITS, wanted & _PART_BITS
        for left, right in self.splits(expression):
            both = [at for at, members in enumerate(self._members, 1) if members & left and members & right]
            if not order:
                sides = (left, part), (right, _EVERYWHERE)
                for physical in ("hash", "pipelined hash") if both else ("block nested loops",):
                    yield "join", physical, *sides
            for number in both:
                meet = number << _PART
                if part not in (0, meet):
                    continue
                if not order:
                    yield "join", "hash", (left, meet), (right, meet)
                    yield "join", "pipelined hash", (left, meet), (right, meet)
                if order in (0, number):
                    yield "join", "sort-merge", (left, number | meet), (right, number | meet)
                at = left.bit_length() - 1
                column = self._column(number, at) if left == 1 << at else None
                if column is None or column.name not in self._tables[at].indexes or not self._is_parted(at, meet):
                    continue
                if not order or self._has_order(order, right):
                    yield "join", "indexed nested loops", (left, number << _INDEX), (right, order | meet)

    def _is_home(self, at: int, place: int) -> bool:
        return self._home[at] << _PLACE == place

    def splits(self, expression: int) -> list[tuple[int, int]]:
        """The pairs of parts of an expression, in both directions, that hang together each and with each other."""
        found = self._splits.get(expression)
        if found is None:
            found, near = [], self.query.neighbours
            part = (expression - 1) & expression
            while part:
                rest = expression ^ part
                linear = not self.left_linear or not part & (part - 1) or not rest & (rest - 1)
                if linear and self._connected(part, near) and self._connected(rest, near):
                    found.append((part, rest))
                part = (part - 1) & expression
            self._splits[expression] = found
        return found

    def _connected(self, expression: int, near: Sequence[int]) -> bool:
        return reach(expression & -expression, expression, near) == expression

    def _aggregations(self, wanted: int) -> Iterator[Choice]:
        order, place = wanted & _ORDER_BITS, wanted & _PLACE_BITS
        if not order:
            yield "aggregate", "hash aggregate", (self.whole, place), None
        if self._group_order and order in (0, self._group_order) and not self.streaming:
            yield "aggregate", "sorted aggregate", (self.whole, self._group_order | place), None

    # -- costs

    def local(self, node: Node, alternative: Alternative) -> int:
        _, _, physical, left, right = alternative
        formula = self._formulas.get(physical)
        if formula is None or left is None:
            return self._leaf(node, physical, self.table_logs, self.log(node[0]), self.scales.get(node[0], 0))
        second = self.width(node[0]) if right is None else self.rows(right[0])
        return cost.scaled(formula(self.rows(left[0]), second), self.scales.get(node[0], 0))

    def least(self, node: Node, alternatives: Sequence[Alternative]) -> tuple[int, Alternative]:
        first = alternatives[0]
        left = first.left
        if left is None or first.right is None:
            if len(alternatives) == 1:
                return self.local(node, first), first
            return least_of(self, node, alternatives)
        one, other = self.rows(left[0]), self.rows(first.right[0])
        scale = self.scales.get(node[0], 0)
        factor, formulas = 2.0 ** (scale / cost.LOG_ONE) if scale else 1.0, self._formulas
        found, best = cost.MOST, first
        for each in alternatives:
            formula = formulas[each[2]]
            taken = (formula(one, other) if each[3] == left else formula(other, one)) * factor
            if taken < found and int(taken) < found:
                found, best = int(taken), each
        return found, best

    def cost_of(self, node: Node, alternative: Alternative, left: int, right: int, scale: int) -> int:
        """What `local` gives for an operator with inputs, by logarithms of how many rows they have and of the scale."""
        second = self.width(node[0]) if alternative.right is None else cost.to_rows(right)
        return cost.scaled(self._formulas[alternative.physical](cost.to_rows(left), second), scale)

    def scan_cost_of(self, node: Node, alternative: Alternative, table: int, log: int, scale: int) -> int:
        """What `local` gives for a scan: by how many rows the table has, and how many of them are found."""
        return self._leaf(node, alternative.physical, {node[0].bit_length() - 1: table}, log, scale)

    def _leaf(self, node: Node, physical: str, tables: Sequence[int] | Mapping[int, int], log: int, scale: int) -> int:
        if physical == "index lookup":
            return cost.scaled(cost.OPEN, scale)
        at = node[0].bit_length() - 1
        rows = cost.to_rows(tables[at])
        if physical == "table scan":
            return cost.scaled(cost.table_scan(rows, self._tables[at].width), scale)
        return cost.scaled(cost.index_scan(rows, rows if node[1] & _ORDER_BITS else cost.to_rows(log)), scale)

    def own(self, node: Node) -> int:
        expression, wanted = node
        if wanted & _INDEX_BITS:
            return 0
        rows = self._rows.get(expression)
        if rows is None:
            rows = self.rows(expression)
        found = cost.output(rows, self._pure.get(expression) or self.width(expression))
        return int(found) if found < cost.MOST else cost.MOST

    def own_of(self, node: Node, log: int) -> int:
        if node[1] & _INDEX_BITS:
            return 0
        return cost.scaled(cost.output(cost.to_rows(log), self.width(node[0])), 0)

    def floor(self, node: Node) -> int:
        leaves = self.floor_of_leaves(node)
        if not node[0] & (node[0] - 1):
            return leaves
        if not self._cheapened:  # a join looks at each row once at least, unless it looks rows up
            leaves += self._leaf_sums[node[0] & self.whole][1]
        return leaves + self.own(node)

    def floor_of_leaves(self, node: Node, without: int = 0) -> int:
        expression = node[0]
        if not expression & (expression - 1):
            return 0 if node[1] & _INDEX_BITS or without else self._leaf_floor(expression.bit_length() - 1)[0]
        expression &= self.whole
        found = self._leaf_sums.get(expression)
        if found is None:
            floors = [self._leaf_floor(at) for at in places_of(expression)]
            found = sum(each[1] for each in floors), sum(each[2] for each in floors)
            self._leaf_sums[expression] = found
        return (
            found[0] - sum(self._leaf_floor(at)[1] for at in places_of(expression & without)) if without else found[0]
        )

    def _leaf_floor(self, at: int) -> tuple[int, int, int]:
        """The least that a relation costs alone, as an input of a join, and the join for looking at its rows."""
        bit = 1 << at
        found = self._leaf_floors.get(bit)
        if found is None:
            node = (bit, self._home[at] << _PLACE)
            alone = min(self.local(node, each) for each in self.alternatives(node) if each.left is None) + self.own(
                node
            )
            looked_up = cost.scaled(cost.OPEN, self.scales.get(bit, 0)) if self._tables[at].indexes else alone
            found = alone, min(alone, looked_up), 0 if looked_up < alone else int(self.rows(bit) * cost.ROW)
            self._leaf_floors[bit] = found
        return found
