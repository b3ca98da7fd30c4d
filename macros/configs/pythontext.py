"""Reads the calls of a Python script that hold training arguments: `SFTConfig(…)`, `LoraConfig(r=16)`, `x.from_pretrained("…")`.

The tree has one mapping for each name that is called with keywords ("SFTConfig", "from_pretrained"), positional
arguments under "0", "1"; a name that was assigned a plain value stands for it. Nothing is run.
"""

from __future__ import annotations

from dataclasses import dataclass

from .flow import Flow
from .text import CAPITALS, DIGITS, LETTERS, Tree

_FIRST = LETTERS + CAPITALS + "_"
_NAME = _FIRST + DIGITS + "."


@dataclass
class Token:
    """A piece of the script: kind is "name", "text", "number", "sign" or "end" (of a line outside brackets)."""

    kind: str
    text: str
    line: int


def tokens_of(text: str, tree: Tree) -> list[Token]:
    """The tokens of a script; blanks and comments are left out."""
    signs = list(text.replace("\r\n", "\n"))
    tokens: list[Token] = []
    place, line, depth = 0, 1, 0
    while place < len(signs):
        sign = signs[place]
        start = place
        if sign == "\n":
            if not depth:
                tokens.append(Token("end", "", line))
            line += 1
            place += 1
        elif sign == "#":
            while place < len(signs) and signs[place] != "\n":
                place += 1
        elif sign in ('"', "'"):
            triple = signs[place : place + 3] == [sign, sign, sign]
            end = string_end(signs, place, triple)
            if end < 0:
                tree.wrong(line, "config.quote", "".join(signs[place : place + 40]))
                return tokens
            if triple:
                body = "".join(signs[place + 3 : end - 3])
            else:
                reader = Flow(signs[place:end], 0)
                body = reader.quoted() if sign == '"' else "".join(signs[place + 1 : end - 1]).replace("\\'", "'")
            tokens.append(Token("text", body, line))
            line += signs[place:end].count("\n")
            place = end
        elif sign in _FIRST:
            while place < len(signs) and signs[place] in _NAME:
                place += 1
            name = "".join(signs[start:place])
            # A prefix of a string says how it is written, not what it holds.
            if not (place < len(signs) and signs[place] in ('"', "'") and name in ("r", "f", "b", "u", "rb", "R", "F")):
                tokens.append(Token("name", name, line))
        elif sign in DIGITS or (sign == "." and place + 1 < len(signs) and signs[place + 1] in DIGITS):
            while place < len(signs) and (signs[place] in _NAME or (signs[place] in "+-" and signs[place - 1] in "eE")):
                place += 1
            tokens.append(Token("number", "".join(signs[start:place]).replace("_", ""), line))
        else:
            if sign in "([{":
                depth += 1
            if sign in ")]}":
                depth = max(depth - 1, 0)
            if sign not in (" ", "\t", "\\"):
                tokens.append(Token("sign", sign, line))
            place += 1
    tokens.append(Token("end", "", line))
    return tokens


def string_end(signs: list[str], place: int, triple: bool) -> int:
    """The place behind a string that begins here; -1 where it does not end."""
    quote = signs[place]
    end = place + (3 if triple else 1)
    while end < len(signs):
        if signs[end] == "\\":
            end += 2
        elif triple and signs[end : end + 3] == [quote, quote, quote]:
            return end + 3
        elif not triple and signs[end] == quote:
            return end + 1
        elif not triple and signs[end] == "\n":
            return -1
        else:
            end += 1
    return -1


