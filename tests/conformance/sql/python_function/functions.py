def hops(a: str, b: str) -> int:
    return sum(p != q for p, q in zip(a, b, strict=True))
