"""A run over time: the traffic, and how many rows of the views were wrong, epoch by epoch. SVG, without any library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

WIDTH, HEIGHT, LEFT, TOP, GAP = 860, 150, 70, 34, 60
BINS = 160


@dataclass(frozen=True)
class Span:
    """An epoch: from when to when, and how many rows were wrong after each moment in it."""

    epoch: int
    begins: float
    ends: float
    wrong: Sequence[tuple[float, int]]


def draw_run(title: str, moments: Sequence[tuple[float, int]], spans: Sequence[Span]) -> str:
    """The bytes sent at each moment, in bars, above the number of wrong rows, in steps. Epochs with wrong rows are shaded."""
    end = max([span.ends for span in spans] + [time for time, _ in moments], default=0.0) or 1.0
    bins = [0] * BINS
    for time, size in moments:
        bins[min(int(time / end * BINS), BINS - 1)] += size
    worst = max((count for span in spans for _, count in span.wrong), default=0)
    second = TOP + HEIGHT + GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH + LEFT + 20} {second + HEIGHT + 40}" '
        'font-family="sans-serif" font-size="12">',
        f'<text x="{LEFT}" y="16" font-size="14">{escape(title)}</text>',
    ]
    parts += _shades(spans, end, second)
    parts += _axis(TOP, f"{max(bins):,}", f"bytes in {end / BINS * 1000:,.2f} ms")
    parts += _axis(second, f"{worst:,}", "wrong rows")
    top = max(bins) or 1
    width = WIDTH / BINS
    for number, size in enumerate(bins):
        if size:
            height = size / top * HEIGHT
            parts.append(
                f'<rect x="{LEFT + number * width:.1f}" y="{TOP + HEIGHT - height:.1f}" width="{max(width - 0.5, 0.5):.1f}" '
                f'height="{height:.1f}" fill="#37c"/>'
            )
    parts.append(_steps(spans, end, second, worst or 1))
    parts.append(f'<text x="{LEFT + WIDTH}" y="{second + HEIGHT + 18}" text-anchor="end">{end * 1000:,.1f} ms</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _x(time: float, end: float) -> float:
    return LEFT + time / end * WIDTH


def _axis(top: float, highest: str, what: str) -> list[str]:
    bottom = top + HEIGHT
    return [
        f'<line x1="{LEFT}" y1="{bottom}" x2="{LEFT + WIDTH}" y2="{bottom}" stroke="#444"/>',
        f'<line x1="{LEFT}" y1="{top}" x2="{LEFT}" y2="{bottom}" stroke="#444"/>',
        f'<text x="{LEFT - 6}" y="{top + 10}" text-anchor="end">{highest}</text>',
        f'<text x="{LEFT - 6}" y="{bottom}" text-anchor="end">0</text>',
        f'<text x="{LEFT + 4}" y="{top - 6}">{escape(what)}</text>',
    ]


def _shades(spans: Sequence[Span], end: float, second: float) -> list[str]:
    parts = []
    label_after = -100.0
    for span in spans:
        left, right = _x(span.begins, end), _x(span.ends, end)
        if span.wrong:
            wrong_until = _x(max(time for time, _ in span.wrong), end)
            parts.append(
                f'<rect x="{left:.1f}" y="{second}" width="{max(wrong_until - left, 1):.1f}" height="{HEIGHT}" fill="#fdd"/>'
            )
        parts.append(f'<line x1="{left:.1f}" y1="{TOP}" x2="{left:.1f}" y2="{second + HEIGHT}" stroke="#ccc"/>')
        if left - label_after > 30 and right - left > 0:
            parts.append(f'<text x="{left + 2:.1f}" y="{second + HEIGHT + 18}" fill="#666">{span.epoch}</text>')
            label_after = left
    return parts


def _steps(spans: Sequence[Span], end: float, top: float, worst: int) -> str:
    points = [f"{LEFT},{top + HEIGHT}"]
    for span in spans:
        known = 0
        for time, count in span.wrong:
            x = _x(time, end)
            points.append(f"{x:.1f},{top + HEIGHT - known / worst * HEIGHT:.1f}")
            known = count
            points.append(f"{x:.1f},{top + HEIGHT - known / worst * HEIGHT:.1f}")
    points.append(f"{LEFT + WIDTH},{top + HEIGHT}")
    return f'<polyline points="{" ".join(points)}" fill="none" stroke="#b22" stroke-width="1.5"/>'


def as_page(title: str, svg: str, rows: Sequence[tuple[str, str]]) -> str:
    """The picture on a page of its own, above a table."""
    cells = "".join(f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>" for name, value in rows)
    style = "body{font:14px sans-serif;max-width:1000px;margin:2em auto}th{text-align:left;padding-right:2em}"
    return (
        f'<!doctype html>\n<meta charset="utf-8">\n<title>{escape(title)}</title>\n<style>{style}</style>\n'
        f"{svg}<table>{cells}</table>\n"
    )
