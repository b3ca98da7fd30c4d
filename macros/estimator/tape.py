"""The forward pass of a stage written down op by op: which tensors each op makes, saves and differentiates.

`layers.py` calls the ops below in the order in which the modelling code runs them; `replay.py` walks the list forwards
and backwards. What an op saves, and for which input, stands in torch's tools/autograd/derivatives.yaml (torch 2.13).
"""

from __future__ import annotations

# Kinds of tensors inside a stage, in the order of a snapshot.
ACTIVATION, CHECKPOINT, CAST, DEQUANTIZED, BACKWARD, GRADIENT, WORKSPACE, LOGITS, LOSS = range(9)
KINDS = 9

# How the gradient of an input comes about.
# SAME: the output's gradient itself; NEW: a tensor of the input's shape; REDUCED: one of the output's shape and dtype,
# then its sum or its cast; PART: one part of a cat; REUSED: written over what the op had saved.
SAME, NEW, REDUCED, PART, REUSED = range(5)


class Value:
    """A tensor: `per_token`, `fixed` and `per_square` elements of `width` bytes.

    A tensor has per_token · t + fixed + per_square · t · s elements, t tokens in sequences of s tokens.

    weight     a weight: counted elsewhere
    tied       a weight that another stage uses too: its gradient waits for that one's before it reaches `.grad`
    view_of    the tensor whose memory this one shares
    last_use   index of the last op that has it as input
    saves      ops that keep it for their backward
    """

    __slots__ = (
        "fixed", "kind", "last_use", "per_square", "per_token", "requires_grad", "saves", "tied", "view_of", "weight", "width",
    )  # fmt: skip

    def __init__(
        self, per_token: int, fixed: int, per_square: int, width: int, requires_grad: bool, kind: int
    ) -> None:
        self.per_token = per_token
        self.fixed = fixed
        self.per_square = per_square
        self.width = width
        self.requires_grad = requires_grad
        self.kind = kind
        self.weight = False
        self.tied = False
        self.view_of: Value | None = None
        self.last_use = -1
        self.saves = 0

    def storage(self) -> Value:
        """The tensor that owns the memory."""
        value = self
        while value.view_of is not None:
            value = value.view_of
        return value


class Op:
    """One step of the forward pass and what its backward needs.

    tag       the part of the stage it belongs to: "layer", "head", "loss", "inputs"
    saved     tensors that autograd keeps until this op's backward
    grads     pairs (input, SAME | NEW | REDUCED | PART | REUSED) in the order in which the backward makes them
    forward_workspace, backward_workspace   alive during the op only
    multiplied   multiply-adds of one matrix product: per token, fixed, per token · length; None for all other ops
    forward_products, backward_products   how many products of that size the op computes
    """

    __slots__ = (
        "backward_products", "backward_workspace", "forward_products", "forward_workspace", "grads", "inputs", "multiplied",
        "output", "saved", "tag",
    )  # fmt: skip

    def __init__(
        self,
        tag: str,
        inputs: list[Value],
        output: Value,
        saved: list[Value],
        grads: list[tuple[Value, int]],
        forward_workspace: Value | None,
        backward_workspace: Value | None,
    ) -> None:
        self.tag = tag
        self.inputs = inputs
        self.output = output
        self.saved = saved
        self.grads = grads
        self.forward_workspace = forward_workspace
        self.backward_workspace = backward_workspace
        self.multiplied: tuple[float, float, float] | None = None
        self.forward_products = 0
        self.backward_products = 0


