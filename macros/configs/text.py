"""Small things about texts that the translated subset of Python has no methods for."""

from __future__ import annotations

from dataclasses import dataclass, field

BLANKS = " \t"
DIGITS = "0123456789"
LETTERS = "abcdefghijklmnopqrstuvwxyz"
CAPITALS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
TRUE = ("true", "yes", "on", "1")
FALSE = ("false", "no", "off", "0")
NOTHING = ("", "null", "none", "~")


@dataclass
class Tree:
    """A text as it was read: every value is text, a list or a mapping, because each framework converts by itself.

    lines    line of each key, by the keys down to it joined with dots
    errors   {"line", "says", "values"}: what could not be read; the rest of the text is here all the same
    """

    value: dict[str, object] = field(default_factory=dict)
    lines: dict[str, int] = field(default_factory=dict)
    errors: list[dict[str, object]] = field(default_factory=list)

    def wrong(self, line: int, says: str, what: str = "") -> None:
        """Note what cannot be read; `what` is the piece of text."""
        self.errors.append({"line": line, "says": says, "values": {"text": what} if what else {}})


def trimmed(text: str, blanks: str = BLANKS) -> str:
    """The text without blanks at both ends."""
    signs = list(text)
    end = len(signs)
    while end > 0 and signs[end - 1] in blanks:
        end -= 1
    start = 0
    while start < end and signs[start] in blanks:
        start += 1
    return "".join(signs[start:end])


def lowered(text: str) -> str:
    """ASCII letters small."""
    return "".join(LETTERS[list(CAPITALS).index(sign)] if sign in CAPITALS else sign for sign in list(text))


def number(text: str) -> int | float | None:
    """What a decimal number says, as Python's float reads it but whole wherever it is; None for another text."""
    body = text.removeprefix("-")
    mantissa, mark, exponent = lowered(body).partition("e")
    whole, _, rest = mantissa.partition(".")
    digits = whole + rest
    power = exponent.removeprefix("-").removeprefix("+")
    if not _digits(digits) or (mark and not _digits(power)) or len(digits) > 15 or len(power) > 2:
        return None
    value = -_whole(digits) if text.startswith("-") else _whole(digits)
    shift = (_whole(power) if mark else 0) * (-1 if exponent.startswith("-") else 1) - len(rest)
    # Digits and power of ten are exact within these bounds, so that the one division rounds as float(text) does.
    if shift < -22 or shift > 6:
        return None
    if shift >= 0:
        return value * 10**shift
    return value // 10**-shift if value % 10**-shift == 0 else value / 10**-shift


def _whole(digits: str) -> int:
    value = 0
    for sign in list(digits):
        value = 10 * value + list(DIGITS).index(sign)
    return value


def _digits(text: str) -> bool:
    return bool(text) and all(sign in DIGITS for sign in list(text))
