"""GearsBuilder: notes a script's steps, runs and registrations; nothing runs here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shardqa.worker.gears.pipeline import sugar
from shardqa.worker.gears.pipeline.plan import RunPlan
from shardqa.worker.gears.pipeline.steps import GearsStep, Kind, is_async
from shardqa.worker.gears.registrations.registrations import Registration
from shardqa.worker.gears.sessions.builder_options import MODES, READERS, add_options, checked, unknown_options
from shardqa.worker.gears.sessions.session import Session

Function = Callable[..., Any]


class Builder:
    def __init__(
        self, session: Session, reader: str = "KeysReader", defaultArg: Any = "*", desc: str | None = None
    ) -> None:
        if not isinstance(reader, str):
            raise TypeError(f"reader argument must be a string, not {type(reader).__name__}")
        if reader not in READERS:
            raise ValueError(f"reader does not exists: {reader!r}; choose one of {', '.join(READERS)}")
        if desc is not None and not isinstance(desc, str):
            raise TypeError(f"desc wants a string, not {type(desc).__name__}")
        self._session = session
        self._reader = reader
        self._default = defaultArg
        self._description = desc
        self._steps: list[GearsStep] = []

    # ---- steps ----

    def map(self, function: Function) -> Builder:
        return self._step(Kind.MAP, function)

    def flatmap(self, function: Function) -> Builder:
        return self._step(Kind.FLATMAP, function)

    def filter(self, function: Function) -> Builder:
        return self._step(Kind.FILTER, function)

    def foreach(self, function: Function) -> Builder:
        return self._step(Kind.FOREACH, function)

    def accumulate(self, function: Function) -> Builder:
        """Folds a shard's records: `function(accumulator, record)` gives the next accumulator, the first is None."""
        return self._step(Kind.ACCUMULATE, function)

    def localgroupby(self, extractor: Function, reducer: Function) -> Builder:
        """Folds by key to records {'key', 'value'}: `reducer(key, accumulator, record)` gives the next accumulator."""
        _check_function("localgroupby", reducer)
        self._steps.append(GearsStep(Kind.LOCALGROUPBY, reducer, extractor=_extractor("localgroupby", extractor)))
        return self

    def limit(self, length: int, start: int = 0) -> Builder:
        """Lets `length` records of each shard pass, from the `start`-th on; after `collect`, of all shards."""
        for name, number in (("length", length), ("start", start)):
            if isinstance(number, bool) or not isinstance(number, int) or number < 0:
                raise ValueError(f"limit: {name} argument must be a number from 0 on, not {number!r}")
        self._steps.append(GearsStep(Kind.LIMIT, numbers=(length, start)))
        return self

    def collect(self) -> Builder:
        """Moves all records to the shard that the run was sent to."""
        self._steps.append(GearsStep(Kind.COLLECT))
        return self

    def repartition(self, extractor: Function) -> Builder:
        """Moves every record to the shard that owns the slot of `extractor(record)`."""
        return self._step(Kind.REPARTITION, extractor)

    # ---- sugar ----

    def aggregate(self, zero: Any, local: Function, combine: Function) -> Builder:
        _check_function("aggregate", local)
        _check_function("aggregate", combine)
        return self.accumulate(sugar.Fold(zero, local)).collect().accumulate(sugar.Fold(zero, combine))

    def aggregateby(self, extractor: Function, zero: Any, local: Function, combine: Function) -> Builder:
        """Folds by key to records {'key', 'value'}; both functions get (key, accumulator, record)."""
        _check_function("aggregateby", local)
        _check_function("aggregateby", combine)
        self.localgroupby(extractor, sugar.Fold(zero, local)).repartition(sugar.key_of)
        return self.localgroupby(sugar.key_of, sugar.FoldValues(zero, combine))

    def __localAggregateby__(self, extractor: Function, zero: Any, function: Function) -> Builder:
        """Adds the local half of `aggregateby`."""
        _check_function("__localAggregateby__", function)
        return self.localgroupby(extractor, sugar.Fold(zero, function))

    def groupby(self, extractor: Function, reducer: Function) -> Builder:
        return self.repartition(extractor).localgroupby(extractor, reducer)

    def batchgroupby(self, extractor: Function, reducer: Function) -> Builder:
        """Groups by key: `reducer(key, records)` gets all records of a key at once."""
        _check_function("batchgroupby", reducer)
        self.repartition(extractor).localgroupby(extractor, sugar.gather)
        return self.map(sugar.Reduce(reducer))

    def count(self) -> Builder:
        self._steps.append(GearsStep(Kind.LOCALCOUNT))
        return self.collect().accumulate(sugar.add)

    def countby(self, extractor: Function = sugar.itself) -> Builder:
        return self.aggregateby(extractor, 0, sugar.count_one, sugar.add_value)

    def avg(self, extractor: Function = float) -> Builder:
        _extractor("avg", extractor)
        return self.map(extractor).aggregate((0.0, 0), sugar.sum_and_count, sugar.add_pairs).map(sugar.quotient)

    def sort(self, reverse: bool = True) -> Builder:
        return self.aggregate(None, sugar.gather_all, sugar.concatenate).flatmap(sugar.sorting(reverse))

    def distinct(self) -> Builder:
        return self.aggregate(None, sugar.gather_distinct, sugar.unite).flatmap(sugar.from_end)

    # ---- actions ----

    def run(
        self, arg: Any = None, convertToStr: bool = True, collect: bool = True, mode: str = "async", **options: Any
    ) -> Any:
        """Runs the steps at the script's end; in a function at once, and to await the value gives [results, errors]."""
        return self._session.run(self.plan_of_run(arg, convertToStr, collect, mode, **options))

    def plan_of_run(
        self, arg: Any = None, convertToStr: bool = True, collect: bool = True, mode: str = "async", **options: Any
    ) -> RunPlan:
        """Returns the plan that `run` would run."""
        _check_mode(mode)
        argument = self._default if arg is None else arg
        for name in unknown_options("run", self._reader, options):
            self._session.note(f"run of a {self._reader} ignores the unknown argument {name}")
        flags = bool(convertToStr), mode != "async", bool(collect)
        return checked(RunPlan(self._reader, argument, tuple(self._steps), *flags, options))

    def register(
        self,
        prefix: str = "*",
        convertToStr: bool = True,
        collect: bool = True,
        mode: str = "async",
        onRegistered: Callable[[], Any] | None = None,
        **options: Any,
    ) -> str:
        """Registers the steps, in effect when the whole script has succeeded; returns the registration's id.

        Run for a client, its functions have that client's rights; with `privileged=True` those of who registers it:
        then they must see to it themselves that the client may have what they do (`runtime.demand`). Key events have
        no client.
        """
        _check_mode(mode)
        if onRegistered is not None:
            _check_function("onRegistered", onRegistered)
        for name in unknown_options("register", self._reader, options):
            self._session.note(f"register of a {self._reader} ignores the unknown argument {name}")
        session, description, steps = self._session, self._description, tuple(self._steps)
        registration = Registration(
            "", session.id, session.user, self._reader, mode, description, steps, bool(convertToStr), bool(collect)
        )
        add_options(session, registration, prefix, options)
        registration.id = session.next_id(registration)
        session.register(registration, onRegistered)
        return registration.id

    def _step(self, kind: Kind, function: Function) -> Builder:
        _check_function(kind.value, function)
        self._steps.append(GearsStep(kind, function))
        return self


def _check_mode(mode: str) -> None:
    if mode not in MODES:
        raise ValueError(f"unknown execution mode {mode!r}; choose one of {', '.join(MODES)}")


def _check_function(name: str, function: Any) -> None:
    if not callable(function):
        raise TypeError(f"{name} argument must be a function, not {type(function).__name__}")


def _extractor(name: str, function: Any) -> Function:
    _check_function(name, function)
    if is_async(function):
        raise TypeError(f"the extractor of {name} can't be async: compute the key in a map before it")
    return function  # type: ignore[no-any-return]
