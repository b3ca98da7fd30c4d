"""A decoder layer as a tape, op by op in the order of transformers' modelling code.

Each function mirrors one class or function there and is named after it. Widths in bytes follow the dtypes: autocast
casts the inputs of matrix products to bfloat16, norms compute in float32, the residual stream keeps the dtype of the
embeddings. Source: transformers 5.24.0 modeling_llama.py and its siblings, integrations/sdpa_attention.py;
PEFT 0.21.2 tuners/lora/layer.py and bnb.py; bitsandbytes 0.50.2 autograd/_functions.py.
"""

from __future__ import annotations

from . import gemma4
from .architecture import Architecture
from .delta import gated_delta_net
from .experts import sparse_block
from .latent import latent_attention
from .parameters import Linear, linears, outer_linears, targets
from .recipe import Recipe
from .shapes import LayerShape
from .states import stream_width
from .tape import DEQUANTIZED, NEW, REDUCED, REUSED, SAME, WORKSPACE, Tape, Value

# Which sets of kernels replace norms and rotation, and which the gate of the MLP.
FUSED_NORMS = ("liger", "foak", "unsloth")
FUSED_GATES = ("liger", "unsloth")
QKV = ("q_proj", "k_proj", "v_proj")
# Rows of a sequence that FlashAttention's backward rounds its buffers up to (flash_api.cpp, seqlen_q_rounded).
FLASH_ROWS = 128


