"""The command line: `python -m macros estimate | capacity | check | articles | measure | measurements | schemas`."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import Any

from macros.capacity import VERDICTS, advice, readable_advice
from macros.dataset import Dataset, load
from macros.estimator import Estimate
from macros.findings import DataErrors, quote
from macros.options import Parser, add_recipe_options, recipe_keys
from macros.recipes import estimate_keys, result

ROOT = Path(__file__).parent.parent

# A command, the module whose `main(arguments)` carries it out, and what it does.
COMMANDS = {
    "check": ("macros.check", "all findings in pages and data"),
    "capacity": ("macros.capacity", "what a card can train, and how far a recipe can be stretched on it"),
    "articles": ("macros.articles", "which translations are current, stale or missing; stamp a reviewed one"),
    "changes": ("macros.changes", "which published figures differ from those of a commit"),
    "export": ("macros.export", "write data and estimates as files for other programs"),
    "measure": ("macros.measure", "write a script that measures a recipe on a GPU"),
    "measurements": ("macros.measurements", "check a measured record and add it to the data"),
    "models": ("macros.models", "write the record of a model from its config.json"),
    "schemas": ("macros.schemas", "write the schemas that editors use for the data files"),
}


def main(arguments: Sequence[str]) -> int:
    """Carry out one command. Returns the exit code: 0, 1 for findings, 2 for a wrong call."""
    if arguments and arguments[0] in COMMANDS:
        # Imported by name, so that a plain estimate does not wait for what checking pages needs.
        command: Callable[[Sequence[str]], int] = import_module(COMMANDS[arguments[0]][0]).main
        return command(arguments[1:])
    parser = Parser(prog="python -m macros", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    estimating = commands.add_parser("estimate", help="memory of one training run, or of one for each line of input")
    estimating.add_argument("--json", action="store_true", help="print the result as JSON")
    estimating.add_argument("--advice", action="store_true", help="say too what to change first when it does not fit")
    estimating.add_argument("--jsonl", action="store_true", help="read one recipe a line as JSON, write one result a line")
    add_recipe_options(estimating)
    for name, (_, meaning) in COMMANDS.items():
        commands.add_parser(name, help=meaning)
    options = parser.parse_args(arguments)
    try:
        keys = recipe_keys(options)
        if options.jsonl and (keys or options.json or options.advice):
            raise ValueError("--jsonl takes every recipe from standard input and goes with no other option")
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        dataset = load(ROOT)
    except DataErrors as errors:
        print(errors, file=sys.stderr)
        return 1
    if options.jsonl:
        return stream(dataset, sys.stdin.buffer)
    try:
        if isinstance(keys.get("config"), str):
            keys = from_training_config(dataset, keys)
        found = estimate_keys(dataset, keys)
        advised = advice(dataset, keys) if options.advice else None
    except ValueError as error:
        for line in str(error).split("\n"):
            print(f"error: {line}", file=sys.stderr)
        return 2
    if options.json:
        answered = result(found) | ({"advice": asdict(advised)} if advised else {})
        print(json.dumps(answered, indent=2, ensure_ascii=False))
    else:
        print(readable(found) + ("\n\n" + readable_advice(found, advised) if advised else ""))
    return 0


def from_training_config(dataset: Dataset, keys: dict[str, Any]) -> dict[str, Any]:
    """The keys with those of the training configuration in `config` below them; what became of it goes to standard error."""
    # Imported here, because a plain estimate need not wait for it.
    recipe_of = import_module("macros.training_config").recipe_of
    given = {key: value for key, value in keys.items() if key != "config"}
    keys, report = recipe_of(dataset, keys["config"], given)
    print("\n".join(report), file=sys.stderr)
    return keys


def stream(dataset: Dataset, lines: Iterable[bytes]) -> int:
    """One result, or {"error": …}, for each line that is not blank, in order; ends quietly when nobody reads on."""
    try:
        for line in lines:
            if line.strip():
                # A byte that is no UTF-8 becomes a sign that JSON refuses, and only its own line is lost.
                text = line.decode("utf-8", errors="backslashreplace")
                print(json.dumps(answer(dataset, text), ensure_ascii=False), flush=True)
    except BrokenPipeError:
        # Python would complain again when it flushes the closed output at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def answer(dataset: Dataset, line: str) -> dict[str, Any]:
    """The result for a recipe as JSON text, or why there is none."""
    try:
        keys = json.loads(line, object_pairs_hook=_distinct)
    except RepeatedKey as error:
        return {"error": str(error)}
    except (ValueError, RecursionError) as error:
        return {"error": f"not JSON: {error}"}
    if not isinstance(keys, dict):
        return {"error": "a line must be an object with recipe keys"}
    try:
        return result(estimate_keys(dataset, keys))
    except ValueError as error:
        return {"error": str(error)}


class RepeatedKey(ValueError):
    """An object with the same key twice, of which JSON would silently keep the last."""


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    keys: dict[str, Any] = {}
    for key, value in pairs:
        if key in keys:
            raise RepeatedKey(f"{quote(key)} stands there twice")
        keys[key] = value
    return keys


def readable(found: Estimate) -> str:
    """An estimate as text for a terminal: GB are 10⁹ bytes, GiB are 2³⁰."""
    rows = [("peak", gb(found.peak_bytes) + f"  ({found.peak_bytes / 2**30:.2f} GiB)  at {found.moment}")]
    gpus = found.conditions["num_gpus"]
    if gpus > 1:
        rows.append(("all GPUs", gb(found.total_bytes) + f"  ({gpus} with the peak each)"))
    rows += [(f"  {part}", gb(size)) for part, size in found.moments[found.moment].parts.items()]
    rows.append(("reserved", f"{gb(found.reserved_bytes.low)} to {gb(found.reserved_bytes.high)}"))
    rows.append(("driver shows", f"{gb(found.device_bytes.low)} to {gb(found.device_bytes.high)}"))
    rows += [(f"at {name}", gb(moment.total)) for name, moment in found.moments.items()]
    if found.beside is not None:
        rows.append(("outside the step", amounts(found.beside.events)))
        rows.append(("host RAM", amounts(found.beside.host)))
        rows.append(("disk", amounts(found.beside.disk)))
    rows += speed(found)
    rows.append(("parameters", f"{found.parameters:,}, trained {found.trainable_parameters:,}"))
    if found.verdict is not None:
        against = "upper" if found.verdict == "comfortable" else "lower"
        room = f"headroom {gb(found.headroom_bytes or 0)} to the {against} figure that the driver may show"
        rows.append(("verdict", f"{VERDICTS[found.verdict]}, {room}"))
    rows.append(("evidence", found.evidence))
    given = {key: value for key, value in found.conditions.items() if value is not None}
    rows.append(("conditions", ", ".join(f"{key}={value}" for key, value in given.items())))
    rows += [("note", sentence) for sentence in result(found)["warnings"]]
    width = max(len(name) for name, _ in rows)
    return "\n".join(f"{name:{width}}  {text}" for name, text in rows)


def speed(found: Estimate) -> list[tuple[str, str]]:
    """FLOPs, and where published runs say how fast such a run is, its speed, time and cost."""
    rows = [("FLOPs per step", f"{found.flops_per_step:.3g} on one GPU")]
    if found.communication_bytes:
        rows.append(("between the GPUs", f"{gb(found.communication_bytes)} per step, sent and received by each"))
    if found.tokens_per_second is not None:
        rows.append(("tokens per second", f"{found.tokens_per_second.low:,.0f} to {found.tokens_per_second.high:,.0f}"))
    elif found.conditions["gpu"] is not None:
        rows.append(("tokens per second", "unknown: no published run is like this one on its card"))
    if found.hours is not None:
        rows.append(("hours", f"{found.hours.low:.1f} to {found.hours.high:.1f}"))
    if found.cost is not None:
        rows.append(("cost", f"{found.cost.low:.2f} to {found.cost.high:.2f}, in the money of the price"))
    return rows


def amounts(sizes: Mapping[str, int]) -> str:
    """Named amounts in one line."""
    return ", ".join(f"{name} {gb(size)}" for name, size in sizes.items())


def gb(size: int) -> str:
    """Bytes in GB with two decimals."""
    return f"{size / 1e9:.2f} GB"


if __name__ == "__main__":
    try:
        code = main(sys.argv[1:])
        sys.stdout.flush()
    except BrokenPipeError:
        # Who reads, such as `head`, has enough. Python would flush what is left once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    sys.exit(code)
