"""`python -m macros measure`: a self-contained script that measures one recipe on a GPU beside our estimate of it.

The script is `measure_script.py` with the run put in; it is written out or, with `--run`, started in a fresh process.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from pprint import pformat
from typing import Any

from macros.dataset import DataErrors, Dataset, load
from macros.estimator import Estimate, Recipe, recipe_from_keys
from macros.estimator.architecture import TEXT_TYPES
from macros.estimator.recipe import applicable_keys
from macros.options import add_recipe_options
from macros.options import recipe_keys as typed_keys
from macros.recipes import estimate_keys

ROOT = Path(__file__).parent.parent
TEMPLATE = Path(__file__).parent / "measure_script.py"
PLACEHOLDER = "RUN: dict[str, Any] = {}\n"
# The source that a record names unless another one is given.
SOURCE = "vram-guide-measurements"

# What the script runs, by recipe key; None: any value. A key that is not here must have its default: it describes
# older libraries or another trainer, which the script cannot turn into.
RUNNABLE: dict[str, tuple[str, ...] | None] = {
    **dict.fromkeys(("method", "base_dtype", "precision", "foreach", "gradient_checkpointing", "checkpoint_offload")),
    **dict.fromkeys(("micro_batch_size", "sequence_length", "gradient_accumulation_steps", "trained_token_share")),
    **dict.fromkeys(("lora_r", "lora_dropout", "target_modules", "adapter_dtype", "use_dora", "modules_to_save")),
    **dict.fromkeys(("double_quant", "prepare_kbit", "keep_outputs", "padding", "master_gradients")),
    "optim": (
        *("adamw_torch_fused", "adamw_torch", "adamw_bnb_8bit", "adamw_8bit", "paged_adamw_8bit", "paged_adamw_32bit"),
        *("paged_adamw", "adafactor", "lion_32bit", "lion_8bit", "paged_lion_32bit", "paged_lion_8bit"),
        *("sgd", "sgd_momentum", "muon"),
    ),
    "attention": ("flash", "sdpa", "eager"),
    "loss": ("standard", "chunked", "fused"),
    "kernels": ("none", "liger"),  # Unsloth and fms-acceleration patch only models that they load themselves
    "quantization": ("nf4", "fp4", "int8"),  # GPTQ and AWQ weights come from a calibrated checkpoint
}
# Left out of a config.json: they describe files, not shapes, or would make the library fetch or quantise something.
_NOT_SHAPE = ("architectures", "auto_map", "dtype", "quantization_config", "torch_dtype", "transformers_version")


def script(dataset: Dataset, keys: Mapping[str, Any], source: str = SOURCE) -> str:
    """The text of the script for what `estimate_keys` accepts: model or config, gpu, preset and recipe keys.

    Raises `ValueError`, one sentence, for a recipe that the estimator refuses or that random weights cannot run.
    """
    result = estimate_keys(dataset, keys)
    recipe = recipe_keys(result)
    defaults = recipe_from_keys({"method": recipe["method"]}).conditions()
    for name, value in recipe.items():
        if name not in RUNNABLE and value != defaults[name]:
            raise ValueError(f"{name} {value} cannot be measured: the script runs what {defaults[name]} stands for")
        if (allowed := RUNNABLE.get(name)) and value not in allowed:
            raise ValueError(f"{name} {value} cannot be measured with random weights; measurable are {', '.join(allowed)}")
    recipe = {name: value for name, value in recipe.items() if name in RUNNABLE}
    model = dataset.models[keys["model"]] if keys.get("model") is not None else None
    run = {
        "model": model.key if model else None,
        "hub": model.hub if model else None,
        "config": language_config(model.config if model else keys["config"]),
        "recipe": recipe,
        "estimate": {
            "peak_bytes": result.peak_bytes,
            "moment": result.moment,
            "parts": {name: size for name, size in result.moments[result.moment].parts.items() if size},
            "moments": {name: moment.total for name, moment in result.moments.items()},
            "reserved_bytes": {"low": result.reserved_bytes.low, "high": result.reserved_bytes.high},
            "device_bytes": {"low": result.device_bytes.low, "high": result.device_bytes.high},
            "parameters": result.parameters,
            "trainable_parameters": result.trainable_parameters,
            "evidence": result.evidence,
        },
        "cards": {gpu.key: gpu.memory_mib for gpu in dataset.gpus if gpu.vendor != "apple"},
        "source": source,
    }
    template = TEMPLATE.read_text(encoding="utf-8")
    if template.count(PLACEHOLDER) != 1:
        raise AssertionError(f"{TEMPLATE.name} must have the line {PLACEHOLDER!r} once")
    return template.replace(PLACEHOLDER, f"RUN: dict[str, Any] = {pformat(run, width=118, sort_dicts=False, compact=True)}\n")


def recipe_keys(result: Estimate) -> dict[str, Any]:
    """Every recipe key of an estimate that applies, so that later changes of defaults do not change the run.

    `recipe_from_keys` makes the very same recipe of them.
    """
    names = applicable_keys(str(result.conditions["method"]))
    given = {name: result.conditions[name] for name in names}
    kept = {name: given[name] for name in ("method", "precision")}
    while True:
        missing = [name for name in given if name not in kept and _accepted({**kept, name: given[name]})]
        if not missing:
            break
        kept[missing[0]] = given[missing[0]]
    wanted = {field.name: result.conditions[field.name] for field in fields(Recipe)}
    if recipe_from_keys(kept).conditions() != wanted:
        raise AssertionError(f"the keys {kept} do not make the recipe {wanted}")
    return {name: kept[name] for name in given if name in kept}


def _accepted(keys: dict[str, Any]) -> bool:
    """Whether the estimator takes the last of these keys beside the others."""
    try:
        recipe_from_keys(keys)
    except ValueError:
        return False
    return True


def language_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a config.json that the estimator counts: the language model of a multimodal one, without file matters."""
    text = config.get("text_config")
    if isinstance(text, Mapping):
        config = {"model_type": config.get("model_type"), **text}
    shape = {key: value for key, value in config.items() if key not in _NOT_SHAPE}
    return {**shape, "model_type": TEXT_TYPES.get(shape["model_type"], shape["model_type"])}


