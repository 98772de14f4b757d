"""A training step as a CUDA graph: for networks whose kernels are shorter than their launches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

__all__ = []

#: Steps before the first recording: libraries and optimiser states are set up in them.
_WARM_UP = 3

#: A step on a batch ``(inputs, *targets)`` of an epoch: its loss.
Step = Callable[[list[Tensor], int], Tensor]


class StepGraph:
    """Records a step of the optimiser on a full batch, and replays it with other rows.

    A replay is one launch in place of hundreds. It repeats the kernels with the numbers that Python
    gave them: the learning rate is therefore a tensor, and each epoch, which a loss may depend on,
    records its own. Batches of another size, and the first few, are not replayed.

    Parameters
    ----------
    step : callable
        ``(batch, epoch) -> loss``: clears the gradients, goes forward and backward, and lets the
        optimiser step; it must not wait for the GPU.
    module : torch.nn.Module
        The trained one, whose buffers are changed in place.
    optimizer : torch.optim.Optimizer
        One that takes its rate from a tensor, as the fused ones do.
    device : torch.device
        A CUDA device.
    """

    def __init__(
        self,
        step: Step,
        module: nn.Module,
        optimizer: torch.optim.Optimizer,
        device: torch.device,
    ) -> None:
        self.step, self.module, self.optimizer = step, module, optimizer
        self.rate = torch.zeros((), device=device)
        self.stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
        self.graph: Any = None
        self.warm_ups, self.epoch = 0, -1
        self.batch: list[Tensor] = []
        self.loss: Tensor

    def __call__(self, batch: list[Tensor], rate: float, epoch: int) -> Tensor:
        """Take a step; return its loss."""
        for group in self.optimizer.param_groups:
            group["lr"] = self.rate
            if "capturable" in group:  # Adam refuses to be recorded without it
                group["capturable"] = True
        self.rate.fill_(rate)
        self.batch = self.batch or [part.clone() for part in batch]
        if [part.shape for part in batch] != [part.shape for part in self.batch]:
            return self.step(batch, epoch)
        if self.warm_ups < _WARM_UP:
            self.warm_ups += 1
            return self._warm_up(batch, epoch)
        if epoch != self.epoch:
            self._record(epoch)
        for static, part in zip(self.batch, batch, strict=True):
            static.copy_(part)
        self.graph.replay()
        return self.loss.clone()

    def _warm_up(self, batch: list[Tensor], epoch: int) -> Tensor:
        """Take a step on another stream than the current one, as must be before a recording."""
        current = torch.cuda.current_stream(self.rate.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            loss = self.step(batch, epoch)
        current.wait_stream(self.stream)
        return loss

    def _record(self, epoch: int) -> None:
        """Record a step, which is not executed."""
        self.graph, self.epoch = torch.cuda.CUDAGraph(), epoch
        buffers = dict(self.module.named_buffers())
        try:
            with torch.cuda.graph(self.graph, stream=self.stream):
                self.loss = self.step(self.batch, epoch).detach()
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            raise RuntimeError(
                "compile='graph' cannot record a step of this module and loss, which may not read "
                "a number from the GPU or copy one to it; train with compile=False"
            ) from error
        for name, buffer in self.module.named_buffers():
            if buffer is not buffers.get(name):
                raise ValueError(
                    f"compile='graph' needs a module that changes its buffers in place, and {name} "
                    "was assigned: call its copy_(), or train with compile=True"
                )
