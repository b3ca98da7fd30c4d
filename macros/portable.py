"""Translates the estimator and the data that the calculator needs into one plain script, so that a browser runs the same functions.

The script is the runtime of portable.js, the code of `ENTRIES` with everything they import, and the data. It needs no
fetch and no module, so it runs under `script-src 'self'` and from file://. It attaches one object, `vramGuide`: the public
functions of `ENTRIES` (plain objects in and out; those of `ASKED` have their data already) and `data`. A ValueError is thrown
with its sentence. A part of the estimator that is new is in the script as soon as these modules import it.

The subset of Python, as strict as equal answers need; anything else is refused with `path:line` and what to write:

statements   def (also inside a def, without nonlocal), class, assignment also to tuples, attributes and items, += and its
             kin, if, for, while, break, continue, pass, return, del d[k], raise ValueError(…), try with one
             except ValueError, whose name stands for the sentence
expressions  + - * / // % ** (whole exponents), comparisons also chained, in, is, and/or/not, conditional, calls with
             keywords, defaults and *args, displays with * and **, comprehensions, lambda, slices without a step or with
             -1, f-strings with {x} and {x!r}
classes      plain ones and @dataclass (frozen, slots, fields with defaults or default_factory): methods, @property,
             __init__; no inheritance, no other dunder
builtins     abs all any bool chr dict dict.fromkeys enumerate float id int isinstance len list max min range reversed set
             sorted str sum tuple zip; math.ceil math.floor; dataclasses' field fields replace
methods      of strings: endswith join partition removeprefix removesuffix replace rpartition split startswith; of lists:
             append copy count extend index insert pop remove; of dictionaries: copy get items keys pop setdefault update
             values; of sets: add
imports      math, dataclasses, typing, modules of the estimator, of configs and those of the entries, under their own names

Traps that no check sees: a whole float and an int are one number here, arithmetic with a bool throws; ints must stay
within 2^53 (`script(checked=True)` throws above it, but where float(…) or a float constant says that it is none); generators are evaluated at once; a set has no order, so sort it;
str.upper, round, log and formats differ between the engines and are left out.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from macros.address import shape_of
from macros.dataset import Dataset, load
from macros.estimator.recipe import METHODS
from macros.expressions import literal
from macros.findings import DataErrors
from macros.translator import translate

ROOT = Path(__file__).parent.parent
ENTRIES = ("macros/browser.py", "macros/address.py", "macros/shown.py", "macros/estimator/units.py")
# Functions that get the data first.
ASKED = (
    "estimate_keys",
    "advice_keys",
    "changed_keys",
    "shared_keys",
    "cards_keys",
    "limits_keys",
    "capacity_keys",
    "read_pairs",
    "settled_keys",
    "result_texts",
    "settings_texts",
    "advice_texts",
    "cards_texts",
    "limits_texts",
    "capacity_texts",
)


def source(path: str) -> str:
    """The text of one of the repository's files."""
    return (ROOT / path).read_text(encoding="utf-8")


def script(dataset: Dataset, checked: bool = False, read: Callable[[str], str] = source) -> str:
    """The whole script of the calculator; the same data and code give the same text.

    checked   throw at a whole number above 2^53, which the browser would round
    read      where the code comes from

    Raises `DataErrors` with every construct that cannot be translated, as `path:line`.
    """
    return (
        f'"use strict";(()=>{{\nconst {{$in_,...api}}=(()=>{{\n{translate(ENTRIES, read, runtime(checked))}}})();\n'
        f"const data={literal(data(dataset))},known=$in_(data);\n"
        "globalThis.vramGuide={...api,data,"
        f"{','.join(f'{name}:(...given)=>api.{name}(known,...given)' for name in ASKED)}}};\n}})();\n"
    )


def runtime(checked: bool = False) -> str:
    """portable.js without comments and indentation."""
    text = source("macros/portable.js")
    if checked:
        text = text.replace("$CHECKED = false", "$CHECKED = true")
    lines = (line.strip() for line in text.splitlines())
    return "".join(line + "\n" for line in lines if line and not line.startswith("//"))


@cache
def _shape(config: str) -> dict[str, object]:
    """The part of a configuration, as JSON, that the estimator reads; found by leaving keys out, which takes its time."""
    return shape_of(json.loads(config))


def data(dataset: Dataset) -> dict[str, Any]:
    """What the calculator knows of models, cards and presets: only what the estimator reads, and what a list shows."""
    return {
        "models": {
            model.key: {
                "name": model.name,
                "config": _shape(json.dumps(model.config)),
                "omits": list(model.omits),
                "context": model.context_length,
                "history": model.history,
            }
            for model in dataset.models
        },
        "gpus": {
            gpu.key: {
                "name": gpu.name,
                "vendor": gpu.vendor,
                "segment": gpu.segment,
                "memory": gpu.memory,
                "box": gpu.box,
                "tflops": gpu.bf16_tflops,
                "utilisation": {
                    method: list(share) for method in METHODS if (share := dataset.utilisation(gpu.key, method)) is not None
                },
            }
            for gpu in dataset.gpus
        },
        "presets": {
            preset.key: {
                "name": preset.name,
                "keys": {method.key: preset.defaults(method.key) for method in dataset.methods},
            }
            for preset in dataset.presets
        },
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m macros.portable [FILE]`: write the script to a file or to the standard output."""
    parser = argparse.ArgumentParser(prog="python -m macros.portable", description=main.__doc__.splitlines()[0])
    parser.add_argument("file", nargs="?", type=Path, help="where to write it; without one, to the standard output")
    try:
        options = parser.parse_args(arguments)
        text = script(load(ROOT))
    except DataErrors as errors:
        print(errors, file=sys.stderr)
        return 1
    if options.file:
        options.file.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
