"""Plans as pictures: a tree in SVG, and a page with what else was considered."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from whence.optimizer.best_first import Optimizer
from whence.optimizer.plans import Plan
from whence.optimizer.query_space import QuerySpace
from whence.optimizer.show import alone, cost_text, detail, names_of, plan_lines, pruned

_WIDTH, _HEIGHT, _ACROSS, _DOWN = 190, 50, 16, 34
_FILLS = {"scan": "#d9ead3", "join": "#dce6f5", "sort": "#fff2cc", "ship": "#fce5cd", "aggregate": "#ead1dc"}


@dataclass
class _Box:
    plan: Plan
    x: float
    depth: int
    below: list[_Box]


def draw_plan(space: QuerySpace, plan: Plan) -> str:
    """Each operator is a box over its inputs; what it costs by itself is a bar along its foot."""
    boxes: list[_Box] = []
    _place(plan, 0, [0.0], boxes)
    width = max(box.x for box in boxes) + _WIDTH + 8
    height = (max(box.depth for box in boxes) + 1) * (_HEIGHT + _DOWN) - _DOWN + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height}" viewBox="0 0 {width:.0f} {height}" '
        'font-family="DejaVu Sans, sans-serif" font-size="11">',
        f'<rect width="{width:.0f}" height="{height}" fill="#ffffff"/>',
    ]
    for box in boxes:
        for each in box.below:
            x, y = box.x + _WIDTH / 2, _top(box) + _HEIGHT
            parts.append(
                f'<path d="M{x:.0f} {y} L{each.x + _WIDTH / 2:.0f} {_top(each)}" stroke="#999999" fill="none"/>'
            )
    parts += [_drawn(space, box, plan.cost) for box in boxes]
    return "\n".join([*parts, "</svg>"])


def _place(plan: Plan, depth: int, free: list[float], boxes: list[_Box]) -> _Box:
    """Leaves side by side, what reads them above their middle."""
    below = [_place(each, depth + 1, free, boxes) for each in plan.inputs]
    if below:
        x = (below[0].x + below[-1].x) / 2
    else:
        x, free[0] = free[0] + 8, free[0] + _WIDTH + _ACROSS
    box = _Box(plan, x, depth, below)
    boxes.append(box)
    return box


def _top(box: _Box) -> int:
    return 8 + box.depth * (_HEIGHT + _DOWN)


def _drawn(space: QuerySpace, box: _Box, whole: int) -> str:
    plan, y = box.plan, _top(box)
    share = alone(plan) / whole if whole else 0.0
    name = plan.alternative.physical + detail(space, plan.node, plan.alternative)
    what = ", ".join(names_of(space, plan.node[0]))
    shown = what if len(what) <= 30 else f"{len(names_of(space, plan.node[0]))} relations"
    numbers = f"{space.rows(plan.node[0]):,.0f} rows, cost {cost_text(alone(plan))}"
    lines = [(14, name, ' font-weight="bold"'), (28, shown, ""), (41, numbers, ' fill="#555555"')]
    texts = "".join(
        f'<text x="{box.x + _WIDTH / 2:.0f}" y="{y + down}" text-anchor="middle"{style}>{escape(text)}</text>'
        for down, text, style in lines
    )
    fill = _FILLS[plan.alternative.logical]
    return (
        f'<g><title>{escape(what)}</title><rect x="{box.x:.0f}" y="{y}" width="{_WIDTH}" height="{_HEIGHT}" rx="5" '
        f'fill="{fill}" stroke="#888888"/>{texts}'
        f'<rect x="{box.x:.0f}" y="{y + _HEIGHT - 4}" width="{_WIDTH * share:.1f}" height="4" fill="#cc4125"/></g>'
    )


def plan_page(space: QuerySpace, optimizer: Optimizer, text: str) -> str:
    """A page: the query, the picture, what was pruned, and for each operator of the plan what it was chosen from."""
    plan = optimizer.plan()
    counted = pruned(optimizer, space)
    tables = "\n".join(_considered(space, optimizer, each) for each in plan.walk() if len(each.inputs) > 0)
    lines = "\n".join(counted.lines()) if counted is not None else ""
    return f"""<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>Plan</title><style>
body {{ font-family: sans-serif; margin: 2em; }} pre {{ background: #f5f5f5; padding: 1em; overflow-x: auto; }}
table {{ border-collapse: collapse; margin: .5em 0 1.5em; }}
td, th {{ padding: .2em .8em; text-align: left; border-bottom: 1px solid #ddd; }}
td.number {{ text-align: right; }} tr.chosen {{ font-weight: bold; }}
</style></head><body>
<h1>Plan</h1><pre>{escape(text.strip())}</pre>
{draw_plan(space, plan)}
<pre>{escape(chr(10).join(plan_lines(space, plan)))}</pre>
<h2>What was pruned</h2><pre>{escape(lines)}</pre>
<h2>What each operator was chosen from</h2>
{tables}
</body></html>
"""


def _considered(space: QuerySpace, optimizer: Optimizer, plan: Plan) -> str:
    rows = ""
    for bound, each in optimizer.considered(plan.node):
        mark = ' class="chosen"' if each is plan.alternative else ""
        cells = [each.physical + detail(space, plan.node, each), _inputs(space, each.left, each.right)]
        texts = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        rows += f'<tr{mark}>{texts}<td class="number">{cost_text(bound)}</td></tr>\n'
    heading = escape(", ".join(names_of(space, plan.node[0])))
    return f"<h3>{heading}</h3><table><tr><th>operator</th><th>inputs</th><th>cost, at least</th></tr>{rows}</table>"


def _inputs(space: QuerySpace, *reads: tuple[int, int] | None) -> str:
    return " and ".join("(" + ", ".join(names_of(space, each[0])) + ")" for each in reads if each is not None)
