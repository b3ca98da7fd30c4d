"""Walks a tape as PyTorch does and remembers which tensors are alive when the most are.

Forwards, a result is allocated and an input released after its last use, unless autograd saved it. Backwards, the ops
run in reverse, each frees what it had saved, and gradients are added up in place. What is alive is a form in the
number of tokens t and in t · s for sequences of s tokens, so one replay serves every batch and length.

Sources, torch 2.13: torch/csrc/autograd/engine.cpp (nodes run in reverse order of their making), input_buffer.cpp (a
gradient is added in place when nobody else holds the first), functions/accumulate_grad.h (`.grad` takes the tensor
over), torch/utils/checkpoint.py (recomputation stops after the last tensor that was saved).
"""

from __future__ import annotations

from .tape import BACKWARD, GRADIENT, KINDS, LOGITS, LOSS, NEW, PART, REUSED, SAME, Op, Tape, Value


class Peaks:
    """The states that can be the largest for some batch and length, by tag; dominated ones are dropped.

    states   for each tag (per token, fixed, per token · length, bytes by kind): the form of the sum in bytes, then the
             same three numbers of every kind of tape.py, one after the other
    """

    def __init__(self) -> None:
        self.states: dict[str, list[tuple[int, int, int, list[int]]]] = {}

    def see(self, tag: str, live: list[int], per_token: int, fixed: int, per_square: int) -> None:
        """Keep a state unless another one is at least as large for every batch and length."""
        states = self.states.get(tag)
        if states is None:
            self.states[tag] = [(per_token, fixed, per_square, list(live))]
            return
        for state in states:
            if state[0] >= per_token and state[1] >= fixed and state[2] >= per_square:
                return
        self.states[tag] = [
            state
            for state in states
            if not (per_token >= state[0] and fixed >= state[1] and per_square >= state[2])
        ] + [(per_token, fixed, per_square, list(live))]


