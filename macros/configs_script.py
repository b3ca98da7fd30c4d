"""The script that reads and writes training configurations in the browser: apart from the estimator's, loaded on demand.

It is the runtime of portable.js, the code of `ENTRIES` and of what they import, and the names of models and presets.
It attaches one object, `vramGuideConfigs`, whose functions have the data already.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from macros.dataset import Dataset
from macros.expressions import literal
from macros.portable import runtime, source
from macros.translator import translate

ENTRIES = ("macros/configs/read.py", "macros/configs/write.py")
# Functions that get the data first.
ASKED = ("read_config", "write_config")


def script(dataset: Dataset, read: Callable[[str], str] = source) -> str:
    """The whole script; the same data and code give the same text. Raises `DataErrors`."""
    return (
        f'"use strict";(()=>{{\nconst {{$in_,...api}}=(()=>{{\n{translate(ENTRIES, read, runtime())}}})();\n'
        f"const known=$in_({literal(known(dataset))});\n"
        f"globalThis.vramGuideConfigs={{{','.join(f'{name}:(...given)=>api.{name}(known,...given)' for name in ASKED)}}};\n}})();\n"
    )


def known(dataset: Dataset) -> dict[str, Any]:
    """What reading and writing configurations needs of the data files."""
    return {
        "models": {
            model.key: {"hub": model.hub, "type": _family(model.config)} for model in dataset.models
        },
        "presets": {
            preset.key: {
                "name": preset.name,
                "version": next(iter(preset.versions.values())),
                "keys": {method.key: preset.defaults(method.key) for method in dataset.methods},
            }
            for preset in dataset.presets
        },
    }


def _family(config: Any) -> str:
    return str(config.get("text_config", config).get("model_type", ""))