class Builder:
    """Writes the layers of one model under one recipe onto a tape."""

    def __init__(self, arch: Architecture, recipe: Recipe, tape: Tape, shape: LayerShape, masked: bool):
        self.arch = arch
        self.recipe = recipe
        self.tape = tape
        self.shape = shape
        self.masked = masked
        self.full = not recipe.adapted
        self.quantized = recipe.method == "qlora"
        self.stored = []  # keys and values that later layers may take over
        self.width = stream_width(recipe)
        self.targets = targets(arch, recipe) if recipe.adapted else ()
        self.linears = {linear.name: linear for linear in outer_linears(arch) + linears(arch, shape)}

    # ---- norms ----
    def rms_norm(self, x: Value, rows: int = 1, channels: int = 0) -> Value:
        """LlamaRMSNorm, Gemma2RMSNorm, Olmo2RMSNorm: the mean square per row in float32, then the weight.

        rows      norms per token (heads for a norm per head)
        channels  elements of the weight; hidden_size if 0
        """
        tape = self.tape
        weight = tape.weight(channels or self.arch.hidden_size, self.width, self.full)
        if self.recipe.kernels in FUSED_NORMS:
            return self.rms_norm_kernel(x, rows)
        x32 = tape.to(x, 4)
        square = self.square(x32)
        variance = tape.mean(square)
        variance.per_token = rows
        inverse = tape.unary(variance, save_output=True)
        normed = tape.multiply_rows(x32, inverse)
        style = self.arch.family.norm
        if style == "llama":
            return tape.multiply_rows(tape.to(normed, x.width), weight)
        if style == "gemma":
            return tape.to(tape.multiply_rows(normed, tape.to(weight, 4)), x.width)
        return tape.to(tape.multiply_rows(normed, weight), x.width)

    def rms_norm_kernel(self, x: Value, rows: int) -> Value:
        """LigerRMSNormFunction and Unsloth's like it: saves x and one number per row; the gradient overwrites dY.

        Gemma's norms follow each other without a copy between, so there dX is a tensor of its own.
        Source: liger-kernel 0.8.5 ops/rms_norm.py, transformers/monkey_patch.py.
        """
        tape = self.tape
        inverse = tape.record([], Value(rows, 0, 0, 4, False, 0), [], [])
        how = NEW if self.arch.family.norm == "gemma" else SAME
        return tape.custom([x, inverse], tape.like(x), [x, inverse], [(x, how)])

    def square(self, x32: Value) -> Value:
        """x.pow(2); its gradient makes x.pow(1) and 2 · x.pow(1) on the way (pow_backward)."""
        workspace = Value(2 * x32.per_token, 0, 0, 4, False, WORKSPACE)
        return self.tape.custom([x32], self.tape.like(x32), [x32], [(x32, NEW)], None, workspace)

    # ---- linear layers ----
    def linear(self, x: Value, name: str) -> Value:
        """nn.Linear or a quantised layer, with PEFT's adapter around it if the layer is a target."""
        if self.quantized:
            return self.linear_quantized(x, name)
        linear = self.linears[name]
        tape = self.tape
        result = tape.matmul(x, tape.weight(linear.weight, self.recipe.weight_bytes, self.full), linear.outputs)
        if name not in self.targets:
            return result
        x = tape.to(x, self.recipe.adapter_bytes)
        output = tape.add(result, self.adapter(x, result, name))
        tape.hold(x)
        return tape.to(output, result.width)

    def adapter(self, x: Value, result: Value, name: str) -> Value:
        """What PEFT adds to the base layer's result."""
        # FOAK's fused adapters on a quantised base keep the dropped input, but no mask (fast_lora.py).
        masked = not (self.recipe.kernels == "foak" and self.quantized)
        dropped = self.tape.dropout(x, self.recipe.lora_dropout, masked)
        if self.recipe.use_dora:
            return self.dora(dropped, result, name)
        output = self.tape.scale(self.lora(dropped, name))
        if self.recipe.kernels == "litgpt" and name in QKV and not all(other in self.targets for other in QKV):
            # LitGPT's LoRAQKVLinear.zero_pad puts the adapted parts in place by index_copy, which saves its source.
            return self.tape.custom([output], self.tape.like(output), [output], [(output, NEW)])
        return output

    def lora(self, source: Value, name: str) -> Value:
        """lora_B(lora_A(x))."""
        linear = self.linears[name]
        tape = self.tape
        r, width = self.recipe.lora_r, self.recipe.adapter_bytes
        down = tape.matmul(source, tape.weight(linear.inputs * r, width, True), r)
        return tape.matmul(down, tape.weight(linear.outputs * r, width, True), linear.outputs)

    def dora(self, x: Value, result: Value, name: str) -> Value:
        """DoraLinearLayer.forward: (m - 1) · base + m · lora · scaling, m the magnitude over the norm of the new weight.

        The norm is taken without a gradient, but of full-size tensors: an identity matrix goes through both adapters,
        and its copy in the compute dtype, which the first product saves, lives until the end; then come the weight,
        the scaled product and their sum in the dtype of x. Source: peft/tuners/lora/dora.py.
        """
        linear, tape = self.linears[name], self.tape
        width = self.recipe.adapter_bytes
        compute = 2 if self.recipe.autocast else width
        identity = linear.inputs * linear.inputs
        copies = 2 if x.width == result.width and not self.quantized else 3
        if compute != x.width:
            copies += 1
        late = identity * compute + linear.weight * compute + copies * linear.weight * x.width
        early = identity * (width + (compute if compute != width else 0)) + linear.weight * compute
        scratch = max(early, late)
        # TRL's cast of the adapters to bfloat16 leaves the magnitudes in float32.
        wide = 4 if self.recipe.autocast else width
        magnitude = tape.weight(linear.outputs, wide, True)
        norm = Value(0, scratch, 0, 1, False, WORKSPACE)
        scale = tape.custom([magnitude], Value(0, linear.outputs, 0, wide, True, 0), [], [(magnitude, NEW)], norm)
        tape.product(0.0, float(identity + linear.weight) * self.recipe.lora_r, 0.0, 1, 0)
        # The adapters' weight, its identity matrix and the base weight in the dtype of x stay until the function returns.
        own = not self.quantized and x.width == self.recipe.weight_bytes
        frame = identity * compute + linear.weight * x.width
        copy = Value(0, 0 if own else linear.weight, 0, x.width, False, WORKSPACE)
        frame = tape.custom([], Value(0, frame, 0, 1, False, WORKSPACE), [], [])
        tape.custom([], copy, [], [])
        lora = self.lora(x, name)
        if self.recipe.lora_dropout > 0:
            # Without the base layer's result for the dropped input, DoRA computes it again with the whole weight.
            whole = tape.weight(linear.weight, x.width, False) if own else copy
            result = tape.matmul(x, whole, linear.outputs)
        part = tape.multiply_rows(result, tape.scale(scale))
        output = tape.add(part, tape.scale(tape.multiply_rows(lora, scale)))
        tape.hold(frame, copy)
        return output

    def linear_quantized(self, x: Value, name: str) -> Value:
        """A frozen quantised layer and PEFT's adapter: bitsandbytes' Linear4bit and Linear8bitLt, GPTQ, AWQ.

        Linear4bit casts its input to the compute dtype and its result back, and PEFT clones the result.
        """
        linear = self.linears[name]
        tape, recipe = self.tape, self.recipe
        if recipe.quantization == "int8":
            result = self.matmul_int8(x, linear)
        else:
            dequantized = Value(0, linear.weight, 0, 2, False, DEQUANTIZED)
            # FOAK's LoRA_QKV saves the input of q, k and v once.
            kept = recipe.quantized_inputs_kept or (recipe.kernels == "foak" and name == "q_proj" and name in self.targets)
            result = tape.quantized_matmul(tape.to(x, 2), linear.outputs, dequantized, kept)
            result = tape.to(result, x.width)
        if name not in self.targets:
            return result
        if recipe.four_bit:
            result = tape.custom([result], tape.like(result), [], [(result, SAME)])
        if not recipe.autocast:
            x = tape.to(x, recipe.adapter_bytes)
        output = self.adapter(x, result, name)
        if not recipe.autocast:
            output = tape.to(output, result.width)
        tape.hold(x)
        return tape.add(result, output)

    def matmul_int8(self, x: Value, linear: Linear) -> Value:
        """MatMul8bitLt: the input in float16 and in int8, an int32 product.

        The weight is dequantised for the backward, in the dtype of the input.

        The input is kept as an attribute of the op in the first forward, where checkpointing does not reach it; a
        recomputation that is not reentrant makes no op that would keep it.
        """
        tape, recipe = self.tape, self.recipe
        kept = [] if recipe.gradient_checkpointing and not recipe.use_reentrant else [x]
        output = Value(linear.outputs, 0, 0, x.width, False, 0)
        forward = Value(3 * linear.inputs + 4 * linear.outputs, 0, 0, 1, False, WORKSPACE)
        dequantized = Value(0, linear.weight, 0, x.width, False, DEQUANTIZED)
        tape.pin(x)
        tape.custom([x], output, kept, [(x, NEW)], forward, dequantized)
        tape.product(float(linear.weight), 0.0, 0.0)
        return output

    # ---- attention ----
    def rotary(self, x: Value, table: Value) -> Value:
        """apply_rotary_pos_emb for one of query and key: x · cos + rotate_half(x) · sin."""
        tape = self.tape
        if self.recipe.kernels in FUSED_NORMS:
            return tape.view(x)  # rotated in place, forwards and backwards; liger-kernel 0.8.5 ops/rope.py
        width = max(x.width, self.arch.family.rotary_width or self.width)
        if self.arch.family.rotary == "chunk":
            return self.rotary_chunk(x, table)
        if self.shape.rotary_dim != self.shape.head_dim:
            return self.rotary_part(x, table)
        straight = tape.scale_by(x, table, width)
        half = x.per_token // 2
        turned = tape.cat([tape.neg(tape.slice(x, half)), tape.slice(x, half)])
        turned = tape.add(straight, tape.scale_by(turned, table, width))
        if self.arch.family.rotary_width:
            turned = tape.to(turned, x.width)
        # Phi-3 rotates a part of each head and joins it with the rest, even if that is empty.
        return tape.cat([turned]) if self.arch.family.fused else turned

    def rotary_part(self, x: Value, table: Value) -> Value:
        """The first elements of each head are rotated, the others only joined with them again."""
        tape = self.tape
        size = x.per_token * self.shape.rotary_dim // self.shape.head_dim
        turning, passing = tape.slice(x, size), tape.slice(x, x.per_token - size)
        half = size // 2
        turned = tape.cat([tape.neg(tape.slice(turning, half)), tape.slice(turning, half)])
        rotated = tape.add(tape.scale_by(turning, table), tape.scale_by(turned, table))
        return tape.cat([rotated, passing])

    def rotary_chunk(self, x: Value, table: Value) -> Value:
        """GptOss' _apply_rotary_emb: the halves are rotated one after the other, then joined."""
        tape = self.tape
        first, second = tape.chunk(x, 2)
        upper = tape.add(tape.scale_by(first, table), tape.scale_by(second, table))
        lower = tape.add(tape.scale_by(second, table), tape.scale_by(first, table))
        turned = tape.cat([upper, lower])
        tape.hold(upper, lower)
        return turned

    def repeat_kv(self, x: Value) -> Value:
        """One key or value head per query head: a copy, but a view of a single head, and nothing if there are as many."""
        shape = self.shape
        if shape.num_attention_heads == shape.num_key_value_heads:
            return x
        output = self.tape.like(x)
        output.per_token = shape.query_size
        if shape.num_key_value_heads == 1:
            output.view_of = x
        return self.tape.custom([x], output, [], [(x, NEW)])

    def repeat_interleave(self, x: Value) -> Value:
        """What the memory-efficient kernel gets under enable_gqa: always a copy, also of a single head."""
        if self.shape.num_attention_heads == self.shape.num_key_value_heads:
            return x
        output = self.tape.like(x)
        output.per_token = self.shape.query_size
        return self.tape.custom([x], output, [], [(x, NEW)])

    def contiguous(self, x: Value) -> Value:
        """matmul folds batch and heads into one dimension, which needs a copy of a transposed tensor if there are sequences > 1."""
        if self.recipe.sequences == 1:
            return x
        return self.tape.custom([x], self.tape.like(x), [], [(x, SAME)])

    def filling(self, step: int) -> int:
        """Tokens that the batch lacks until each of its sequences is a multiple of `step`."""
        return self.recipe.sequences * ((step - self.recipe.sequence_length % step) % step)

    def attend(self, q: Value, k: Value, v: Value) -> Value:
        """The attention itself, as the recipe wants it."""
        if self.recipe.attention == "eager":
            return self.eager(q, k, v)
        return self.flash(q, k, v) if self.recipe.attention == "flash" else self.sdpa(q, k, v)

    def sdpa(self, q: Value, k: Value, v: Value) -> Value:
        """scaled_dot_product_attention as CUDA runs it: flash without a mask in 16 bits, else memory-efficient."""
        tape = self.tape
        repeated = self.masked or self.shape.head_dim > 256
        if repeated:
            # transformers repeats the heads itself where no kernel takes grouped ones, before autocast's cast.
            k, v = self.repeat_kv(k), self.repeat_kv(v)
        before = (q, k, v)
        q, k, v = (tape.matmul_input(x) for x in (q, k, v))
        if q.width == 2 and not self.masked and self.shape.head_dim <= 256:
            return self.flash(q, k, v)
        if not repeated:
            k, v = self.repeat_interleave(k), self.repeat_interleave(v)
        saved = [q, k, v]
        if self.masked:
            # The Boolean mask becomes a bias in the query's dtype, kept for the backward.
            # A row that is no multiple of 16 elements is padded, which makes a second one.
            bias = Value(0, 0, 1, q.width, False, 0)
            unpadded = None if self.recipe.sequence_length % 16 == 0 else Value(0, 0, 1, q.width, False, WORKSPACE)
            tape.record([], bias, [], [], unpadded)
            saved.append(bias)
        lse = tape.record([], Value(self.shape.num_attention_heads, 0, 0, 4, False, 0), [], [])
        output = tape.like(q)
        workspace = Value(self.shape.num_attention_heads + (self.shape.query_size if q.width == 2 else 0), 0, 0, 4, False, WORKSPACE)
        inputs = [q, k, v, lse] + saved[3:]
        output = tape.custom(inputs, output, saved + [lse, output], [(v, NEW), (k, NEW), (q, NEW)], None, workspace)
        self.fused_products()
        tape.hold(*before)
        return output

    def flash(self, q: Value, k: Value, v: Value) -> Value:
        """FlashAttention-2: saves q, k, v, the output and its log-sum-exp.

        Its backward (csrc/flash_attn/flash_api.cpp, mha_bwd) allocates dq and softmax_d in float32, and with grouped
        query heads dk and dv per query head. Rows of dq and softmax_d are rounded up to 128 per sequence.
        """
        tape, arch = self.tape, self.arch
        if self.recipe.transformers != "5" and arch.model_type in ("mistral", "mixtral"):
            k, v = self.repeat_kv(k), self.repeat_kv(v)  # MistralFlashAttention2 until 4.47
        q, k, v = (tape.to(x, 2) for x in (q, k, v))
        lse = tape.record([], Value(self.shape.num_attention_heads, 0, 0, 4, False, 0), [], [])
        output = tape.like(q)
        expanded = self.shape.query_size if self.shape.num_key_value_heads != self.shape.num_attention_heads else 0
        step = 32 if self.shape.head_dim <= 128 else 64
        padded = (self.shape.head_dim + step - 1) // step * step
        row = self.shape.num_attention_heads * (padded + 1)
        workspace = Value(row + expanded, row * self.filling(FLASH_ROWS), 0, 4, False, WORKSPACE)
        output = tape.custom(
            [q, k, v, lse], output, [q, k, v, lse, output], [(v, NEW), (k, NEW), (q, NEW)], None, workspace
        )
        self.fused_products()
        if self.joined_by_head():
            # The output is laid out like q, which the cat at the end of the rotation stored head by head: o_proj needs a copy.
            return tape.custom([output], tape.like(output), [], [(output, SAME)])
        return output

    def fused_products(self) -> None:
        """Scores and weighted values of a fused attention kernel; its backward computes the scores again.

        Of all pairs of tokens, as torch counts them: neither the causal half nor a window is taken off
        (torch/utils/flop_counter.py, sdpa_flop_count, sdpa_backward_flop_count).
        """
        self.tape.product(0.0, 0.0, float(self.shape.query_size), 2, 5)

    def joined_by_head(self) -> bool:
        """Whether the rotation ends with a cat, which stores queries head by head instead of token by token."""
        family = self.arch.family
        return family.fused or family.rotary == "chunk" or self.shape.rotary_dim != self.shape.head_dim

    def eager(self, q: Value, k: Value, v: Value) -> Value:
        """eager_attention_forward: scores, scaling, mask, softmax in float32, product with the values."""
        tape, arch = self.tape, self.arch
        heads = self.shape.num_attention_heads
        query_width = q.width
        grouped = 1 < self.shape.num_key_value_heads < heads
        q = self.contiguous(q)
        k, v = self.repeat_kv(k), self.repeat_kv(v)
        if not grouped:
            k, v = self.contiguous(k), self.contiguous(v)
        products = (0.0, 0.0, float(self.shape.query_size))
        scores = tape.scale(self.batched_matmul(q, k, Value(0, 0, heads, 2, False, 0), products))
        if arch.attn_logit_softcapping:
            scores = tape.scale(tape.unary(tape.scale(scores), save_output=True))
        scores = self.add_mask(scores)
        factor = self.sink_factor(scores) if arch.family.sinks == "scale" else None
        if arch.family.sinks == "column":
            weights = tape.to(self.softmax_with_sinks(scores), query_width)
        else:
            weights = tape.to(tape.unary(tape.to(scores, 4), save_output=True), query_width)
        output = self.batched_matmul(weights, v, Value(self.shape.query_size, 0, 0, 2, False, 0), products)
        if factor is not None:
            output = tape.multiply_rows(output, tape.to(factor, output.width))
        output = tape.custom([output], tape.like(output), [], [(output, SAME)])
        tape.hold(q, k, v, weights)
        return output

    def sink_factor(self, scores: Value) -> Value:
        """GraniteSWA: sigmoid(logsumexp(scores) - sink), one number per token and head, in float32.

        autocast casts the scores for it; its backward is one expression, grad · exp(scores - sums), with two temporaries.
        """
        tape, heads = self.tape, self.shape.num_attention_heads
        scores = tape.to(scores, 4) if self.recipe.autocast else scores
        workspace = Value(0, 0, 2 * heads, scores.width, False, WORKSPACE)
        sums = Value(heads, 0, 0, scores.width, False, 0)
        sums = tape.custom([scores], sums, [scores], [(scores, NEW)], None, workspace)
        return tape.unary(tape.to(tape.scale(sums), 4), save_output=True)

    def softmax_with_sinks(self, scores: Value) -> Value:
        """gpt-oss' eager attention: one more column, the largest score subtracted, softmax in the scores' dtype, column cut off."""
        tape, heads = self.tape, self.shape.num_attention_heads
        sinks = Value(heads, 0, 0, scores.width, self.full, 0)
        sinks.view_of = tape.weight(heads, self.width, self.full)
        combined = tape.cat([scores, sinks])
        index = tape.record([], Value(heads, 0, 0, 8, False, 0), [], [])
        largest = tape.custom([combined, index], Value(heads, 0, 0, combined.width, True, 0), [index], [(combined, NEW)])
        shifted = tape.custom([combined, largest], tape.like(combined), [], [(combined, SAME), (largest, REDUCED)])
        probabilities = tape.unary(shifted, save_output=True)
        tape.hold(scores, shifted)
        return tape.slice(probabilities, 0)

    def batched_matmul(
        self, left: Value, right: Value, output: Value, multiplied: tuple[float, float, float]
    ) -> Value:
        """Product of two activations; each is saved for the gradient of the other. See Tape.product for `multiplied`."""
        left, right = self.tape.matmul_input(left), self.tape.matmul_input(right)
        output.width = left.width
        saved = []
        if right.requires_grad:
            saved.append(left)
        if left.requires_grad:
            saved.append(right)
        self.tape.custom([left, right], output, saved, [(left, NEW), (right, NEW)])
        self.tape.product(*multiplied)
        return output

    def add_mask(self, scores: Value) -> Value:
        """Causal mask in the dtype of the hidden states: float32 scores if those are."""
        output = self.tape.like(scores, max(scores.width, self.width))
        how = SAME if output.width == scores.width else NEW
        return self.tape.custom([scores], output, [], [(scores, how)])

    def attention(self, x: Value, tables: Value) -> Value:
        """LlamaAttention.forward."""
        tape, arch = self.tape, self.arch
        if arch.family.fused:
            qkv = self.linear(x, "qkv_proj")
            q = tape.slice(qkv, self.shape.query_size)
            k = tape.slice(qkv, self.shape.key_value_size)
            v = tape.slice(qkv, self.shape.key_value_size)
        else:
            q, k, v, gate = self.linear(x, "q_proj"), None, None, None
            if arch.family.output_gate:
                q, gate = tape.chunk(q, 2)
                gate = tape.custom([gate], tape.like(gate), [], [(gate, SAME)])
            if arch.family.qk_norm == "head":
                q = self.rms_norm(q, self.shape.num_attention_heads, self.shape.head_dim)
            if arch.family.qk_norm == "full":
                q = self.rms_norm(q, 1, self.shape.query_size)
            k = self.linear(x, "k_proj")
            if arch.family.qk_norm == "head":
                k = self.rms_norm(k, self.shape.num_key_value_heads, self.shape.head_dim)
            if arch.family.qk_norm == "full":
                k = self.rms_norm(k, 1, self.shape.key_value_size)
            v = self.linear(x, "v_proj")
        if self.shape.rotary:
            q, k = self.rotary(q, tables), self.rotary(k, tables)
        if arch.family.query_scale:
            q = tape.scale_by(q, tables)
        output = self.attend(q, k, v)
        if arch.family.output_gate:
            output = tape.multiply(output, tape.unary(gate, save_output=True))
            tape.hold(gate)
        result = self.linear(output, "o_proj")
        tape.hold(x, q, k, v, output)
        return result

    # ---- feed-forward ----
    def mlp(self, x: Value, prefix: str = "") -> Value:
        """LlamaMLP: down(act(gate(x)) · up(x))."""
        tape = self.tape
        if self.arch.family.fused:
            gate, up = tape.chunk(self.linear(x, "gate_up_proj"), 2)
            product = tape.multiply(up, tape.unary(gate))
        else:
            gate = self.linear(x, prefix + "gate_proj")
            if self.recipe.kernels not in FUSED_GATES:
                product = tape.multiply(tape.unary(gate), self.linear(x, prefix + "up_proj"))
            else:
                product = self.gated_kernel(gate, self.linear(x, prefix + "up_proj"))
        result = self.linear(product, prefix + "down_proj")
        tape.hold(x, product)
        return result

    def gated_kernel(self, gate: Value, up: Value) -> Value:
        """LigerSiLUMulFunction: saves both factors, whose memory its backward reuses for their gradients.

        Source: liger-kernel 0.8.5 ops/swiglu.py; Unsloth's swiglu.py works alike.
        """
        return self.tape.custom([gate, up], self.tape.like(gate), [gate, up], [(gate, REUSED), (up, REUSED)])

    def experts(self, x: Value) -> Value:
        """The mixture-of-experts block in place of the MLP."""
        return sparse_block(self, x)

    # ---- a decoder layer ----
    def decoder_layer(self, x: Value) -> Value:
        """LlamaDecoderLayer: attention and MLP, each on the residual stream, norms before, after or both."""
        if self.arch.family.layer == "gemma4":
            return gemma4.decoder_layer(self, x)
        tape = self.tape
        places = self.arch.family.norm_places
        tables = Value(0, 0, 0, 4, False, 0)  # cos and sin, shared by all layers and counted with the inputs
        hidden = x
        for block in (self.attention, self.experts if self.shape.num_experts else self.mlp):
            branch = hidden if places == "post" else self.rms_norm(hidden)
            if block != self.attention:
                branch = block(branch)
            elif self.shape.delta is not None:
                branch = gated_delta_net(self, branch)
            elif self.shape.latent is not None:
                branch = latent_attention(self, branch)
            else:
                branch = block(branch, tables)
            if places != "pre":
                branch = self.rms_norm(branch)
            if self.arch.family.residual_scale:
                branch = tape.scale(branch)
            hidden = tape.add(hidden, branch)
        return hidden
