"""Reads the YAML that training configurations are written in; every value stays text.

Maps and lists by indentation, inline lists and maps (so JSON too), both kinds of quotes, comments, `|` and `>` texts.
Refused by name, with the line: anchors and aliases, tags, several documents, complex keys, plain or quoted values that
run over several lines. A line that cannot be read is left out with what stands below it; the rest is read.
Source: YAML 1.2.2, chapters 6 to 8; checked against PyYAML (tests/test_configs_reading.py).
"""

from __future__ import annotations

from .flow import read_flow
from .text import BLANKS, Tree, trimmed

_DEEPEST = 24


class Reader:
    """The lines of one text and where reading stands."""

    def __init__(self, text: str) -> None:
        self.lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
        self.place = 0
        self.tree = Tree()

    def indent(self) -> int:
        """Blanks before the next line with something on it, which becomes the current one; -1 at the end."""
        while self.place < len(self.lines):
            body = trimmed(self.lines[self.place])
            if body and not body.startswith("#") and body != "---":
                return blanks_before(self.lines[self.place])
            if body == "---" and (self.tree.lines or self.place != self.first()):
                self.tree.wrong(self.place + 1, "config.documents")
                self.place = len(self.lines)
                return -1
            self.place += 1
        return -1

    def first(self) -> int:
        """The first line that is neither empty nor a comment."""
        for place, line in enumerate(self.lines):
            body = trimmed(line)
            if body and not body.startswith("#"):
                return place
        return 0

    def wrong(self, says: str, what: str = "") -> str:
        """Note that the current line cannot be read, and leave it out with what is deeper."""
        self.tree.wrong(self.place + 1, says, what)
        self.leave(blanks_before(self.lines[self.place]))
        return ""

    def leave(self, indent: int) -> None:
        """Skip the current line and all that are deeper."""
        self.place += 1
        while self.indent() > indent:
            self.place += 1

    def block(self, indent: int, path: str) -> object:
        """The map or list whose first line is the current one."""
        if len(path.split(".")) > _DEEPEST:
            return self.wrong("config.deep")
        body = self.lines[self.place][indent:]
        if body == "-" or body.startswith("- "):
            return self.listed(indent, path)
        return self.mapping(indent, path)

    def listed(self, indent: int, path: str) -> list[object]:
        items: list[object] = []
        while self.indent() == indent:
            line = self.lines[self.place]
            if line[indent:] != "-" and not line[indent:].startswith("- "):
                break
            rest = line[indent + 1 :]
            name = f"{path}.{len(items)}"
            inner = trimmed(rest)
            if has_key(inner) or inner == "-" or inner.startswith("- "):
                # What stands behind the dash is the first line of a block that begins there.
                self.lines[self.place] = " " * (indent + 1) + rest
                items.append(self.block(blanks_before(self.lines[self.place]), name))
            else:
                items.append(self.value(indent, rest, name))
        self.deeper(indent)
        return items

    def mapping(self, indent: int, path: str) -> dict[str, object]:
        found: dict[str, object] = {}
        while self.indent() == indent:
            body = self.lines[self.place][indent:]
            if body == "-" or body.startswith("- "):
                break
            if body.startswith("\t"):
                self.wrong("config.tab")
                continue
            key, rest, problem = split_key(body)
            if problem:
                self.wrong(problem, trimmed(body))
                continue
            name = f"{path}.{key}" if path else key
            if key in found:
                self.wrong("config.twice", key)
                continue
            self.tree.lines[name] = self.place + 1
            found[key] = self.value(indent, rest, name)
        self.deeper(indent)
        return found

    def deeper(self, indent: int) -> None:
        """Name lines that are deeper than their neighbours without belonging to one."""
        while self.indent() > indent:
            self.wrong("config.indentation", trimmed(self.lines[self.place]))

    def value(self, indent: int, rest: str, path: str) -> object:
        """What stands behind a colon or a dash, with the lines below that belong to it."""
        text = uncommented(rest)
        sign = text[:1]
        if sign in ("|", ">") and sign:
            return self.folded(indent, text)
        if sign in ("&", "*"):
            return self.wrong("config.anchor", text)
        if sign in ("!", "%", "@", "`") and sign:
            return self.wrong("config.sign", sign)
        if sign in ("[", "{", '"', "'") and sign:
            below = self.lines[self.place + 1 :] if sign in ("[", "{") else []
            value, taken = read_flow(self.tree, "\n".join([text, *below]), self.place + 1, path)
            self.advance(taken)
            while self.indent() > indent:
                self.wrong("config.indentation", trimmed(self.lines[self.place]))
            return value
        dashed = is_dash(self.lines[self.place][indent:])
        self.place += 1
        below = self.indent()
        if text:
            if below > indent:
                self.tree.wrong(self.place + 1, "config.several_lines", text)
                self.leave(indent)
            return text
        if below > indent and not is_dash(trimmed(self.lines[self.place])) and not has_key(trimmed(self.lines[self.place])):
            return self.value(indent, self.lines[self.place], path)
        # A list may stand as deep as the key that it belongs to.
        if below > indent or (below == indent and not dashed and is_dash(self.lines[self.place][indent:])):
            return self.block(below, path)
        return ""

    def advance(self, lines: int) -> None:
        self.place += lines

    def folded(self, indent: int, header: str) -> str:
        """A text behind `|` or `>`: its lines without the indentation."""
        keeps = "+" in header
        strips = "-" in header
        if trimmed(header[1:], "+-"):
            return self.wrong("config.sign", header)
        self.place += 1
        inner = -1
        lines: list[str] = []
        while self.place < len(self.lines):
            line = self.lines[self.place]
            if trimmed(line, " "):
                blanks = blanks_before(line)
                inner = blanks if inner < 0 else inner
                if blanks < inner or blanks <= indent:
                    break
            lines.append(line[inner:] if inner >= 0 else "")
            self.place += 1
        # The text's own last line end is no line.
        if self.place == len(self.lines) and lines and not lines[-1]:
            lines.pop()
        ends = 0
        while lines and not lines[-1]:
            lines.pop()
            ends += 1
        body = "\n".join(lines) if header.startswith("|") else fold(lines)
        return body if strips or not body else body + "\n" * (1 + (ends if keeps else 0))


