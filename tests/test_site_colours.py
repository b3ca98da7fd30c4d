"""The colours of the parts of memory stay apart, for readers with and without full colour vision.

Colour vision deficiencies are simulated with the matrices of Machado, Oliveira and Fernandes (2009) at full
severity; distances are CIE 1976 colour differences, of which about 2 can just be seen.
"""

from __future__ import annotations

import itertools
import math
import re

import pytest

from macros import chart
from macros.run import PARTS
from tests.site_build import ROOT

STYLES = (ROOT / "docs" / "assets" / "stylesheets" / "figures.css").read_text(encoding="utf-8")
COLOURS = dict(re.findall(r"--vg-(\w+): (#[0-9a-f]{6});", STYLES))
SIGHTS = {
    "full": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deuteranopia": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritanopia": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}


def linear(colour: str) -> list[float]:
    parts = [int(colour[start:start + 2], 16) / 255 for start in (1, 3, 5)]
    return [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]


def luminance(colour: str) -> float:
    red, green, blue = linear(colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    light, dark = sorted((luminance(one), luminance(other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


def seen(colour: str, sight: str) -> tuple[float, float, float]:
    """The colour in CIELAB as a reader with that sight sees it."""
    source = linear(colour)
    red, green, blue = (min(1.0, max(0.0, sum(a * b for a, b in zip(row, source)))) for row in SIGHTS[sight])
    scaled = (
        (0.4124 * red + 0.3576 * green + 0.1805 * blue) / 0.9505,
        0.2126 * red + 0.7152 * green + 0.0722 * blue,
        (0.0193 * red + 0.1192 * green + 0.9505 * blue) / 1.089,
    )
    x, y, z = (value ** (1 / 3) if value > 0.008856 else 7.787 * value + 16 / 116 for value in scaled)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def test_every_part_has_a_colour() -> None:
    assert set(COLOURS) == {*PARTS, "other"}


@pytest.mark.parametrize("sight", SIGHTS)
def test_parts_are_told_apart(sight: str) -> None:
    close = []
    for one, other in itertools.combinations(COLOURS, 2):
        distance = math.dist(seen(COLOURS[one], sight), seen(COLOURS[other], sight))
        # Parts with different patterns have a second mark; those with the same one, or with none, have only the colour.
        needed = 20 if chart._PATTERN_OF.get(one) == chart._PATTERN_OF.get(other) else 12
        if distance < needed:
            close.append((one, other, round(distance)))
    assert close == []


def test_labels_are_legible_on_their_part() -> None:
    for part, ink in re.findall(r"\.vg-part__label--(\w+) \{ fill: (#[0-9a-f]{6});", STYLES):
        assert contrast(COLOURS[part], ink) >= 4.5, part
