"""`read_config(known, text)`: a pasted training configuration → the recipe, and what became of every key.

The page calls `vramGuideConfigs.read_config(text)` (configs.js, loaded when somebody imports or exports) and gets

    {"framework", "recipe", "understood", "ignored", "assumed", "errors"}

framework   "axolotl", "llama-factory", "trl", "transformers-peft", "unsloth" or "own": what the text was taken for
recipe      keys for `vramGuide.estimate_keys`, with `model` and `preset`; without `model` where it is not known
the lists   {"key", "value", "line", "says", "values"}: the key of the configuration (of `assumed`: of the recipe, or of
            the configuration where it counts as something else), its value as text, its line or 0, the key of a message
            (config.…) and the values of its placeholders beside `key`, `value` and `line`. What is understood also has
            `becomes`, the keys of the recipe.

With errors the recipe holds what could be read all the same. Reads Axolotl's YAML; LLaMA-Factory's YAML, JSON or command
line; arguments of TRL and Transformers as command line, YAML, JSON or as calls in a Python script; the guide's own
recipe. Nothing is run and nothing is fetched.
"""

from __future__ import annotations

from .axolotl import read_axolotl
from .commandline import LAUNCHERS, read_command
from .llamafactory import read_llamafactory
from .own import read_own
from .pythontext import read_python
from .reading import Reading
from .text import Tree, trimmed
from .trl import from_script, read_trl
from .yamltext import read_yaml

CALLS = (
    "TrainingArguments(", "SFTConfig(", "LoraConfig(", "BitsAndBytesConfig(", ".from_pretrained(", "SFTTrainer(", "Trainer(",
    "DPOConfig(", "ModelConfig(",
)  # fmt: skip
PROGRAMS = ("trl", "llamafactory-cli", "axolotl", "python", "python3", "torchrun", "accelerate", "deepspeed", "FORCE_TORCHRUN=1")
# Keys that only one framework has.
AXOLOTL = ("base_model", "sequence_len", "micro_batch_size", "adapter")
LLAMAFACTORY = ("finetuning_type", "cutoff_len", "stage", "lora_rank", "lora_target", "template", "quantization_bit")


def read_config(known: dict[str, object], text: str) -> dict[str, object]:
    """The answer described above; `known` is what `macros.configs_script.known` makes of the data files."""
    kind = kind_of(text)
    script: list[str] = []
    if kind == "python":
        tree = read_python(text)
        script = list(tree.value)
        framework = "trl" if any(name in ("SFTConfig", "SFTTrainer") for name in script) else "transformers-peft"
        if "FastLanguageModel" in text:
            framework = "unsloth"
        tree = from_script(tree)
    else:
        tree = read_command(text) if kind == "command" else read_yaml(text)
        framework = framework_of(tree)
    preset = framework if framework in known["presets"] else "transformers-peft"
    reading = Reading(tree, known, preset)
    if not tree.value:
        if not reading.errors:
            reading.errors.append({"key": "", "value": "", "line": 0, "says": "config.nothing", "values": {}})
        return {"framework": framework, **reading.finish()}
    if framework == "axolotl":
        read_axolotl(reading)
    elif framework == "llama-factory":
        read_llamafactory(reading)
    elif framework == "own":
        del reading.keys["preset"]
        read_own(reading)
    else:
        read_trl(reading, script)
    return {"framework": framework, **reading.finish()}


def kind_of(text: str) -> str:
    """Whether a text is "yaml" (or JSON), a "command" or "python"."""
    body = trimmed(text, " \t\r\n")
    if body.startswith("{"):
        return "yaml"
    if any(call in body for call in CALLS):
        return "python"
    lines = [trimmed(line, " \t\r$") for line in body.split("\n")]
    lines = [line for line in lines if line and not line.startswith("#")]
    if not lines:
        return "yaml"
    if any(line.startswith("--") or " --" in line for line in lines) or lines[0].split(" ")[0] in (*PROGRAMS, *LAUNCHERS):
        return "command"
    return "command" if all("=" in line.split(" ")[0] and ":" not in line.split("=")[0] for line in lines) else "yaml"


def framework_of(tree: Tree) -> str:
    """Whose configuration a tree is."""
    keys = tree.value
    words = keys.get("words", [])
    if "estimate" in words or ("method" in keys and ("model" in keys or "config" in keys)):
        return "own"
    if "axolotl" in words or "base_model" in keys:
        return "axolotl"
    if any(word in words for word in ("llamafactory-cli", "llamafactory")) or any(key in keys for key in LLAMAFACTORY):
        return "llama-factory"
    if any(key in keys for key in AXOLOTL):
        return "axolotl"
    return "trl"