def fold(lines: list[str]) -> str:
    """Lines joined by blanks; empty lines and deeper ones keep their line ends."""
    text = ""
    for place, line in enumerate(lines):
        deeper = line[:1] in (" ", "\t")
        before = lines[place - 1] if place else ""
        if not place:
            text = line
        elif not line:
            text += "\n"
        elif not before:
            text += ("\n" if deeper or text_before_is_deep(lines, place) else "") + line
        else:
            text += ("\n" if deeper or before[:1] in (" ", "\t") else " ") + line
    return text


def text_before_is_deep(lines: list[str], place: int) -> bool:
    """Whether the last line with something on it before this place is deeper than the text."""
    for line in reversed(lines[:place]):
        if line:
            return line[:1] in (" ", "\t")
    return False


def is_dash(body: str) -> bool:
    """Whether a line is an item of a list."""
    return body == "-" or body.startswith("- ")


def blanks_before(line: str) -> int:
    count = 0
    for sign in list(line):
        if sign != " ":
            return count
        count += 1
    return count


def uncommented(text: str) -> str:
    """A value without the comment behind it and the blanks round it; a comment inside quotes or brackets is kept."""
    body = trimmed(text)
    if body[:1] in ('"', "'", "[", "{") and body:
        return body
    if body.startswith("#"):
        return ""
    signs = list(body)
    for place, sign in enumerate(signs):
        if sign == "#" and signs[place - 1] in BLANKS:
            return trimmed("".join(signs[:place]))
    return body


def has_key(body: str) -> bool:
    """Whether a line begins with a key and its colon."""
    if body[:1] in ("[", "{", "#") and body:
        return False
    _, _, problem = split_key(body)
    return not problem


def split_key(body: str) -> tuple[str, str, str]:
    """The key of a line, what stands behind the colon, and why it cannot be read (or "")."""
    signs = list(body)
    quote = signs[0] if signs and signs[0] in ('"', "'") else ""
    if signs and (signs[0] in ("&", "*") or body.startswith("<<")):
        return "", "", "config.anchor"
    if signs and (signs[0] in ("!", "%", "@", "`", "|", ">", "[", "{") or body.startswith("? ")):
        return "", "", "config.sign"
    if quote:
        end = 1
        while end < len(signs) and signs[end] != quote:
            end += 1
        key, rest = "".join(signs[1:end]), trimmed("".join(signs[end + 1 :]))
        return (key, rest[1:], "") if rest.startswith(":") and (len(rest) == 1 or rest[1] in BLANKS) else ("", "", "config.colon")
    for place, sign in enumerate(signs):
        if sign == ":" and (place + 1 == len(signs) or signs[place + 1] in BLANKS):
            key = trimmed("".join(signs[:place]))
            return (key, "".join(signs[place + 1 :]), "") if key else ("", "", "config.colon")
        if sign == "#" and place and signs[place - 1] in BLANKS:
            break
    return "", "", "config.colon"


def read_yaml(text: str) -> Tree:
    """The tree of a YAML or JSON text whose outermost value is a map."""
    reader = Reader(text)
    indent = reader.indent()
    if indent < 0:
        return reader.tree
    body = reader.lines[reader.place][indent:]
    if body.startswith("{"):
        value, taken = read_flow(reader.tree, "\n".join([body, *reader.lines[reader.place + 1 :]]), reader.place + 1, "")
        reader.advance(taken)
        if reader.indent() >= 0 and not reader.tree.errors:
            reader.tree.wrong(reader.place + 1, "config.after_value", trimmed(reader.lines[reader.place]))
    elif is_dash(body) or body.startswith("["):
        reader.tree.wrong(reader.place + 1, "config.no_map")
        return reader.tree
    else:
        value = reader.mapping(indent, "")
        while reader.indent() >= 0:
            reader.wrong("config.indentation", trimmed(reader.lines[reader.place]))
    reader.tree.value = value
    return reader.tree