class Tape:
    """The ops of one stage (a decoder layer, the head), in order.

    tag, kind      of the ops and of their results that are written next
    cached_casts   bytes of the casts that autocast keeps until the whole forward is over
    pinned         tensors that Python keeps outside autograd
    """

    def __init__(self, autocast: bool) -> None:
        self.autocast = autocast
        self.ops: list[Op] = []
        self.tag = ""
        self.kind = ACTIVATION
        self.cached_casts = 0
        self.pinned: list[Value] = []

    # ---- tensors ----
    def tensor(self, per_token: int, width: int, requires_grad: bool, kind: int = ACTIVATION) -> Value:
        """A tensor that exists before the stage begins."""
        return Value(per_token, 0, 0, width, requires_grad, kind)

    def weight(self, count: int, width: int, requires_grad: bool) -> Value:
        """A weight: its memory is counted elsewhere, its gradient here."""
        value = Value(0, count, 0, width, requires_grad, GRADIENT)
        value.weight = True
        return value

    def like(self, value: Value, width: int | None = None, requires_grad: bool | None = None) -> Value:
        """A new tensor of the same shape."""
        return Value(
            value.per_token,
            value.fixed,
            value.per_square,
            value.width if width is None else width,
            value.requires_grad if requires_grad is None else requires_grad,
            self.kind,
        )

    def record(
        self,
        inputs: list[Value],
        output: Value,
        saved: list[Value],
        grads: list[tuple[Value, int]],
        forward_workspace: Value | None = None,
        backward_workspace: Value | None = None,
    ) -> Value:
        """Append an op; inputs without gradient drop out of `grads`, and with no gradient left nothing is saved."""
        index = len(self.ops)
        wanted = [(value, how) for value, how in grads if value.requires_grad]
        if not wanted:
            output.requires_grad = False
            saved = []
        else:
            output.requires_grad = True
        for value in inputs:
            value.storage().last_use = index
        owners = [value.storage() for value in saved if not value.weight]
        self.ops.append(Op(self.tag, inputs, output, owners, wanted, forward_workspace, backward_workspace))
        output.storage().last_use = index
        return output

    def product(
        self, per_token: float, fixed: float, per_square: float, forward: int = 1, backward: int | None = None
    ) -> None:
        """Say that the op written last is a matrix product, of so many multiply-adds.

        Each gradient of it is one product of the same size, unless `backward` names another number.
        """
        op = self.ops[-1]
        op.multiplied = (per_token, fixed, per_square)
        op.forward_products = forward
        op.backward_products = len(op.grads) if backward is None else backward

    def hold(self, *values: Value) -> None:
        """A Python frame still refers to these tensors here."""
        for value in values:
            value.storage().last_use = len(self.ops) - 1

    def pin(self, value: Value) -> None:
        """Kept by Python outside autograd's saved tensors: checkpointing does not free it."""
        owner = value.storage()
        if owner not in self.pinned:
            self.pinned.append(owner)

    def saved_upstream(self, values: list[Value]) -> list[Value]:
        """These tensors, and everything that the ops which led to them saved: alive as long as someone holds the tensors."""
        makers = {id(op.output): op for op in self.ops}
        found, pending, seen = [], list(values), []
        for value in values:
            found.append(value.storage())
        while pending:
            value = pending.pop()
            op = makers.get(id(value))
            if op is None or op in seen:
                continue
            seen.append(op)
            pending = pending + op.inputs
            for saved in op.saved:
                if saved not in found:
                    found.append(saved)
        return found

    # ---- ops ----
    def view(self, value: Value, per_token: int | None = None) -> Value:
        """view, transpose, chunk: the same memory."""
        output = self.like(value)
        if per_token is not None:
            output.per_token = per_token
        output.view_of = value
        return self.record([value], output, [], [(value, SAME)])

    def slice(self, value: Value, per_token: int) -> Value:
        """A part of the last dimension: the same memory; its gradient is zeros of the whole (slice_backward)."""
        output = self.like(value)
        output.per_token = per_token
        output.view_of = value
        return self.record([value], output, [], [(value, NEW)])

    def chunk(self, value: Value, count: int) -> list[Value]:
        """Equal parts of the last dimension."""
        return self.split(value, [value.per_token // count] * count)

    def split(self, value: Value, sizes: list[int]) -> list[Value]:
        """Parts of the last dimension: the same memory; their gradients are put together by one cat."""
        whole = self.view(value)
        parts = []
        for size in sizes:
            part = self.like(whole)
            part.per_token = size
            part.view_of = whole
            parts.append(self.record([whole], part, [], [(whole, PART)]))
        return parts

    def to(self, value: Value, width: int, cached: bool = True) -> Value:
        """Cast; no op if the dtype is right already. The gradient is cast back.

        Autocast keeps its casts of trained weights until the forward of the whole model ends (at::autocast, cached_cast).
        """
        if value.width == width:
            return value
        output = self.like(value, width)
        if value.weight:
            output.kind = CAST
            if cached and self.autocast and value.requires_grad:
                self.cached_casts += output.fixed * output.width
        return self.record([value], output, [], [(value, NEW)])

    def matmul_input(self, value: Value) -> Value:
        """What autocast hands to a matrix product: a copy in bfloat16 if the tensor is wider."""
        return self.to(value, 2) if self.autocast and value.width == 4 else value

    def add(self, left: Value, right: Value) -> Value:
        """Sum in the wider dtype; the gradient goes to both as it is, or cast for the narrower one."""
        width = max(left.width, right.width)
        output = self.like(left, width)
        grads = [(side, SAME if side.width == width else NEW) for side in (left, right)]
        return self.record([left, right], output, [], grads)

    def add_constant(self, value: Value) -> Value:
        """Sum with a tensor without gradient (a mask)."""
        return self.record([value], self.like(value), [], [(value, SAME)])

    def scale(self, value: Value) -> Value:
        """Product with, or division by, a number."""
        return self.record([value], self.like(value), [], [(value, NEW)])

    def scale_by(self, value: Value, factor: Value, width: int | None = None) -> Value:
        """Product with a tensor without gradient that is kept elsewhere (rotary cosines)."""
        output = self.like(value, width)
        return self.record([value, factor], output, [factor], [(value, product_gradient(value, output))])

    def gather(self, value: Value, per_token: int, index: Value) -> Value:
        """Rows chosen by an index that is kept for the backward, which adds into zeros of the source's shape."""
        output = self.like(value)
        output.per_token = per_token
        return self.record([value, index], output, [index], [(value, NEW)])

    def grouped_matmul(self, value: Value, weight: Value, per_token: int, rows: int) -> Value:
        """torch's grouped_mm: products of sorted rows, so many per token, with one matrix per expert.

        autocast does not reach it.
        """
        source = self.to(value, weight.width)
        output = Value(per_token, 0, 0, source.width, False, self.kind)
        saved = []
        if source.requires_grad:
            saved.append(weight)
        if weight.requires_grad:
            saved.append(source)
        self.record([source, weight], output, saved, [(weight, NEW), (source, NEW)])
        self.product(float(value.per_token) * per_token / rows, 0.0, 0.0)
        return output

    def neg(self, value: Value) -> Value:
        """Product with -1."""
        return self.scale(value)

    def multiply(self, left: Value, right: Value, width: int | None = None) -> Value:
        """Elementwise product; each side is saved for the gradient of the other."""
        output = self.like(left, width if width is not None else max(left.width, right.width))
        saved = []
        if right.requires_grad:
            saved.append(left)
        if left.requires_grad:
            saved.append(right)
        grads = [(side, product_gradient(side, output)) for side in (left, right)]
        return self.record([left, right], output, saved, grads)

    def multiply_rows(self, value: Value, rows: Value, width: int | None = None) -> Value:
        """Product with one number per token or per channel (`rows`): that gradient is summed after a full product."""
        output = self.like(value, width if width is not None else max(value.width, rows.width))
        saved = []
        if rows.requires_grad:
            saved.append(value)
        if value.requires_grad:
            saved.append(rows)
        grads = [(rows, REDUCED), (value, product_gradient(value, output))]
        return self.record([value, rows], output, saved, grads)

    def unary(self, value: Value, save_output: bool = False) -> Value:
        """silu, gelu, square: saves its input; tanh, softmax, sigmoid, rsqrt: its output."""
        output = self.like(value)
        return self.record([value], output, [output if save_output else value], [(value, NEW)])

    def mean(self, value: Value) -> Value:
        """Mean over the last dimension; the gradient is expanded to the full shape."""
        output = Value(1, 0, 0, value.width, value.requires_grad, self.kind)
        return self.record([value], output, [], [(value, NEW)])

    def cat(self, values: list[Value]) -> Value:
        """One tensor of the parts; gradients are views."""
        output = self.like(values[0])
        output.per_token = sum(value.per_token for value in values)
        return self.record(list(values), output, [], [(value, SAME) for value in values])

    def dropout(self, value: Value, probability: float, masked: bool = True) -> Value:
        """native_dropout: a new tensor and a mask of one byte per element, kept for the backward."""
        if probability == 0:
            return value
        if not masked:
            return self.record([value], self.like(value), [], [(value, NEW)])
        mask = self.like(value, 1, False)
        self.record([], mask, [], [])
        return self.record([value, mask], self.like(value), [mask], [(value, NEW)])

    def matmul(self, value: Value, weight: Value, per_token: int) -> Value:
        """Product of a tensor with a weight: saves the tensor if the weight is trained, the weight if the tensor is."""
        source = self.matmul_input(value)
        matrix = self.matmul_input(weight)
        output = Value(per_token, 0, 0, source.width, False, self.kind)
        saved = []
        if source.requires_grad:
            saved.append(matrix)
        if matrix.requires_grad:
            saved.append(source)
        self.record([source, matrix], output, saved, [(matrix, NEW), (source, NEW)])
        self.product(float(value.per_token) * per_token, 0.0, 0.0)
        return output

    def quantized_matmul(
        self, value: Value, per_token: int, dequantized: Value, keep_input: bool = False
    ) -> Value:
        """bitsandbytes' MatMul4Bit: the weight is dequantised for the product and again for the backward."""
        output = Value(per_token, 0, 0, value.width, False, self.kind)
        saved = [value] if keep_input else []
        self.record([value], output, saved, [(value, NEW)], dequantized, dequantized)
        self.product(float(value.per_token) * per_token, 0.0, 0.0)
        return output

    def custom(
        self,
        inputs: list[Value],
        output: Value,
        saved: list[Value],
        grads: list[tuple[Value, int]],
        forward_workspace: Value | None = None,
        backward_workspace: Value | None = None,
    ) -> Value:
        """An op with a kernel of its own (attention)."""
        return self.record(inputs, output, saved, grads, forward_workspace, backward_workspace)


def product_gradient(factor: Value, product: Value) -> int:
    """The gradient of a factor is a product in the wider dtype, which the engine casts where the factor's is narrower."""
    return NEW if factor.width == product.width else REDUCED
