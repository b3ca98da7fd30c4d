"""Figures as text: exact values in, decimal digits out, rounded half up by integer arithmetic.

The browser runs a translation of this file, so it holds plain functions on whole numbers and strings. Every value
arrives as a ratio of two whole numbers; the marks of a language (decimal, group, minus) are arguments. Rules and
expected texts: sections 3 and 12 of the project's typography study, copied into tests/test_units.py.
"""

import math

GB = 1000000000
GIB = 1073741824
MIB = 1048576
MILLION = 1000000
BILLION = 1000000000


def power_of_ten(exponent):
    """10 to a small whole exponent ≥ 0."""
    power = 1
    while exponent > 0:
        power = power * 10
        exponent = exponent - 1
    return power


def rounded(numerator, denominator, decimals):
    """The ratio in units of the last decimal, half up: rounded(5, 2, 0) is 3, rounded(1, 8, 2) is 13.

    numerator    whole number ≥ 0
    denominator  whole number > 0
    """
    # Whole part and rest apart: with the rest below the denominator nothing passes 2^53 where a byte count is below it.
    whole = numerator // denominator
    rest = numerator - whole * denominator
    scale = power_of_ten(decimals)
    return whole * scale + (2 * rest * scale + denominator) // (2 * denominator)


def grouped(number, group):
    """The digits of a whole number ≥ 0 with a group mark every three digits, from five digits on."""
    if number < 10000:
        return str(number)
    text = ""
    while number >= 1000:
        rest = number % 1000
        digits = str(rest)
        if rest < 10:
            digits = "00" + digits
        elif rest < 100:
            digits = "0" + digits
        text = group + digits + text
        number = number // 1000
    return str(number) + text


def scaled_text(scaled, decimals, trim, decimal, group):
    """A whole number ≥ 0 of units of the last decimal as text; `trim` cuts trailing zeros after the decimal mark."""
    if trim:
        while decimals > 0 and scaled % 10 == 0:
            scaled = scaled // 10
            decimals = decimals - 1
    scale = power_of_ten(decimals)
    whole = scaled // scale
    if decimals == 0:
        return grouped(whole, group)
    digits = str(scaled - whole * scale)
    missing = decimals - len(digits)
    while missing > 0:
        digits = "0" + digits
        missing = missing - 1
    return grouped(whole, group) + decimal + digits


def decimal_text(numerator, denominator, decimals, trim, decimal, group, minus):
    """The ratio of two whole numbers (denominator > 0) with a number of decimals, half away from zero.

    A negative value that rounds to zero has no minus.
    """
    size = numerator
    if numerator < 0:
        size = -numerator
    scaled = rounded(size, denominator, decimals)
    text = scaled_text(scaled, decimals, trim, decimal, group)
    if numerator < 0 and scaled > 0:
        return minus + text
    return text


def gb_decimals(byte_count):
    """Decimals of an amount in GB: two below 1, one below 100, else none; the class is chosen after rounding."""
    size = byte_count
    if byte_count < 0:
        size = -byte_count
    if rounded(size, GB, 2) < 100:
        return 2
    if rounded(size, GB, 1) < 1000:
        return 1
    return 0


def gb_column_decimals(byte_counts):
    """Decimals of a column of amounts in GB: those of its largest value, at least one."""
    largest = 0
    for byte_count in byte_counts:
        largest = max(largest, byte_count, -byte_count)
    return max(1, gb_decimals(largest))


def gb_text(byte_count, decimal, group, minus):
    """Bytes as the number of GB (10⁹ bytes) for prose, without the unit: 16060522496 is 16,1."""
    return decimal_text(byte_count, GB, gb_decimals(byte_count), True, decimal, group, minus)


def gb_column_text(byte_count, decimals, decimal, group, minus):
    """Bytes as the number of GB for a column, whose decimals are kept: 16000000000 is 16,0."""
    return decimal_text(byte_count, GB, decimals, False, decimal, group, minus)


def gib_text(byte_count, decimal, group, minus):
    """Bytes as the number of GiB (2³⁰ bytes), two decimals as PyTorch prints it."""
    return decimal_text(byte_count, GIB, 2, False, decimal, group, minus)


def percent_decimals(numerator, denominator):
    """Decimals of a ratio printed as percent: two significant digits, at most two decimals, chosen after rounding."""
    size = numerator
    if numerator < 0:
        size = -numerator
    if rounded(size * 100, denominator, 2) < 100:
        return 2
    if rounded(size * 100, denominator, 1) < 100:
        return 1
    return 0


def percent_text(numerator, denominator, decimal, group, minus):
    """A ratio as the number of percent, without the sign: 41943040 of 8030261248 is 0,52."""
    decimals = percent_decimals(numerator, denominator)
    return decimal_text(numerator * 100, denominator, decimals, True, decimal, group, minus)


def significant_decimals(numerator, denominator, digits):
    """Decimals that leave a ratio ≥ 0 so many significant digits; below 1 as many decimals as digits."""
    if rounded(numerator, denominator, digits) < power_of_ten(digits):
        return digits
    decimals = digits - 1
    limit = 10
    while decimals > 0 and rounded(numerator, denominator, decimals) >= limit * power_of_ten(decimals):
        decimals = decimals - 1
        limit = limit * 10
    return decimals


def count_scale(count):
    """The word that a count is printed with, as a number: 10⁹, 10⁶ or 1; 999 960 000 rounds to a billion."""
    if rounded(count, MILLION, 0) >= 1000:
        return BILLION
    if count >= MILLION:
        return MILLION
    return 1


def count_text(count, decimal, group):
    """The number before billion or million (see `count_scale`), three significant digits: 8030261248 is 8,03."""
    scale = count_scale(count)
    if scale == 1:
        return grouped(count, group)
    decimals = significant_decimals(count, scale, 3)
    return scaled_text(rounded(count, scale, decimals), decimals, True, decimal, group)


def significant_text(numerator, denominator, digits, decimal, group):
    """A ratio ≥ 0 with so many significant digits, also before the decimal mark: 3923 of 1 is 3900, 35 of 10 is 3,5."""
    whole = rounded(numerator, denominator, 0)
    step = 1
    while whole >= step * power_of_ten(digits):
        step = step * 10
    if step > 1:
        return grouped(rounded(numerator, denominator * step, 0) * step, group)
    decimals = significant_decimals(numerator, denominator, digits)
    return scaled_text(rounded(numerator, denominator, decimals), decimals, True, decimal, group)


SECOND = 1
MINUTE = 60
HOUR = 3600
DAY = 86400


def time_unit(seconds):
    """Seconds of the unit that an estimated time of so many seconds is printed in: from 90 s minutes, from 90 min hours, from 72 h days."""
    if seconds < 90:
        return SECOND
    if seconds < 90 * MINUTE:
        return MINUTE
    if seconds < 72 * HOUR:
        return HOUR
    return DAY


def hours_and_minutes(seconds):
    """Seconds ≥ 0 (whole or not) as [hours, minutes], rounded half up to the minute."""
    minutes = math.floor(seconds / 60 + 0.5)
    return [minutes // 60, minutes % 60]