class Script:
    """Goes through the tokens; `calls` collects what is called with which arguments."""

    def __init__(self, tokens: list[Token], tree: Tree) -> None:
        self.tokens = tokens
        self.tree = tree
        self.place = 0
        self.known: dict[str, object] = {}
        self.calls: dict[str, object] = {}

    def token(self, ahead: int = 0) -> Token:
        place = self.place + ahead
        return self.tokens[place] if place < len(self.tokens) else Token("end", "", 0)

    def run(self) -> None:
        """Every assignment and every call, in their order."""
        while self.place < len(self.tokens):
            token = self.token()
            if token.kind == "name" and self.token(1).text == "=" and self.token(1).kind == "sign" and self.token(2).text != "=":
                name = token.text
                self.place += 2
                value = self.expression()
                if self.token().kind == "end" and (value or isinstance(value, str)):
                    self.known[name] = value
            elif token.kind == "name" and self.token(1).kind == "sign" and self.token(1).text == "(":
                self.expression()
            else:
                self.place += 1

    def expression(self) -> object:
        """One value; what is not a plain value becomes the text "?" so that it is named and not taken for one."""
        value = self.operand()
        token = self.token()
        if token.kind == "end" or (token.kind == "sign" and token.text in (",", ")", "]", "}", ":")):
            return value
        self.rest()
        return "?"

    def rest(self) -> None:
        """Go on to the end of the argument; calls on the way count."""
        depth = 0
        while self.place < len(self.tokens):
            token = self.token()
            if token.kind == "end" and not depth:
                return
            if token.kind == "sign" and not depth and token.text in (",", ")", "]", "}"):
                return
            if token.kind == "name" and self.token(1).kind == "sign" and self.token(1).text == "(":
                self.operand()
                continue
            if token.kind == "sign" and token.text in ("(", "[", "{"):
                depth += 1
            if token.kind == "sign" and token.text in (")", "]", "}"):
                depth -= 1
            self.place += 1

    def operand(self) -> object:
        token = self.token()
        self.place += 1
        if token.kind == "text":
            text = token.text
            while self.token().kind == "text":
                text += self.token().text
                self.place += 1
            return text
        if token.kind == "number":
            return token.text
        if token.kind == "sign" and token.text == "-" and self.token().kind == "number":
            self.place += 1
            return "-" + self.token(-1).text
        if token.kind == "sign" and token.text in ("[", "("):
            items = self.items("]" if token.text == "[" else ")")
            # Brackets round one value are no tuple.
            return items[0] if token.text == "(" and len(items) == 1 and self.token(-2).text != "," else items
        if token.kind == "sign" and token.text == "{":
            return self.mapping()
        if token.kind != "name":
            self.place -= 1
            self.rest()
            return "?"
        if self.token().kind == "sign" and self.token().text == "(":
            self.place += 1
            return self.call(token)
        if token.text.startswith("torch."):
            return token.text.removeprefix("torch.")
        return self.known.get(token.text, token.text)

    def items(self, end: str) -> list[object]:
        found: list[object] = []
        while not self.ends(end):
            found.append(self.expression())
            self.comma()
        return found

    def mapping(self) -> dict[str, object]:
        found: dict[str, object] = {}
        while not self.ends("}"):
            key = self.operand()
            if self.token().text == ":":
                self.place += 1
                found[f"{key}"] = self.expression()
            self.comma()
        return found

    def ends(self, end: str) -> bool:
        """Whether the closing bracket stands here, which is gone over; also at the end of the text."""
        token = self.token()
        if token.kind == "sign" and token.text == end:
            self.place += 1
            return True
        return self.place >= len(self.tokens) - 1

    def comma(self) -> None:
        token = self.token()
        if token.kind == "sign" and token.text in (")", "]", "}"):
            return
        if token.kind == "sign" and token.text == ",":
            self.place += 1
            return
        self.rest()
        if self.token().text == ",":
            self.place += 1

    def call(self, name: Token) -> object:
        short = name.text.split(".")[-1]
        given: dict[str, object] = {}
        while not self.ends(")"):
            token = self.token()
            after = self.token(1)
            if token.kind == "name" and after.kind == "sign" and after.text == "=" and self.token(2).text != "=":
                self.place += 2
                given[token.text] = self.expression()
                self.tree.lines[f"{short}.{token.text}"] = token.line
            else:
                given[f"{len(given)}"] = self.expression()
                self.tree.lines[f"{short}.{len(given) - 1}"] = token.line
            self.comma()
        if short == "dict":
            return given
        if short == "from_pretrained" and not any(word in name.text for word in ("Model", "Causal", "Language")):
            return "?"  # a tokenizer
        # The same class twice: what is said last counts, as in a script that sets up one run.
        self.calls[short] = {**self.calls.get(short, {}), **given}
        self.tree.lines.setdefault(short, name.line)
        return given if short in ("LoraConfig", "BitsAndBytesConfig") else "?"


def read_python(text: str) -> Tree:
    """The tree of a script or of single calls."""
    tree = Tree()
    script = Script(tokens_of(text, tree), tree)
    script.run()
    tree.value = script.calls
    return tree
