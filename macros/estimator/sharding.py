"""How several cards share a run: what rests on one of them, and which buffers its strategy adds.

none    one card
ddp     every card holds everything, and its buckets hold the gradients a second time (torch/nn/parallel/distributed.py,
        Reducer; accelerate leaves gradient_as_bucket_view false)
zero1   DeepSpeed divides float32 masters and optimizer states (runtime/zero/stage_1_and_2.py)
zero2   and the gradients, which it keeps in one flat partition
zero3   and the weights, which it gathers module by module (runtime/zero/stage3.py, partitioned_param_coordinator.py)
fsdp    PyTorch divides weights, gradients and states, and gathers a decoder layer at a time (torch/distributed/fsdp)

Settings are those that Trainer and Accelerate choose: DeepSpeed's buckets "auto", FSDP by decoder layer with full
sharding, resharding after forward, backward prefetch, no forward prefetch.
Sources: torch 2.13 torch/distributed/fsdp (version 1) and fsdp/_fully_shard (version 2); accelerate 1.15 accelerator.py
and utils/fsdp_utils.py; transformers 5.24 integrations/deepspeed.py; DeepSpeed 0.19.6.
"""

from __future__ import annotations

from dataclasses import replace

from .architecture import Architecture
from .parameters import (
    Tensors,
    adapter_rank,
    embedding_weights,
    layer_vectors,
    linears,
    outer_linears,
    per_layer_table,
    quantized_weights,
    targets,
    trained_tensors,
)
from .recipe import Recipe
from .shapes import LayerShape
from .states import (
    adapter_bytes,
    blocks,
    gradient_bytes,
    int8_bytes,
    gptq_bytes,
    master_bytes,
    nf4_bytes,
    optimizer_state_bytes,
    optimizer_temporary_bytes,
    states_of,
    stream_width,
    table_width,
    temporaries_of,
    weight_bytes,
)

# DeepSpeed releases no weights that the trace of a step needs again within so many elements, and keeps at most so many.
REUSE_DISTANCE = 10**9  # stage3_max_reuse_distance, stage3_max_live_parameters
SUB_GROUP = 10**9  # elements that its third stage updates at a time, sub_group_size


def share(size: int, cards: int) -> int:
    """The largest part of something that is divided among cards."""
    return (size + cards - 1) // cards


def divides(recipe: Recipe) -> bool:
    """Whether there is anything to divide or to move: one card alone computes as it does without a strategy."""
    return recipe.num_gpus > 1 or recipe.offload_optimizer or recipe.offload_params


def stored(recipe: Recipe) -> Recipe:
    """The recipe whose widths the divided weights have.

    Accelerate casts what is trained to float32 where FSDP runs under mixed precision (Accelerator.prepare_model and
    fsdp2_prepare_model); the frozen rest keeps its dtype. DeepSpeed's bf16 casts the whole model.
    """
    if not divides(recipe):
        return recipe
    if recipe.parallelism == "fsdp" and recipe.autocast:
        if not recipe.adapted:
            return replace(recipe, precision="fp32-autocast", base_dtype="float32")
        # The second version leaves adapters beside 4-bit weights as they are.
        if recipe.fsdp_version == 1 or not recipe.four_bit:
            return replace(recipe, adapter_dtype="float32")
    return in_bfloat16(recipe) if recipe.parallelism.startswith("zero") else recipe


def computed(recipe: Recipe) -> Recipe:
    """The recipe whose widths a card computes with: gathered weights are bfloat16 under mixed precision."""
    if not divides(recipe):
        return recipe
    if recipe.parallelism == "fsdp" and recipe.autocast:
        cast = replace(recipe, precision="bf16-autocast", base_dtype="bfloat16")
        return replace(cast, adapter_dtype="bfloat16", prepare_kbit=False) if recipe.adapted else cast
    return in_bfloat16(recipe) if recipe.parallelism.startswith("zero") else recipe


def in_bfloat16(recipe: Recipe) -> Recipe:
    """DeepSpeed's engine instead of autocast: module.bfloat16(), unless the run is in float32 throughout."""
    if recipe.precision == "fp32":
        return recipe
    width = "float16" if recipe.base_dtype == "float16" else "bfloat16"
    return replace(recipe, precision="bf16", base_dtype=width, adapter_dtype="bfloat16", prepare_kbit=False)