class Replay:
    """Counts what is alive while a tape runs.

    accumulating   `.grad` exists already, so a weight's new gradient is added to it and released
    live           bytes alive, three numbers of each kind: per token, fixed, per token · length; `total` is their sum
    alive          tensors of the forward that are alive, by id
    gradients      the gradient that has reached a tensor so far, by the tensor's id
    parts          gradients of the parts of a split tensor, by its id
    owners         how many refer to a gradient, by its id
    """

    def __init__(self, tape: Tape, accumulating: bool) -> None:
        self.ops = tape.ops
        self.accumulating = accumulating
        self.peaks = Peaks()
        self.live: list[int] = [0] * (3 * KINDS)
        self.total: list[int] = [0, 0, 0]
        self.alive: dict[int, Value] = {}
        self.gradients: dict[int, Value] = {}
        self.parts: dict[int, list[Value]] = {}
        self.owners: dict[int, int] = {}

    # ---- counting ----
    def count(self, value: Value, sign: int) -> None:
        """Add a tensor to what is alive, or take it away."""
        width = value.width * sign
        per_token, fixed, per_square = value.per_token * width, value.fixed * width, value.per_square * width
        live, total, at = self.live, self.total, 3 * value.kind
        live[at] += per_token
        live[at + 1] += fixed
        live[at + 2] += per_square
        total[0] += per_token
        total[1] += fixed
        total[2] += per_square

    def see(self, tag: str) -> None:
        """Remember the present state if it can be a peak."""
        self.peaks.see(tag, self.live, self.total[0], self.total[1], self.total[2])

    # ---- forward ----
    def last_saving_op(self) -> int:
        """Index of the last op that saves something: a recomputation stops there (torch/utils/checkpoint.py, early stop)."""
        index = len(self.ops) - 1
        while index > 0 and not self.ops[index].saved:
            index -= 1
        return index

    def recomputed_ops(self) -> int:
        """How many ops of the forward a recomputation runs: it stops as soon as the last saved tensor is there."""
        last = self.last_saving_op()
        return last + 1 if self.ops[last].output in self.ops[last].saved else last

    def forward(self, source: Value, recomputing: bool, whole: bool = False) -> None:
        """Run the ops; `source` is the stage's input.

        While recomputing, the source is the checkpoint, which is counted elsewhere, and nothing runs after the last
        op that saves, unless the `whole` stage is run again (reentrant checkpointing), which keeps the output.
        """
        ops, alive = self.ops, self.alive
        last = self.last_saving_op() if recomputing and not whole else len(ops) - 1
        ends = {}
        for op in ops:
            if op.output.view_of is None:
                ends.setdefault(op.output.last_use, []).append(op.output)
            for value in op.saved:
                value.saves += 1
        if not recomputing:
            ends.setdefault(source.last_use, []).append(source)
            self.count(source, 1)
            alive[id(source)] = source
        output = ops[-1].output.storage()
        direction = "backward " if recomputing else "forward "
        for index in range(last + 1):
            op = ops[index]
            if recomputing and not whole and index == last and op.output not in op.saved:
                break
            if op.output.view_of is None:
                self.count(op.output, 1)
                alive[id(op.output)] = op.output
                if op.forward_workspace is not None:
                    self.count(op.forward_workspace, 1)
                self.see(direction + op.tag)
                if op.forward_workspace is not None:
                    self.count(op.forward_workspace, -1)
            for value in ends.get(index, []):
                if value is not output:
                    self.drop_unsaved(value)
        if recomputing:
            for value in list(alive.values()):
                if not whole or value is not output:
                    self.drop_unsaved(value)

    def drop_unsaved(self, value: Value) -> None:
        """The last reference from Python is gone; autograd may still hold the tensor."""
        if value.saves == 0 and id(value) in self.alive:
            self.count(value, -1)
            del self.alive[id(value)]

    # ---- backward ----
    def allocate(self, like: Value) -> Value:
        """A gradient of the shape of `like`."""
        kind = GRADIENT if like.weight else LOSS if like.kind == LOGITS or like.kind == LOSS else BACKWARD
        gradient = Value(like.per_token, like.fixed, like.per_square, like.width, False, kind)
        self.count(gradient, 1)
        self.owners[id(gradient)] = 1
        return gradient

    def release(self, gradient: Value) -> None:
        """One owner of a gradient less."""
        self.owners[id(gradient)] -= 1
        if self.owners[id(gradient)] == 0:
            self.count(gradient, -1)

    def arrive(self, value: Value, gradient: Value, tag: str) -> None:
        """A gradient reaches a tensor: the first one is taken over, later ones are added to it, in place if it is unshared."""
        if value.weight:
            if self.accumulating and not value.tied:
                self.release(gradient)
            return
        first = self.gradients.get(id(value))
        if first is None:
            self.gradients[id(value)] = gradient
        elif self.owners[id(first)] == 1:
            self.release(gradient)
        else:
            self.gradients[id(value)] = self.allocate(value)
            self.see(tag)
            self.release(first)
            self.release(gradient)

    def release_saved(self, op: Op) -> None:
        """The op has run: what only it had saved is freed."""
        for value in op.saved:
            value.saves -= 1
            self.drop_unsaved(value)

    def begin_backward(self, tag: str) -> None:
        """The gradient of the stage's output comes in."""
        output = self.ops[-1].output
        self.gradients[id(output)] = self.allocate(output)
        self.see(tag)

    def backward_recomputing(self, source: Value, reentrant: bool) -> None:
        """Backward of a checkpointed stage: its forward runs again when the first op asks for a saved tensor.

        A reentrant checkpoint runs it again as a whole, before anything else, and its output stays alive.
        """
        if reentrant:
            self.forward(source, True, True)
            self.backward(0, len(self.ops))
            return
        first = self.last_saving_op() + 1
        self.backward(first, len(self.ops))
        self.forward(source, True)
        self.backward(0, first)

    def backward(self, start: int, end: int) -> None:
        """Visit the ops from `start` to before `end` in reverse; a saved tensor dies with the last op that saved it."""
        for index in range(end - 1, start - 1, -1):
            op = self.ops[index]
            tag = "backward " + op.tag
            parts = self.parts.pop(id(op.output), None)
            if parts is not None:
                self.gradients[id(op.output)] = self.allocate(op.output)
                self.see(tag)
                for part in parts:
                    self.release(part)
            gradient = self.gradients.pop(id(op.output), None)
            if gradient is None:
                continue
            if op.backward_workspace is not None:
                self.count(op.backward_workspace, 1)
                self.see(tag)
            made, products = [], []
            reusing = any(how == REUSED for _, how in op.grads)
            if reusing:
                self.release_saved(op)
            for value, how in op.grads:
                if how == SAME:
                    self.owners[id(gradient)] += 1
                    made.append((value, gradient))
                elif how == PART:
                    self.owners[id(gradient)] += 1
                    self.parts.setdefault(id(value), []).append(gradient)
                elif how == REUSED:
                    made.append((value, self.allocate(value)))
                elif how == NEW:
                    made.append((value, self.allocate(value)))
                    self.see(tag)
                else:
                    products.append((value, self.allocate(op.output)))
                    self.see(tag)
            # The engine sums full products up only when the op has made all of its gradients (validate_outputs).
            for value, product in products:
                made.append((value, self.allocate(value)))
                self.see(tag)
                self.release(product)
            if op.backward_workspace is not None:
                self.count(op.backward_workspace, -1)
            if not reusing:
                self.release_saved(op)
            self.release(gradient)
            for value, part in made:
                self.arrive(value, part, tag)
