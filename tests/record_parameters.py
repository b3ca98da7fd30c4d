"""Record the parameter counts of the models in data/models.yml from Transformers' own classes.

Run it by hand where PyTorch and Transformers are installed, after a change of data/models.yml:

    python tests/record_parameters.py

It builds every model on PyTorch's "meta" device (shapes without memory), counts what `parameters()`
yields (a tied weight once) and writes tests/recorded/parameters.json. `make test` only reads that file.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers
import yaml
from transformers import AutoConfig, AutoModelForCausalLM

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "tests" / "recorded" / "parameters.json"


def count(config: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters of one text model, by its `config.json` keys.

    Returns the class, the number of parameters, those of the input embedding and of the language head,
    and whether the two share one weight.
    """
    keys = dict(config)
    configuration = AutoConfig.for_model(keys.pop("model_type"), **keys)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(configuration)
    embedding = model.get_input_embeddings().weight
    head = model.get_output_embeddings().weight
    return {
        "class": type(model).__name__,
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "embedding": embedding.numel(),
        "head": head.numel(),
        "tied": head is embedding,
    }


def main() -> int:
    """Count all models, write the record, and say which counts in data/models.yml differ from it."""
    models = yaml.safe_load((ROOT / "data" / "models.yml").read_text(encoding="utf-8"))
    counts = {key: count(model["config"]) for key, model in models.items()}
    record = {
        "recorded": datetime.date.today().isoformat(),
        "versions": {"torch": torch.__version__, "transformers": transformers.__version__},
        "models": counts,
    }
    RECORD.parent.mkdir(exist_ok=True)
    RECORD.write_text(json.dumps(record, indent=1) + "\n", encoding="utf-8")
    different = [key for key in counts if models[key]["parameters"] != counts[key]["parameters"]]
    for key in different:
        print(f"data/models.yml: {key}.parameters is not {counts[key]['parameters']}", file=sys.stderr)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main())
