def reverse(s):
    return s[::-1]


def vowels(s):
    return sum(c in "aeiou" for c in s)


def repeat(s, n):
    return s * n
