"""One training run: batches, forward, backward, AdamW; interrupted anywhere, it goes on as if it had not been.

A run owns its working folder: ``state.pt`` (weights, optimizer, place in the data; written beside and renamed, so that
a whole one is always there), ``log.jsonl`` (loss and rate) and ``curve.jsonl`` (what the held-out rows say now and
then, `curve.py`). What is learnt, from what rows and by which loss, is the task's. One thread drives; torch's own
threads compute.
"""

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, Self, TypeVar

import torch
from torch import Tensor, nn

from shardqa.errors import BadData, BadModel
from shardqa_toolchain.training.batches import plan
from shardqa_toolchain.training.curve import CURVE_FILE, Point, append
from shardqa_toolchain.training.settings import checked

STATE_FILE = "state.pt"
LOG_FILE = "log.jsonl"

LOG_STEPS = 20  # steps that one line of the log is the mean of

# Steps between two looks at what is held out: by steps rather than by time, so that a busy machine still learns.
MEASURED_STEPS = 200

BETAS = 0.9, 0.98  # AdamW's decay rates; 0.98 rather than 0.999 forgets a short run's noisy first gradients in time

WEIGHT_DECAY = 0.01  # as BERT's

CLIP_NORM = 1.0  # as BERT's: the largest norm of a step's gradient

Rows = TypeVar("Rows", covariant=True)


@dataclass(frozen=True, slots=True)
class Schedule:
    passes: float = 2.0  # times that the data is gone through; the last may be a part
    tokens: int = 4096  # of a step, padding included
    rate: float = 1e-4  # highest learning rate; it rises linearly over ``warm_up`` and falls linearly to 0
    warm_up: float = 0.06  # share of all steps
    seed: int = 1  # of the order of rows, fresh weights and what the task draws
    save_seconds: float = 300.0  # between two states on disk, which is what an interruption costs at most

    def checked(self) -> Self:
        """Returns itself; raises BadData with the first setting out of its range."""
        rules = (
            ("passes", self.passes > 0, "a number above 0"),
            ("tokens", self.tokens >= 1, "1 or more"),
            ("rate", 0 < self.rate < 1, "between 0 and 1"),
            ("warm_up", 0 <= self.warm_up < 1, "0 or more, below 1"),
            ("save_seconds", self.save_seconds > 0, "a number above 0"),
        )
        return checked(self, rules)


class TrainingTask(Protocol, Generic[Rows]):
    """A thing to learn, with its rows and its loss."""

    @property
    def trained(self) -> nn.Module:
        """Returns the module whose parameters learn."""

    def lengths(self, passed: int) -> Sequence[int]:
        """Tokens of each row of the pass after ``passed`` others."""

    def loss(self, passed: int, rows: Sequence[int], device: torch.device) -> Tensor:
        """The mean loss over rows of that pass, a scalar with gradients."""

    def held_out_figures(self, device: torch.device) -> Mapping[str, float]:
        """Figures on what is never learnt from, the mean "loss" among them; none where nothing is held out."""


@dataclass(frozen=True, slots=True)
class Progress:
    step: int
    steps: int
    rows: int  # learnt from since the run was last taken up
    seconds: float  # since then
    loss: float  # mean over the last LOG_STEPS steps


@dataclass(frozen=True, slots=True)
class TrainingStep:
    """A batch of the run's plan."""

    passed: int
    rows: list[int]


def device() -> torch.device:
    """The accelerator if there is one, else the CPU."""
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


CPU = torch.device("cpu")


def sow(seed: int) -> None:
    """Seed what a run draws before it begins: fresh weights."""
    torch.manual_seed(seed)


@contextlib.contextmanager
def measuring(network: nn.Module) -> Iterator[None]:
    """The network without gradients, in the device's precision."""
    was_training = network.training
    network.eval()
    with torch.no_grad(), precision(next(network.parameters()).device):
        yield
    network.train(was_training)


def bfloat16_pays(on: torch.device) -> bool:
    """Returns whether bfloat16 is faster on the device, as on processors with products of it.

    With other AVX-512 float32 is, 1.4 times; with AVX512_BF16 of a Zen 5 a step of reader-v4 takes a quarter of its
    time.
    """
    if on.type == "cuda":
        return bool(torch.cuda.is_bf16_supported(including_emulation=False))
    return any(torch.cpu.get_capabilities().get(one) for one in ("amx_bf16", "avx512_bf16"))


def precision(on: torch.device) -> contextlib.AbstractContextManager[Any]:
    """Computes in bfloat16 over float32 weights where it pays, else in float32 throughout."""
    return torch.autocast(on.type, torch.bfloat16) if bfloat16_pays(on) else contextlib.nullcontext()


