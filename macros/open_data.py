"""Which files the site offers to other programs, under addresses that stay, and what their columns hold.

`python -m macros export` writes them (export.py). A change that would break a reader of these files gets a new version and
with it a new folder; new files and new fields do not.
"""

from __future__ import annotations

from dataclasses import dataclass

from markupsafe import Markup

from macros.figures import element
from macros.findings import quote, suggest

VERSION = 1
FOLDER = f"data/v{VERSION}"
JSON, CSV, SCRIPT = "application/json", "text/csv", "text/javascript"

# Data files of which every record is published. What scripts record about our own errors stays inside.
RECORDS = ("models", "gpus", "methods", "sources", "measurements")

LENGTHS = (2048, 4096, 8192)
BATCHES = (1, 4)


@dataclass(frozen=True)
class File:
    """One published file; `schema` is the name of the JSON Schema of its contents, or of a row of it."""

    name: str
    media: str
    schema: str | None = None


FILES = {
    file.name: file
    for file in (
        *(File(f"{name}.json", JSON, f"{name}.schema.json") for name in RECORDS),
        File("measurements.csv", CSV, "measurements.row.schema.json"),
        File("estimates.csv", CSV, "estimates.row.schema.json"),
        File("estimator.js", SCRIPT),
    )
}

# What every row of estimates.csv has; further columns are the recipe's other keys and the result's other figures.
ESTIMATES = {
    "model": "key of models.json",
    "method": "key of methods.json",
    "sequence_length": "tokens of one sequence",
    "micro_batch_size": "sequences in one step on one card",
    "peak_bytes": "tensors at the fullest moment of a training step, bytes on one card",
    "moment": "the moment of the step that sets the peak",
    "reserved_bytes.low": "what PyTorch's allocator may reserve, bytes: lower end",
    "reserved_bytes.high": "what PyTorch's allocator may reserve, bytes: upper end",
    "device_bytes.low": "what the driver may show for the process, bytes: lower end",
    "device_bytes.high": "what the driver may show for the process, bytes: upper end",
    "parameters": "all parameters of the model",
    "trainable_parameters": "parameters that are trained, adapters included",
    "evidence": "what the figure was compared with: oracle (a simulated training step), measured (a GPU) or arithmetic (nothing yet)",
    "warnings": "what the figure leaves out, as sentences between bars",
}


def link(name: str) -> Markup:
    """A link to a published file; a hook of the site makes its address, because the way there depends on the page."""
    known = {*FILES, *(str(file.schema) for file in FILES.values() if file.schema)}
    if name not in known:
        raise ValueError(f"there is no published file {quote(name)}{suggest(name, known)}")
    return element("a", element("code", name), href=f"open-data:{name}")


def verdict_column(box_gb: int) -> str:
    """The column of the verdict on the cards with this number on their box."""
    return f"verdict_{box_gb}gb"