def shards_quantized(recipe: Recipe) -> bool:
    """Whether 4-bit weights are divided: only in a floating storage dtype does FSDP or ZeRO-3 take them.

    Source: PEFT 0.21.2 docs, accelerate/fsdp.md and deepspeed.md; accelerate 1.15 puts integer Params4bit among
    ignored_params, so that each card keeps all of them.
    """
    return recipe.four_bit and recipe.quant_storage != "uint8"


def local_tensors(arch: Architecture, recipe: Recipe) -> list[Tensors]:
    """What the optimizer of the fullest card sees: whole tensors, rows of them, or flat pieces."""
    trained = trained_tensors(arch, stored(recipe))
    cards, strategy = recipe.num_gpus, recipe.parallelism
    if not divides(recipe):
        return [replace(tensors, width=4) for tensors in trained] if strategy.startswith("zero") else trained
    if strategy == "fsdp" and recipe.fsdp_version == 2:
        # fully_shard divides the first dimension, and the first cards get the rest.
        local = []
        for tensors in trained:
            if tensors.rows > 1:
                local.append(replace(tensors, rows=share(tensors.rows, cards)))
            else:
                local.append(replace(tensors, columns=share(tensors.columns, cards)))
        return local
    if strategy == "fsdp":
        return [Tensors(1, share(tensors.count, cards), tensors.copies, tensors.width, tensors.table) for tensors in trained]
    if strategy.startswith("zero"):
        return [Tensors(1, share(sum(tensors.count * tensors.copies for tensors in trained), cards), 1, 4)]
    return trained


