"""GPU memory of one fine-tuning step of a language model, from its architecture and the recipe alone."""

from .architecture import Architecture, architecture_from_config
from .beside import Beside, beside_step
from .fit import Estimate, Range, estimate, with_speed
from .memory import MOMENTS, PARTS, Moment
from .parameters import parameter_count, trainable_parameters
from .questions import QUESTIONS, questions_from_keys
from .recipe import Recipe, recipe_from_keys
from .speed import Rate

__all__ = [
    "MOMENTS",
    "PARTS",
    "QUESTIONS",
    "Architecture",
    "Beside",
    "Estimate",
    "Moment",
    "Range",
    "Rate",
    "Recipe",
    "architecture_from_config",
    "beside_step",
    "estimate",
    "parameter_count",
    "questions_from_keys",
    "recipe_from_keys",
    "trainable_parameters",
    "with_speed",
]
