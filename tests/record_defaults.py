"""Record the defaults of Transformers, PEFT and TRL that decide memory, as their own classes give them.

Run it by hand where these packages are installed, after a release of one of them:

    python tests/record_defaults.py

It instantiates each configuration class with nothing but what it requires and writes every field to
tests/recorded/defaults.json, with the versions and the day. `make test` only reads that file.
"""

from __future__ import annotations

import dataclasses
import datetime
import enum
import importlib.metadata
import inspect
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import peft
import torch
import transformers
import trl
from transformers.training_args import OptimizerNames
from trl.kernels import chunked_logprob
from trl.trainer import dpo_trainer, grpo_trainer, sft_trainer
from trl.trainer import utils as trl_utils

RECORD = Path(__file__).resolve().parent / "recorded" / "defaults.json"
PACKAGES = ("torch", "transformers", "peft", "trl", "accelerate", "bitsandbytes")

# What differs from run to run or from machine to machine, and decides no memory.
_IGNORED = {"output_dir", "logging_dir", "run_name", "local_rank", "use_cpu", "report_to"}


def plain(value: Any) -> Any:
    """A default as JSON: enums by their value, types by their name, sets sorted."""
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, torch.dtype):
        return str(value).removeprefix("torch.")
    if isinstance(value, (set, frozenset)):
        return sorted(plain(part) for part in value)
    if isinstance(value, (list, tuple)):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {str(key): plain(part) for key, part in value.items()}
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if dataclasses.is_dataclass(value):
        return fields_of(value)
    return type(value).__name__


def fields_of(instance: Any) -> dict[str, Any]:
    """Every public field of a configuration instance with the value it got, in alphabetical order."""
    if isinstance(instance, transformers.BitsAndBytesConfig):
        values = instance.to_dict()
    else:
        values = {field.name: getattr(instance, field.name) for field in dataclasses.fields(instance)}
    return {name: plain(values[name]) for name in sorted(values) if not name.startswith("_") and name not in _IGNORED}


def arguments_of(function: Callable[..., Any]) -> dict[str, Any]:
    """Defaults of a function's parameters, without those that have none."""
    parameters = inspect.signature(function).parameters.values()
    return {each.name: plain(each.default) for each in parameters if each.default is not inspect.Parameter.empty}


def defaults() -> dict[str, Any]:
    """Class or function name → field → default."""
    with tempfile.TemporaryDirectory() as folder:
        # use_cpu: mixed precision is refused on a machine without a GPU otherwise; the field is not recorded.
        trainers = {
            "TrainingArguments": transformers.TrainingArguments(output_dir=folder, use_cpu=True),
            "SFTConfig": trl.SFTConfig(output_dir=folder, use_cpu=True),
            "DPOConfig": trl.DPOConfig(output_dir=folder, use_cpu=True),
            "GRPOConfig": trl.GRPOConfig(output_dir=folder, use_cpu=True),
        }
    others = {
        "LoraConfig": peft.LoraConfig(),
        "BitsAndBytesConfig": transformers.BitsAndBytesConfig(load_in_4bit=True),
        "ModelConfig": trl.ModelConfig(),
    }
    return {
        **{name: fields_of(instance) for name, instance in (trainers | others).items()},
        "OptimizerNames": sorted(name.value for name in OptimizerNames),
        "get_peft_model": arguments_of(peft.get_peft_model),
        "prepare_model_for_kbit_training": arguments_of(peft.prepare_model_for_kbit_training),
        "activation_checkpointing_enable": arguments_of(
            transformers.PreTrainedModel.activation_checkpointing_enable
        ),
        "fused_lm_head": {
            "tokens_per_tile": chunked_logprob.TOKEN_CHUNK_SIZE,
            "vocabulary_per_tile": trl_utils._CHUNKED_LOGPROB_CHUNK_SIZE,
        },
    }


def facts() -> dict[str, bool]:
    """What no default says: how TRL's trainers and loader are written, found in their source text."""
    found = {}
    for name, module in (("sft", sft_trainer), ("dpo", dpo_trainer), ("grpo", grpo_trainer)):
        trainer = inspect.getsource(module)
        casts = "if _is_quantized_model:" in trainer and "param.data.to(torch.bfloat16)" in trainer
        found |= {
            f"{name}_calls_kbit_preparation": "prepare_model_for_kbit_training" in trainer,
            f"{name}_casts_quantized_adapters_to_bf16": casts,
            f"{name}_uses_fused_lm_head": "add_fused_lm_head(" in trainer and "fused_lm_head=True" in trainer,
        }
    loader = inspect.getsource(trl_utils.create_model_from_path)
    return found | {"models_by_name_load_in_float32": 'kwargs.get("dtype", "float32")' in loader}


def main() -> int:
    """Write the record."""
    record = {
        "recorded": datetime.date.today().isoformat(),
        "versions": {package: importlib.metadata.version(package) for package in PACKAGES},
        "defaults": defaults(),
        "facts": facts(),
    }
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
