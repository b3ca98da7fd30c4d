"""Reads command lines: `trl sft --lora_r 16`, `accelerate launch … train.py --bf16 true`, `llamafactory-cli train key=value`.

The options of the launcher stand under "launch" and the words without an option under "words"; `--key`, `--key=value`,
`--key a b` and `key=value` are keys, in which a hyphen is an underscore. A flag without a value is "true".
"""

from __future__ import annotations

from .flow import read_flow
from .text import CAPITALS, DIGITS, LETTERS, Tree, number, trimmed

_NAME = LETTERS + CAPITALS + DIGITS + "_.-"
LAUNCHERS = ("accelerate", "torchrun", "deepspeed")
# Options of the launchers that take no value.
_ALONE = (
    "multi_gpu", "use_deepspeed", "use_fsdp", "standalone", "cpu", "tpu", "quiet", "debug", "m", "module", "no_python",
    "same_network",
)  # fmt: skip


def split_words(text: str, tree: Tree) -> list[tuple[str, int]]:
    """Words as a shell splits them, each with its line; a backslash joins lines, a comment ends one."""
    words: list[tuple[str, int]] = []
    word: list[str] = []
    quote, begun, line, start = "", False, 1, 1
    signs = list(text.replace("\r\n", "\n"))
    place = 0
    while place < len(signs):
        sign = signs[place]
        after = signs[place + 1] if place + 1 < len(signs) else ""
        if sign == "\\" and quote != "'" and after:
            if after != "\n":
                word.append(after if not quote or after in ('"', "\\", "$") else "\\" + after)
                begun = True
            place += 1
            sign = after
        elif quote:
            if sign == quote:
                quote = ""
            else:
                word.append(sign)
        elif sign in ('"', "'"):
            quote, begun, start = sign, True, line
        elif sign in (" ", "\t", "\n"):
            if begun:
                words.append(("".join(word), line))
            word, begun = [], False
        elif sign == "#" and not begun:
            while place + 1 < len(signs) and signs[place + 1] != "\n":
                place += 1
        else:
            word.append(sign)
            begun = True
        line += 1 if sign == "\n" else 0
        place += 1
    if quote:
        tree.wrong(start, "config.quote", "".join(word[:40]))
    elif begun:
        words.append(("".join(word), line))
    return words


def read_command(text: str) -> Tree:
    """The tree of one command, or of lines of options."""
    tree = Tree()
    found: dict[str, object] = {}
    launch: dict[str, object] = {}
    plain: list[object] = []
    launching = False
    words = split_words(text, tree)
    place = 0
    while place < len(words):
        word, line = words[place]
        place += 1
        name, mark, value = word.partition("=")
        if word in LAUNCHERS and not found:
            launching = True
            plain.append(word)
            continue
        if launching and (word.endswith(".py") or words[place - 2][0] in ("-m", "--module")):
            launching = False
        if word == "-m" and not launching:
            continue  # python -m module: the module is a word
        if not word.startswith("-") or number(word) is not None:
            if mark and is_name(name):
                put(tree, found, name.removeprefix("+"), value, line)
            else:
                plain.append(word)
            continue
        key = name.removeprefix("-").removeprefix("-").replace("-", "_")
        values = [value] if mark else []
        while not mark and place < len(words) and takes(words[place][0]) and not (launching and (values or key in _ALONE)):
            values.append(words[place][0])
            place += 1
        target = launch if launching else found
        put(tree, target, key, values[0] if len(values) == 1 else (values or "true"), line, "launch." if launching else "")
    tree.value = found
    if launch:
        found["launch"] = launch
    if plain:
        found["words"] = plain
    return tree


def takes(word: str) -> bool:
    """Whether a word can be the value of an option."""
    return not word.startswith("-") or number(word) is not None


def put(tree: Tree, found: dict[str, object], key: str, value: object, line: int, before: str = "") -> None:
    if key in found:
        tree.wrong(line, "config.twice", key)
        return
    tree.lines[before + key] = line
    if isinstance(value, str) and (trimmed(value).startswith("{") or trimmed(value).startswith("[")):
        value, _ = read_flow(tree, trimmed(value), line, before + key)
    found[key] = value


def is_name(text: str) -> bool:
    """Whether a text can be the key of `key=value`; a variable of the shell, all in capitals, is none."""
    return bool(text) and all(sign in _NAME for sign in list(text)) and any(sign in LETTERS for sign in list(text))
