"""GPU memory of one fine-tuning step of a language model, from its architecture and the recipe alone."""

from .architecture import Architecture, architecture_from_config
from .fit import Estimate, Range, estimate
from .memory import MOMENTS, PARTS, Moment
from .parameters import parameter_count, trainable_parameters
from .recipe import Recipe, recipe_from_keys

__all__ = [
    "MOMENTS",
    "PARTS",
    "Architecture",
    "Estimate",
    "Moment",
    "Range",
    "Recipe",
    "architecture_from_config",
    "estimate",
    "parameter_count",
    "recipe_from_keys",
    "trainable_parameters",
]
