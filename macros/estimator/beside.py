"""What a run needs beside its step: peaks of the card outside it, the host's memory, disk space."""

from __future__ import annotations

from dataclasses import dataclass

from .architecture import Architecture
from .disk import disk_bytes
from .events import events, exceeding, kept_logits_bytes
from .host import host_bytes
from .recipe import Recipe


@dataclass(frozen=True, slots=True)
class Beside:
    """Amounts in bytes by name.

    events        peaks of one card outside the step (events.py)
    kept_logits   of one token of an evaluation with metrics
    host          the host's memory by occasion, and its peak (host.py)
    disk          disk space by what it is for, and its sum (disk.py)
    warnings      keys of messages: events that need more than the step
    """

    events: dict[str, int]
    kept_logits: int
    host: dict[str, int]
    disk: dict[str, int]
    warnings: list[str]


def beside_step(arch: Architecture, recipe: Recipe, peak: int, asked: dict[str, int]) -> Beside:
    """Everything that lies outside a step whose peak is known; `asked` is what questions_from_keys gives."""
    happening = events(arch, recipe)
    disk = disk_bytes(arch, recipe, asked["checkpoints_kept"], asked["dataset_tokens"])
    warnings = [name + "_exceeds_step" for name in exceeding(happening, peak)]
    return Beside(happening, kept_logits_bytes(arch, recipe), host_bytes(arch, recipe), disk, warnings)