# ---- the command ----------------------------------------------------------------------------------------------------


def parser() -> argparse.ArgumentParser:
    """The command's options; every recipe key is one."""
    result = argparse.ArgumentParser(prog="python -m macros measure", description=__doc__)
    result.add_argument("--output", "-o", type=Path, help="file for the script (default: standard output)")
    result.add_argument("--run", action="store_true", help="run it in a fresh process (dry without a GPU)")
    result.add_argument("--dry-run", action="store_true", help="run it with a tiny model on the CPU")
    result.add_argument("--python", default=sys.executable, help="Python that has PyTorch and runs the script")
    result.add_argument("--record", type=Path, default=Path("measurement.yml"), help="file for the record of --run")
    result.add_argument("--source", default=SOURCE, help="key of data/sources.yml that the record names")
    add_recipe_options(result)
    return result


def main(arguments: Sequence[str]) -> int:
    """Write the script, and run it if asked to. Returns the exit code."""
    options = parser().parse_args(arguments)
    try:
        text = script(load(ROOT), typed_keys(options), options.source)
    except DataErrors as errors:
        print(errors, file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    if options.output:
        options.output.write_text(text, encoding="utf-8")
    if options.run or options.dry_run:
        return _run(text, options)
    if not options.output:
        sys.stdout.write(text)
    return 0


def _run(text: str, options: argparse.Namespace) -> int:
    """Start the script in a process of its own: what this one or an earlier run holds must not be counted."""
    extra = ["--dry-run"] if options.dry_run else []
    extra += ["--gpu", options.gpu] if options.gpu else []
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "measure.py"
        file.write_text(text, encoding="utf-8")
        command = [options.python, str(file), "--record", str(options.record.absolute()), *extra]
        try:
            return subprocess.run(command, check=False).returncode
        except OSError as error:
            print(f"error: {options.python} cannot be started: {error.strerror}", file=sys.stderr)
            return 2
