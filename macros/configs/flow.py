"""YAML's flow style, of which JSON is a part: `[a, "b"]` and `{c: 1}`, also over several lines."""

from __future__ import annotations

from .text import BLANKS, Tree, trimmed

_SPACE = BLANKS + "\n"
_ESCAPES = {
    "n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "/": "/", "0": "\0", "b": "\b", "f": "\f", "e": "\x1b", " ": " ",
}  # fmt: skip
_HEX = "0123456789abcdef"


class Flow:
    """Reads one value that begins at the place of a text; afterwards `place` is behind it.

    failed   the first thing that is wrong, {"says", "what", "place"}, after which nothing else is read
    """

    def __init__(self, signs: list[str], place: int) -> None:
        self.signs = signs
        self.place = place
        self.failed: dict[str, object] = {}
        # Where each key stands: [keys joined with dots, place].
        self.keys: list[tuple[str, int]] = []

    def fail(self, says: str, what: str = "") -> str:
        if not self.failed:
            self.failed = {"says": says, "what": what, "place": self.place}
        return ""

    def sign(self) -> str:
        return self.signs[self.place] if self.place < len(self.signs) else ""

    def skip(self) -> None:
        """Go to the next sign that is no blank, line end or comment."""
        while self.place < len(self.signs):
            if self.signs[self.place] == "#" and (self.place == 0 or self.signs[self.place - 1] in _SPACE):
                while self.place < len(self.signs) and self.signs[self.place] != "\n":
                    self.place += 1
            elif self.signs[self.place] in _SPACE:
                self.place += 1
            else:
                return

    def item(self, path: str) -> object:
        """Any value."""
        self.skip()
        sign = self.sign()
        if sign == "[":
            return self.listed(path)
        if sign == "{":
            return self.mapping(path)
        return self.scalar()

    def scalar(self) -> str:
        sign = self.sign()
        if sign in ('"', "'") and sign:
            return self.quoted()
        if sign in ("&", "*"):
            return self.fail("config.anchor", self.word())
        if sign in ("!", "|", ">", "%", "@", "`"):
            return self.fail("config.sign", sign)
        return self.word()

    def word(self) -> str:
        """A value without quotes."""
        start = self.place
        while self.place < len(self.signs):
            sign = self.signs[self.place]
            after = self.signs[self.place + 1] if self.place + 1 < len(self.signs) else "\n"
            if sign in ",[]{}\n" or (sign == ":" and after in _SPACE + ",[]{}") or (sign in BLANKS and after == "#"):
                break
            self.place += 1
        text = trimmed("".join(self.signs[start : self.place]))
        self.skip()
        if self.sign() not in ("", ",", "]", "}", ":"):
            return self.fail("config.several_lines", text)
        return text

    def quoted(self) -> str:
        """A text in quotes; a line end inside it counts as a blank."""
        quote = self.sign()
        self.place += 1
        parts: list[str] = []
        while self.place < len(self.signs):
            sign = self.signs[self.place]
            after = self.signs[self.place + 1] if self.place + 1 < len(self.signs) else ""
            if sign == quote and quote == "'" and after == "'":
                parts.append("'")
                self.place += 2
            elif sign == quote:
                self.place += 1
                return "".join(parts)
            elif sign == "\n":
                return self.fail("config.several_lines", "".join(parts))
            elif sign == "\\" and quote == '"':
                self.place += 2
                parts.append(self.escape(after))
            else:
                parts.append(sign)
                self.place += 1
        return self.fail("config.quote", "".join(parts[:40]))

    def escape(self, sign: str) -> str:
        length = {"x": 2, "u": 4, "U": 8}.get(sign, 0)
        if not length:
            return _ESCAPES[sign] if sign in _ESCAPES else self.fail("config.escape", "\\" + sign)
        code = self.hexadecimal(length)
        if 0xD800 <= code < 0xDC00 and self.signs[self.place : self.place + 2] == ["\\", "u"]:
            # JSON writes a sign beyond 16 bits as two halves.
            self.place += 2
            code = 0x10000 + (code - 0xD800) * 0x400 + (self.hexadecimal(4) - 0xDC00)
        if code < 0 or 0xD800 <= code < 0xE000 or code > 0x10FFFF:
            return self.fail("config.escape", "\\" + sign)
        return chr(code)

    def hexadecimal(self, length: int) -> int:
        """The number that the next digits write; negative where they are none."""
        code = 0
        for sign in self.signs[self.place : self.place + length]:
            small = {"A": "a", "B": "b", "C": "c", "D": "d", "E": "e", "F": "f"}.get(sign, sign)
            if small not in _HEX:
                return -1
            code = 16 * code + list(_HEX).index(small)
        self.place += length
        return code

    def listed(self, path: str) -> list[object]:
        items: list[object] = []
        self.place += 1
        self.skip()
        while not self.failed and self.sign() != "]":
            if self.sign() in ("", ",", "}", ":"):
                self.fail("config.bracket", "[")
                return items
            items.append(self.item(f"{path}.{len(items)}"))
            self.separator("]")
        self.place += 1
        return items

    def mapping(self, path: str) -> dict[str, object]:
        found: dict[str, object] = {}
        self.place += 1
        self.skip()
        while not self.failed and self.sign() != "}":
            if self.sign() in ("", ",", "]", "[", "{", ":"):
                self.fail("config.bracket", "{")
                return found
            start = self.place
            key = self.scalar()
            self.skip()
            name = f"{path}.{key}" if path else key
            if key in found:
                self.fail("config.twice", key)
            self.keys.append((name, start))
            value: object = ""
            if self.sign() == ":":
                self.place += 1
                self.skip()
                if self.sign() not in (",", "}"):
                    value = self.item(name)
            found[key] = value
            self.separator("}")
        self.place += 1
        return found

    def separator(self, end: str) -> None:
        """A comma, or the end."""
        self.skip()
        if self.sign() == ",":
            self.place += 1
            self.skip()
        elif self.sign() != end:
            self.fail("config.bracket", "[" if end == "]" else "{")


def read_flow(tree: Tree, text: str, line: int, path: str) -> tuple[object, int]:
    """The value at the beginning of a text whose first line is `line`, and how many lines it takes; errors go to `tree`."""
    reader = Flow(list(text), 0)
    value = reader.item(path)
    start = reader.place
    if not reader.failed:
        rest = "".join(reader.signs[start:]).partition("\n")[0]
        if trimmed(rest.partition(" #")[0]) and not trimmed(rest).startswith("#"):
            reader.fail("config.after_value", trimmed(rest))
    for name, place in reader.keys:
        tree.lines.setdefault(name, line + reader.signs[:place].count("\n"))
    if reader.failed:
        place = reader.failed["place"]
        tree.wrong(line + reader.signs[:place].count("\n"), reader.failed["says"], reader.failed["what"])
    return value, reader.signs[:start].count("\n") + 1
