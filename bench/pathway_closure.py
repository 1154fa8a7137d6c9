"""The closure of a graph in Pathway, with updates behind each other in its stream; prints the seconds the run took.

Reads (edges, updated edges, operation) from standard input.
"""

from __future__ import annotations

import ast
import sys
import time

import pathway as pw


def main() -> None:
    edges, chosen, op = ast.literal_eval(sys.stdin.read())
    start = edges if op == "-" else [edge for edge in edges if edge not in set(chosen)]

    class Updates(pw.io.python.ConnectorSubject):
        def run(self) -> None:
            for x, y in start:
                self.next(x=x, y=y)
            self.commit()
            for x, y in chosen:
                if op == "-":
                    self.delete(x=x, y=y)
                else:
                    self.next(x=x, y=y)
                self.commit()

    class Link(pw.Schema):
        x: int = pw.column_definition(primary_key=True)
        y: int = pw.column_definition(primary_key=True)

    link = pw.io.python.read(Updates(), schema=Link, autocommit_duration_ms=None)

    def step(reach: pw.Table, link: pw.Table) -> dict[str, pw.Table]:
        longer = reach.join(link, reach.y == link.x).select(x=reach.x, y=link.y)
        both = link.concat_reindex(longer)
        return {"reach": both.groupby(pw.this.x, pw.this.y).reduce(pw.this.x, pw.this.y), "link": link}

    first = link.groupby(pw.this.x, pw.this.y).reduce(pw.this.x, pw.this.y)
    reach = pw.iterate(step, reach=pw.iterate_universe(first), link=link).reach
    pw.io.null.write(reach)
    began = time.perf_counter()
    pw.run(monitoring_level=pw.MonitoringLevel.NONE)
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main()
