"""Small pieces of HTML by which objects show themselves in notebooks.

Colours are those of the page around, light or dark: text has the page's own, lines and shades are made of it. Everything that
comes from data or programs is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

_STYLE = (
    "<style>"
    ".whence{font-size:.9em;max-width:100%;overflow-x:auto}"
    ".whence table{border-collapse:collapse;margin:.3em 0;background:none}"
    ".whence th,.whence td{text-align:left;padding:.15em .8em .15em 0;border:0;"
    "border-bottom:1px solid color-mix(in srgb,currentColor 20%,transparent);background:none}"
    ".whence th,.whence .q{opacity:.7;font-weight:normal}"
    ".whence td.n{text-align:right;font-variant-numeric:tabular-nums}"
    ".whence pre{margin:.3em 0;background:none;color:inherit;white-space:pre;line-height:1.3}"
    ".whence .in{color:light-dark(#1a7f37,#3fb950)}.whence .out{color:light-dark(#cf222e,#f85149)}"
    "</style>"
)
_DEEP = 4  # what is nested deeper is left out
_LONG = 20  # so are items of a list
SHOWN_ROWS = 20  # of a table


def shown_block(*parts: str) -> str:
    """What a notebook is given: the parts below each other, with their style."""
    return f'{_STYLE}<div class="whence">{"".join(parts)}</div>'


def shown_title(text: str, quiet: str = "") -> str:
    return f'<div><b>{escape(text)}</b> <span class="q">{escape(quiet)}</span></div>'


def shown_text(text: str) -> str:
    return f"<pre>{escape(text)}</pre>"


def shown_table(head: Sequence[str], rows: Iterable[Sequence[object]], *, classes: Sequence[str] = ()) -> str:
    """Values as they are; `classes` are of the rows, in order, if they have some.

    >>> shown_table(["x"], [["<b>"], [2]])
    '<table><tr><th>x</th></tr><tr><td>&lt;b&gt;</td></tr><tr><td class="n">2</td></tr></table>'
    """
    lines = ["<tr>" + "".join(f"<th>{escape(each)}</th>" for each in head) + "</tr>"]
    for at, row in enumerate(rows):
        mark = f' class="{classes[at]}"' if classes else ""
        lines.append(f"<tr{mark}>" + "".join(map(_cell, row)) + "</tr>")
    return f"<table>{''.join(lines)}</table>"


def shown_note(text: str) -> str:
    return f'<div class="q">{escape(text)}</div>'


def _cell(value: object) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool):
        return f'<td class="n">{value}</td>'
    return f"<td>{escape(value_text(value))}</td>"


def value_text(value: object, depth: int = 0) -> str:
    """A value as it is written in programs, cut off where it gets long.

    >>> value_text(("a", (1, None))), value_text((((((1,),),),),))
    ('["a", [1, nil]]', '[[[[[…]]]]]')
    """
    if value is None:
        return "nil"
    if isinstance(value, str):
        return value if depth == 0 else f'"{value}"'
    branch, parts = getattr(value, "branch", None), getattr(value, "args", value)
    if not isinstance(parts, tuple):
        return str(value)
    shown = [value_text(each, depth + 1) for each in parts[:_LONG]] if depth < _DEEP else ["…"] if parts else []
    more = ["…"] if len(parts) > _LONG and depth < _DEEP else []
    inside = ", ".join([*shown, *more])
    return f"[{inside}]" if branch is None else f"${branch}({inside})" if parts else f"${branch}"
