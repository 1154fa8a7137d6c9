def digit_sum(x):
    return sum(int(d) for d in str(abs(x)))