class Sharing:
    """The bytes of one card, as memory.py adds them to a step.

    recipe      with the widths that this card computes with
    buffers     bytes of buckets that stay for the whole run
    standing    bytes of gradients that stay: those that accumulate, and partitions
    """

    def __init__(self, arch: Architecture, recipe: Recipe):
        self.arch = arch
        self.given = recipe
        self.recipe = computed(recipe)
        self.cards = recipe.num_gpus
        self.strategy = recipe.parallelism
        self.zero = self.strategy.startswith("zero")
        self.fsdp = self.strategy == "fsdp"
        self.divided = divides(recipe)
        self.accumulating = recipe.gradient_accumulation_steps > 1
        self.trained = trained_tensors(arch, self.recipe)
        self.elements = sum(tensors.count * tensors.copies for tensors in self.trained)
        self.full_gradients = gradient_bytes(arch, self.recipe)
        self.local = local_tensors(arch, recipe)
        self.local_bytes = sum(tensors.count * tensors.copies * tensors.width for tensors in self.local)
        self.embedding, self.tail = root_bytes(arch, self.recipe)
        self.units = {}
        self.unit_gradients = {}
        for shape, _ in arch.layer_counts():
            self.units[shape] = layer_bytes(arch, self.recipe, shape)
            self.unit_gradients[shape] = trained_bytes(arch, self.recipe, shape)
        self.largest_unit = max(self.units.values())
        self.buffers = self.bucket_bytes()
        self.standing = self.standing_bytes()

    # ---- what rests ----

    def weights(self) -> int:
        """Bytes of the base model on this card."""
        kept = stored(self.given)
        size = weight_bytes(self.arch, kept)
        if self.strategy != "zero3" and not self.fsdp:
            return size
        whole = undivided_bytes(self.arch, kept)
        if self.given.offload_params:
            return whole
        return whole + share(size - whole, self.cards)

    def adapters(self) -> int:
        """Bytes of what is trained beside the base model."""
        size = adapter_bytes(self.arch, stored(self.given))
        if self.strategy != "zero3" and not self.fsdp:
            return size
        if self.given.offload_params:
            return 0
        if self.fsdp:
            return self.local_bytes if self.given.adapted else 0
        return share(size, self.cards)

    def optimizer_states(self) -> int:
        """Bytes of the states of this card's part."""
        if self.given.offload_optimizer:
            return 0
        if self.zero:
            size = states_of(self.local, self.recipe.optim, 4)
            # One flat partition has no rows and columns, which some optimizers save memory by.
            return size if self.divided else max(size, states_of(self.flat(), self.recipe.optim, 4))
        if self.fsdp:
            return states_of(self.local, self.recipe.optim, 0)
        return optimizer_state_bytes(self.arch, self.recipe)

    def masters(self) -> int:
        """Bytes of float32 copies: of DeepSpeed's partition, for weights that are narrower or divided."""
        if not self.zero:
            return master_bytes(self.arch, self.recipe)
        if self.given.offload_optimizer:
            return 0
        if self.divided or self.recipe.precision == "fp32":
            return 4 * share(self.elements, self.cards)
        return 4 * sum(tensors.count * tensors.copies for tensors in self.trained if tensors.width < 4)

    def standing_bytes(self) -> int:
        """Bytes of gradients that are alive between two micro steps."""
        if self.strategy == "zero2" or self.strategy == "zero3":
            if self.given.offload_optimizer:
                return 0
            return share(self.full_gradients, self.cards)
        # Trainer accumulates without communication (no_sync): FSDP keeps whole gradients meanwhile.
        return self.full_gradients if self.accumulating else 0

    def bucket_bytes(self) -> int:
        """Bytes of buckets: DDP's hold all gradients, DeepSpeed's hidden_size² elements, its copy to the host a tensor."""
        if self.strategy == "ddp":
            return self.full_gradients
        if not self.zero:
            return 0
        width = max(tensors.width for tensors in self.trained)
        size = width * self.arch.hidden_size * self.arch.hidden_size
        if self.given.offload_optimizer and self.strategy != "zero3":
            size += max(tensors.count * tensors.width for tensors in self.trained)
        return size

    # ---- gradients ----

    def reduced(self, size: int) -> int:
        """What is left on this card of gradients once they have been reduced."""
        if self.fsdp:
            if self.given.offload_params or self.accumulating or self.full_gradients == 0:
                return 0
            return share(size, self.cards) * self.local[0].width // self.trained[0].width
        return 0 if self.divided and (self.strategy == "zero2" or self.strategy == "zero3") else size

    def step_gradients(self) -> int:
        """Bytes of gradients that the optimizer reads, beside those that stand."""
        if self.given.offload_optimizer:
            return 0 if self.strategy != "zero1" else (0 if self.accumulating else self.full_gradients)
        if self.fsdp:
            return self.local_bytes
        if self.zero and self.divided:
            part = share(self.elements, self.cards)
            return 4 * (min(part, SUB_GROUP) if self.strategy == "zero3" else part)
        return 0 if self.accumulating or self.strategy == "zero2" or self.strategy == "zero3" else self.full_gradients

    def step_standing(self) -> int:
        """Bytes of standing gradients while the optimizer steps; FSDP has reduced and ZeRO-2 freed them by then."""
        if self.fsdp or (self.zero and self.divided and self.strategy != "zero3"):
            return 0
        return self.standing

    def temporaries(self) -> int:
        """Bytes that exist only inside the optimizer's step."""
        if self.given.offload_optimizer:
            return 0
        if self.fsdp:
            return temporaries_of(self.local, self.recipe)
        if self.zero and self.divided:
            width = self.trained[0].width
            part = share(self.elements, self.cards)
            if self.strategy == "zero3":
                part = min(part, SUB_GROUP)
                # The sub-group's gradients are flattened before they become float32.
                return max(width * part, temporaries_of([Tensors(1, part, 1, 4)], self.recipe))
            # Gradients of the partition, flattened, become float32, and are freed before the step.
            return max(2 * width * part, temporaries_of(self.local, self.recipe))
        size = optimizer_temporary_bytes(self.arch, self.recipe)
        return max(size, temporaries_of(self.flat(), self.recipe)) if self.zero else size

    def flat(self) -> list[Tensors]:
        """Everything that is trained as one tensor of float32, as DeepSpeed's optimizer sees it."""
        return [Tensors(1, self.elements, 1, 4)]

    # ---- gathered weights and buckets by phase of the step ----

    def forward_layers(self) -> int:
        """While the last layers run forwards."""
        if self.fsdp:
            if self.given.fsdp_version == 1:
                return self.embedding + self.tail + self.largest_unit
            # The flat result of all-gather stays until the next one has been copied out.
            return self.tied() + 2 * self.largest_unit
        return self.live(0, True)

    def loss_forward(self) -> int:
        """While head and loss run forwards."""
        if self.fsdp:
            return self.embedding + self.tail if self.given.fsdp_version == 1 else 2 * self.tail
        return self.live(self.tail, True)

    def loss_backward(self) -> int:
        """While the loss, then the head run backwards."""
        if self.fsdp:
            root = self.embedding + self.tail if self.given.fsdp_version == 1 else self.tail
            return root + self.prefetched(len(self.arch.layers) - 1)
        return self.live(self.tail, True)

    def layer_backward(self, index: int) -> int:
        """While a layer runs backwards: its weights, the next one's, and the bucket in which the last one's gradients travel."""
        unit = self.units[self.arch.layers[index]]
        if self.fsdp:
            if self.given.fsdp_version == 1:
                return self.embedding + self.tail + unit + self.prefetched(index - 1)
            bucket = 0
            if index + 1 < len(self.arch.layers):
                bucket = self.unit_gradients[self.arch.layers[index + 1]]
            elif not self.arch.tie_word_embeddings:
                bucket = self.tail_gradients()
            return self.tied() + unit + self.prefetched(index - 1) + (0 if self.accumulating else bucket)
        return self.live(unit, index + 1 == len(self.arch.layers))

    def embedding_backward(self) -> int:
        """While the embeddings, last of all, get their gradient."""
        if self.fsdp:
            if self.given.fsdp_version == 1:
                # The gradients of the root unit become one flat tensor.
                return self.embedding + self.tail + self.root_gradients()
            lowest = self.unit_gradients[self.arch.layers[0]]
            return self.tied() + self.embedding + (0 if self.accumulating else lowest)
        # Gradients that are larger than its bucket are copied for their own reduction.
        return self.live(self.embedding, False) + (self.embedding_gradient() if self.strategy == "zero3" else 0)

    def keeps_inputs(self) -> bool:
        """Whether the inputs of all layers and their gradients stay until the backward is over.

        Version 1 reshards a unit without trained weights by a hook on its inputs, which refers to them in a circle. With
        reentrant checkpointing these inputs are leaves and hold their gradients (_register_post_backward_reshard_only_hook).
        """
        first = self.fsdp and self.given.fsdp_version == 1 and self.divided
        return first and self.given.adapted and self.given.gradient_checkpointing and self.given.use_reentrant

    def prefetched(self, index: int) -> int:
        """The unit before, gathered early; version 1 does so only where autograd has seen its forward."""
        if self.given.fsdp_version == 1:
            seen = not self.given.gradient_checkpointing or not self.given.use_reentrant
            return self.units[self.arch.layers[index]] if seen and index >= 0 else 0
        return self.units[self.arch.layers[index]] if index >= 0 else self.embedding

    def tied(self) -> int:
        """A tied table is in one unit with the final norm, which stays gathered from the first to the last of a step."""
        return self.tail if self.arch.tie_word_embeddings else 0

    def live(self, size: int, above: bool) -> int:
        """What DeepSpeed's third stage has gathered while it needs `size` bytes.

        It fetches 0.9 hidden_size² elements ahead, and keeps what the step needs again within REUSE_DISTANCE.
        above   whether the last layers are still to run backwards
        """
        if self.strategy != "zero3":
            return 0
        width = stream_width(self.recipe)
        hidden = self.arch.hidden_size
        unit, tail = self.largest_unit // width, self.tail // width
        near = 0
        if above and unit and 2 * tail < REUSE_DISTANCE:
            # From its forward to its backward a layer is as far as the layers above it, three times with recomputation,
            # and the head, twice.
            near = (REUSE_DISTANCE - 2 * tail - 1) // (3 * unit) + 1
        soon = min(near, len(self.arch.layers)) * self.largest_unit
        return min(size + soon + width * (9 * hidden * hidden // 10), self.gatherable())

    def flight(self) -> int:
        """Bytes of the largest unit that is gathered at once."""
        return self.largest_unit if self.fsdp or self.strategy == "zero3" else 0

    def gathered_per_step(self) -> int:
        """Bytes of weights that a card gathers for one micro step: layers forwards and backwards.

        Version 1 resharded a layer after its recomputation, so that it gathers it a third time where that is reentrant,
        and keeps its root unit; version 2 keeps the head.
        """
        root = self.embedding + self.tail
        layers = self.gatherable() - root
        if not self.fsdp:
            return 2 * layers + 2 * root
        if self.given.fsdp_version == 1:
            again = self.given.gradient_checkpointing and self.given.use_reentrant
            return (3 if again else 2) * layers + root
        return 2 * layers + 2 * self.embedding + self.tail

    def gatherable(self) -> int:
        """Bytes of all weights that can be gathered."""
        total = self.embedding + self.tail
        for shape, count in self.arch.layer_counts():
            total += self.units[shape] * count
        return total

    def reference(self) -> int:
        """Bytes of a second model that the policy is held against: loaded in the same dtype, shared in the same way.

        Source: TRL 1.16.0 trainer/dpo_trainer.py, DPOTrainer.__init__; models/utils.py prepare_deepspeed, prepare_fsdp.
        """
        if self.given.reference != "model":
            return 0
        kept = in_bfloat16(self.given) if self.zero and self.divided else self.given
        kept = replace(kept, prepare_kbit=False)
        size, whole = weight_bytes(self.arch, kept), undivided_bytes(self.arch, kept)
        if self.strategy != "zero3" and not self.fsdp:
            return size
        return whole + share(size - whole, self.cards)

    # ---- gradients of the tables ----

    def root_gradients(self) -> int:
        """Gradients that nothing reduces before the end: of the root unit of version 1, and of a tied table."""
        if not self.fsdp:
            return 0
        if self.given.fsdp_version == 1:
            return self.tail_gradients() + self.embedding_gradient()
        return self.tail_gradients() if self.arch.tie_word_embeddings else 0

    def after_head(self, size: int) -> int:
        """What is left of the head's gradients, so many bytes, while the layers run backwards."""
        return size if self.root_gradients() and not self.accumulating else self.reduced(size)

    def embedding_gradients(self) -> int:
        """All gradients while those of the embeddings come last, without those that stand."""
        whole = max(self.root_gradients(), self.embedding_gradient())
        if self.accumulating:
            return 0
        if self.fsdp:
            return self.reduced(self.full_gradients - whole) + whole
        divided = self.divided and (self.strategy == "zero2" or self.strategy == "zero3")
        return whole if divided else self.full_gradients

    def tail_gradients(self) -> int:
        """Bytes of the gradients of final norm and head."""
        return self.tail if not self.given.adapted or "lm_head" in self.given.modules_to_save else 0

    def embedding_gradient(self) -> int:
        """Bytes of the gradient of the token embedding, if it has one of its own."""
        return self.embedding if not self.given.adapted or "embed_tokens" in self.given.modules_to_save else 0


def layer_bytes(arch: Architecture, recipe: Recipe, shape: LayerShape) -> int:
    """Bytes of one decoder layer as it is gathered, adapters included."""
    width = stream_width(recipe)
    names = targets(arch, recipe) if recipe.adapted else ()
    size = sum(layer_vectors(arch, shape)) * width
    for linear in linears(arch, shape):
        old = recipe.transformers != "5" and linear.name.startswith("experts.")
        if recipe.method == "qlora" and (linear.experts == 0 or old):
            size += (linear.weight + 1) // 2 if shards_quantized(recipe) else 0
        else:
            size += linear.weight * width
        size += linear.biases * width
        if linear.name in names:
            size += adapter_rank(linear, recipe) * (linear.inputs + linear.outputs) * recipe.adapter_bytes
    return size


def trained_bytes(arch: Architecture, recipe: Recipe, shape: LayerShape) -> int:
    """Bytes of the gradients of one decoder layer."""
    if not recipe.adapted:
        return layer_bytes(arch, recipe, shape)
    names = targets(arch, recipe)
    size = 0
    for linear in linears(arch, shape):
        if linear.name in names:
            size += adapter_rank(linear, recipe) * (linear.inputs + linear.outputs) * recipe.adapter_bytes
    return size


def root_bytes(arch: Architecture, recipe: Recipe) -> tuple[int, int]:
    """Bytes outside the decoder layers: token embedding, and final norm with head; a tied table counts for the head."""
    width, table = stream_width(recipe), table_width(recipe)
    outer = sum(linear.weight for linear in outer_linears(arch)) + per_layer_table(arch) + arch.per_layer_size
    tail = embedding_weights(arch) * table + arch.hidden_size * width
    return (0 if arch.tie_word_embeddings else embedding_weights(arch) * table) + outer * width, tail


def undivided_bytes(arch: Architecture, recipe: Recipe) -> int:
    """Bytes of the base model that every card keeps: quantised weights that cannot be divided, and block constants."""
    if recipe.method != "qlora":
        return 0
    size = 0
    for linear, count in quantized_weights(arch, recipe):
        if recipe.quantization == "int8":
            size += int8_bytes(linear.weight, linear.outputs) * count
        elif not recipe.four_bit:
            size += gptq_bytes(linear.weight, linear.inputs) * count
        else:
            whole = nf4_bytes(linear.weight, recipe.double_quant)
            size += (whole - blocks((linear.weight + 1) // 2) if shards_quantized(recipe) else whole) * count
    return size
