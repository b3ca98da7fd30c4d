#!/usr/bin/env python3
"""Peaks outside the training step in the oracle: evaluation and PEFT's k-bit preparation; writes event_rows.csv."""

from __future__ import annotations

import csv
import json
import pathlib
import random
import sys

from generate import VERSIONS  # brings fakecuda, which must come before torch
from oracle import DEVICE, RECIPES, Run, Settings, widen
from plan_heldout import FAMILIES, shape

import losses
import optimizers
import torch
from torch import nn

ROWS = pathlib.Path(__file__).parent / "event_rows.csv"
SEED = 20261201
EVALUATION_BATCH = 8  # TrainingArguments.per_device_eval_batch_size
COLUMNS = ("event", "config", "recipe", "seq", "rank", "attn", "loss", "optimizer", "peak_bytes", "peak_op", "versions")


class Evaluation(Run):
    """Trainer.prediction_step with prediction_loss_only, between two steps: the optimizer's states are there."""

    def train(self) -> None:
        self.track_model()
        optimizer = optimizers.make(self.settings.optimizer, self.model, self.trainable)
        self.mark_phases()
        self.create_states(optimizer)
        self.model.eval()
        tracker, shape = self.tracker, (EVALUATION_BATCH, self.settings.seq)
        tracker.set("input", "input")
        ids = torch.zeros(*shape, dtype=torch.int64, device=DEVICE)
        labels = torch.zeros(*shape, dtype=torch.int64, device=DEVICE)
        tracker.set("forward", "activation")
        with torch.no_grad(), self.autocast():
            if self.settings.loss == "trl":
                losses.trl_loss(self.model, ids, labels, None, 1.0)
                return
            outputs = self.model(input_ids=ids, labels=labels)
        if self.recipe.autocast:
            widen(outputs)


class Preparation(Run):
    """peft/utils/other.py: each parameter that is not quantised is cast to float32, in the order of parameters()."""

    def add_adapters(self) -> None:
        """They come after the preparation."""

    def train(self) -> None:
        self.track_model()
        self.tracker.reset_peaks()
        self.tracker.set("load", "frozen_param")
        casts: dict[int, nn.Parameter] = {}
        for module in self.model.modules():
            for name, parameter in list(module._parameters.items()):
                if parameter is None or parameter.dtype not in (torch.bfloat16, torch.float32):
                    continue
                if parameter.dtype == torch.bfloat16:
                    # A tied parameter is one and gets its new data at once.
                    known = casts.get(id(parameter))
                    if known is None:
                        known = casts[id(parameter)] = nn.Parameter(parameter.detach().float(), requires_grad=False)
                    self.replace(parameter, known)

    def replace(self, old: nn.Parameter, new: nn.Parameter) -> None:
        """Put the new parameter wherever the old one is."""
        for module in self.model.modules():
            for name, parameter in list(module._parameters.items()):
                if parameter is old:
                    module._parameters[name] = new


def plan() -> list[tuple[type[Run], dict[str, object], Settings]]:
    """Seeded mixes of dense families, recipes, lengths, losses and optimizers."""
    rng, runs = random.Random(SEED), []
    recipes = [name for name, recipe in RECIPES.items() if not recipe.master]
    for number in range(36):
        family = FAMILIES[number % len(FAMILIES)]
        config = shape(rng, family)
        settings = Settings(
            recipe=recipes[number % len(recipes)],
            seq=rng.choice((256, 500, 1024, 2048)),
            rank=rng.choice((8, 16, 64)),
            attn="flash" if family == "gemma2" else rng.choice(("sdpa", "flash")),
            loss=rng.choice(("standard", "standard", "trl")),
            optimizer=rng.choice(("fused", "foreach")),
        )
        runs.append((Evaluation, config, settings))
    for number in range(18):
        config = shape(rng, FAMILIES[number % len(FAMILIES)])
        attn = "flash" if config["model_type"] == "gemma2" else "sdpa"
        runs.append((Preparation, config, Settings(recipe="qlora-nf4-noprep", attn=attn)))
    return runs


def main() -> None:
    """Write the rows; runs that fail are named and left out."""
    rows = []
    for kind, config, settings in plan():
        try:
            result = kind(config, settings, False).result()
        except Exception as error:  # a mix may ask for what the libraries refuse
            print("failed:", kind.__name__, config["model_type"], settings, type(error).__name__, str(error)[:160], file=sys.stderr)
            continue
        named = {key: getattr(settings, key) for key in COLUMNS if hasattr(settings, key)}
        event = "evaluation" if kind is Evaluation else "kbit_preparation"
        rows.append({"event": event, "config": json.dumps(config), **named, "versions": VERSIONS}
                    | {key: result[key] for key in ("peak_bytes", "peak_op")})  # fmt: skip
    with open(ROWS, "w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
    print(len(rows), "rows")


if __name__ == "__main__":
    main()
