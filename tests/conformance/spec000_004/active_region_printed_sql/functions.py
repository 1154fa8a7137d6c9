import math


def distance(a: str, b: str) -> float:
    ax, ay = map(float, a.split())
    bx, by = map(float, b.split())
    return math.hypot(bx - ax, by - ay)