def steps_of(task: TrainingTask[Any], schedule: Schedule) -> list[TrainingStep]:
    steps: list[TrainingStep] = []
    for number in range(-int(-schedule.passes // 1)):
        batches = plan(task.lengths(number), schedule.tokens, schedule.seed, number)
        share = min(1.0, schedule.passes - number)
        steps += [TrainingStep(number, rows) for rows in batches[: max(1, round(share * len(batches)))]]
    return steps


def train(
    task: TrainingTask[Any],
    schedule: Schedule,
    work: Path,
    identity: dict[str, Any],
    report: Callable[[Progress], None] = lambda progress: None,
) -> Progress:
    """Run to the end, from the state in ``work`` if there is one; the network is left on the CPU, trained.

    ``identity`` says what this run is: a state of another is refused with BadData, a damaged one with BadModel.
    """
    on = device()
    task.trained.to(on).train()
    run = _Run(task, schedule.checked(), work, {**identity, "schedule": asdict(schedule)}, on)
    run.resume()
    for progress in run.steps():
        report(progress)
    task.trained.to("cpu").eval()
    assert run.last is not None, "a run has at least one step"
    return run.last


class _Run:
    def __init__(
        self, task: TrainingTask[Any], schedule: Schedule, work: Path, identity: dict[str, Any], on: torch.device
    ):
        self.task, self.schedule, self.work, self.identity, self.on = task, schedule, work, identity, on
        self.plan = steps_of(task, schedule)
        if not self.plan:
            raise BadData("there are no rows to learn from; give a file with questions")
        self.optimizer = torch.optim.AdamW(
            _groups(task.trained), lr=schedule.rate, betas=BETAS, weight_decay=WEIGHT_DECAY, fused=True
        )
        self.done = 0
        self.last: Progress | None = None

    def resume(self) -> None:
        self.work.mkdir(parents=True, exist_ok=True)
        path = self.work / STATE_FILE
        if not path.exists():
            for name in (LOG_FILE, CURVE_FILE):
                (self.work / name).unlink(missing_ok=True)
            torch.manual_seed(self.schedule.seed)
            return
        try:
            state = torch.load(path, map_location=self.on, weights_only=True)
        except (OSError, RuntimeError, EOFError, ValueError) as error:
            raise BadModel(f"{path} can't be read: {error}; remove it to begin anew") from None
        if state["identity"] != json.dumps(self.identity, sort_keys=True):
            raise BadData(f"{path} is of a run with other settings or data; give another --work, or remove it")
        self.task.trained.load_state_dict(state["network"])
        self.optimizer.load_state_dict(state["optimiser"])
        torch.set_rng_state(state["random"].cpu())
        self.done = state["done"]
        for name in (LOG_FILE, CURVE_FILE):
            _keep_until(self.work / name, self.done)
        if self.done == len(self.plan):
            self.last = Progress(self.done, self.done, 0, 0.0, 0.0)

    def save(self) -> None:
        state = {
            "identity": json.dumps(self.identity, sort_keys=True),
            "network": self.task.trained.state_dict(),
            "optimiser": self.optimizer.state_dict(),  # as saved runs have it
            "random": torch.get_rng_state(),
            "done": self.done,
        }
        beside = self.work / f"{STATE_FILE}.new"
        torch.save(state, beside)
        beside.replace(self.work / STATE_FILE)

    def steps(self) -> Iterator[Progress]:
        began = last_save = time.monotonic()
        rows, recent = 0, list[Tensor]()
        for step in self.plan[self.done :]:
            recent.append(self._learn(step))
            self.done += 1
            rows += len(step.rows)
            if self.done % LOG_STEPS and self.done < len(self.plan):
                continue
            loss = float(torch.stack(recent).mean())
            recent.clear()
            self.last = Progress(self.done, len(self.plan), rows, time.monotonic() - began, loss)
            figures = self._held_out() if self._is_measured() else {}
            self._log(loss, figures.get("loss"))
            if figures:
                self._note(loss, figures, rows / max(time.monotonic() - began, 1e-9))
            if self.done == len(self.plan) or time.monotonic() - last_save >= self.schedule.save_seconds:
                self.save()
                last_save = time.monotonic()
            yield self.last

    def _learn(self, step: TrainingStep) -> Tensor:
        rate = self.schedule.rate * share_of_rate(self.done, len(self.plan), self.schedule.warm_up)
        for group in self.optimizer.param_groups:
            group["lr"] = rate
        with precision(self.on):
            loss = self.task.loss(step.passed, step.rows, self.on)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.task.trained.parameters(), CLIP_NORM)
        self.optimizer.step()
        self.optimizer.zero_grad()
        return loss.detach()

    def _is_measured(self) -> bool:
        return self.done % MEASURED_STEPS == 0 or self.done == len(self.plan)

    def _held_out(self) -> Mapping[str, float]:
        with measuring(self.task.trained):
            return self.task.held_out_figures(self.on)

    def _note(self, loss: float, figures: Mapping[str, float], speed: float) -> None:
        rows = sum(len(step.rows) for step in self.plan[: self.done])
        of = sum(len(step.rows) for step in self.plan)
        point = Point(
            self.done, rows, of, round(speed, 2), time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), loss, figures
        )
        append(self.work / CURVE_FILE, point)

    def _log(self, loss: float, held_out: float | None) -> None:
        rate = self.schedule.rate * share_of_rate(self.done - 1, len(self.plan), self.schedule.warm_up)
        line = {"step": self.done, "steps": len(self.plan), "loss": loss, "rate": rate, "held_out": held_out}
        with (self.work / LOG_FILE).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def share_of_rate(step: int, steps: int, warm_up: float) -> float:
    """The part of the highest rate at a step, counted from 0: up over the warm-up, then down to 0, linearly."""
    rise = max(1.0, warm_up * steps)
    return min(1.0, (step + 1) / rise, (steps - step) / max(1.0, steps - rise))


def _groups(network: nn.Module) -> list[dict[str, Any]]:
    """AdamW's groups of what learns: matrices decay; biases and gains do not."""
    learning = [value for value in network.parameters() if value.requires_grad]
    matrices, others = ([value for value in learning if (value.dim() > 1) == is_matrix] for is_matrix in (True, False))
    groups = [{"params": matrices, "weight_decay": WEIGHT_DECAY}, {"params": others, "weight_decay": 0.0}]
    return [group for group in groups if group["params"]]


def _keep_until(path: Path, step: int) -> None:
    """Drop lines after the state's step: they will be written again."""
    if path.exists():
        lines = [line for line in path.read_text(encoding="utf-8").splitlines() if json.loads(line)["step"] <= step]
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
