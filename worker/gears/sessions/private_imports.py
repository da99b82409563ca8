"""Packages that a script requires and the worker, or another script, has in another version.

They are imported from the session's own folder, into modules of their own, for this session's code and for each other;
the worker's copies stay as they are. Where a package has no second copy in one process (numpy), its import says so.
What is pickled names the folder, so on another shard it is found in that shard's.
"""

from __future__ import annotations

import builtins
import dataclasses
import importlib
import importlib.metadata
import io
import pickle
import pkgutil
import sys
import threading
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from importlib.machinery import PathFinder
from importlib.util import module_from_spec, resolve_name
from pathlib import Path
from types import FunctionType, ModuleType, SimpleNamespace
from typing import Any

NO_MODULES = ("bin", "__pycache__")
ACTIVE: dict[str, PrivateImports] = {}  # by the name of a list of requirements; changed by the loop's thread


class PrivateImports:
    """The imports of a list of packages. Any thread may import; one at a time."""

    def __init__(self, name: str, folder: Path, tops: frozenset[str]) -> None:
        self.name = name
        self.folder = str(folder)
        self._tops = tops
        self._modules: dict[str, ModuleType] = {}
        self._lock = threading.RLock()
        self.builtins: dict[str, Any] = {**vars(builtins), "__import__": self.import_}
        own = ModuleType("builtins")
        own.__dict__.update(self.builtins)
        system = _Sys(sys, self)
        system.__dict__["modules"] = _Modules(self._modules, sys.modules)
        system.__dict__["modules"].has = self.has
        self._machinery = {
            "importlib": _Importlib(importlib, self),
            "importlib.metadata": _metadata_with(self.folder),  # packages ask for their own version by it
            "sys": system,
            "builtins": own,
            "pickle": _Pickle(self),
            "dataclasses": _copied(dataclasses, sys=system),
        }

        vars(self._machinery["importlib"])["metadata"] = self._machinery["importlib.metadata"]

    def load(self, name: str) -> ModuleType:
        """Imports a module. Raises ImportError, and what the module raises."""
        with self._lock:
            if name in self._modules:
                return self._modules[name]
            parent, _, last = name.rpartition(".")
            path = list(self.load(parent).__path__) if parent else [self.folder]
            if name in self._modules:  # its package has imported it
                return self._modules[name]
            spec = PathFinder.find_spec(name, path)
            if spec is None:
                raise ModuleNotFoundError(f"No module named {name!r} in what this session requires", name=name)
            module = self._modules[name] = module_from_spec(spec)
            module.__dict__["__builtins__"] = self.builtins
            if parent:
                setattr(self._modules[parent], last, module)  # before it runs: what it imports may look for it there
            try:
                if spec.loader is not None:  # none of a folder without __init__
                    spec.loader.exec_module(module)
            except BaseException:
                self._modules.pop(name, None)
                raise
            return self._modules[name]  # some put another object in their place

    def has(self, name: str) -> bool:
        return name.partition(".")[0] in self._tops

    def place_of(self, value: Any) -> tuple[str, str, str] | None:
        """Returns (name of the list, module, qualified name) of a private module, class or function; else None."""
        if isinstance(value, ModuleType):
            return (self.name, value.__name__, "") if self._modules.get(value.__name__) is value else None
        if not isinstance(value, type | FunctionType):
            return None
        module = self._modules.get(value.__module__)
        if module is None or _attribute(module, value.__qualname__) is not value:
            return None
        return self.name, value.__module__, value.__qualname__

    def _explain(self, top: str, error: BaseException) -> None:
        """Raises ImportError with the cause where a package may be machine code that allows one copy in a process."""
        name, version = packages_in(Path(self.folder)).get(top, ("", ""))
        own = next((one.version for one in importlib.metadata.distributions(name=name or top)), version)
        if own != version and any(Path(self.folder, top).rglob("*.so")):
            why = f"{name} {version} can't be loaded beside the worker's {own}, as its machine code can be there once"
            raise ImportError(f"{why} ({error}): require {name}=={own}, and what goes with that") from error

    def import_(
        self,
        name: str,
        globals: Mapping[str, Any] | None = None,
        locals: Mapping[str, Any] | None = None,
        fromlist: Sequence[str] = (),
        level: int = 0,
    ) -> ModuleType:
        package = (globals or {}).get("__package__") or ""
        full = resolve_name("." * level + name, package) if level else name
        top = full.partition(".")[0]
        if top in self._machinery:  # by which packages import, too
            module = importlib.import_module(full)
            return self._machinery.get(full, module) if fromlist else self._machinery[top]
        if not self.has(full):
            return builtins.__import__(name, globals, locals, fromlist, level)
        try:
            module = self.load(full)
        except BaseException as error:
            if (globals or {}).get("__name__") == "__main__":  # else a package may have a way around it
                self._explain(top, error)
            raise
        if not fromlist:
            return module if level else self.load(top)
        for attribute in getattr(module, "__all__", ()) if "*" in fromlist else fromlist:
            if not hasattr(module, attribute) and hasattr(module, "__path__"):
                try:
                    self.load(f"{full}.{attribute}")
                except ModuleNotFoundError as error:
                    if error.name != f"{full}.{attribute}":
                        raise
        return module


class LentImports:
    """The imports of sessions without a list: packages that only lists of others have, of several the newest."""

    name = ""

    def __init__(self) -> None:
        self.builtins: dict[str, Any] = {**vars(builtins), "__import__": self._import}

    def place_of(self, value: Any) -> tuple[str, str, str] | None:
        return next(filter(None, (imports.place_of(value) for imports in [*ACTIVE.values()])), None)

    def _import(self, name: str, *more: Any, **options: Any) -> ModuleType:
        top = name.partition(".")[0]
        if top and top not in sys.modules:
            for imports in reversed([*ACTIVE.values()]):
                if imports.has(top) and not find(top, sys.path):
                    return imports.import_(name, *more, **options)
        return builtins.__import__(name, *more, **options)


LENT = LentImports()


class _View(ModuleType):
    """A module as private code sees it: names that it lacks are the worker's."""

    def __init__(self, module: ModuleType, imports: PrivateImports) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(_module=module, _imports=imports)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._module, name)


class _Importlib(_View):
    def import_module(self, name: str, package: str | None = None) -> ModuleType:
        full = resolve_name(name, package)
        return self._imports.load(full) if self._imports.has(full) else importlib.import_module(full)


class _Sys(_View):
    """The module `sys` of a list: the list's modules stand before the worker's."""

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(sys, name, value)


class _Modules(ChainMap[str, ModuleType]):
    """`sys.modules` of a list: modules that the session imports from elsewhere go to the worker's."""

    has: Callable[[str], bool]

    def __setitem__(self, name: str, module: ModuleType) -> None:
        self.maps[not self.has(name)][name] = module


class _Pickle(_View):
    """`pickle` of a list: reads private modules first, and writes their plain names, under which others find them."""

    def __init__(self, imports: PrivateImports) -> None:
        super().__init__(pickle, imports)
        self.Pickler = type("Pickler", (_Pickler,), {"imports": imports})
        self.Unpickler = type("Unpickler", (_Unpickler,), {"imports": imports})

    def dumps(self, value: Any, protocol: int | None = None, **options: Any) -> bytes:
        file = io.BytesIO()
        self.dump(value, file, protocol, **options)
        return file.getvalue()

    def dump(self, value: Any, file: Any, protocol: int | None = None, **options: Any) -> None:
        self.Pickler(file, protocol, **options).dump(value)

    def loads(self, data: bytes, /, **options: Any) -> Any:
        return self.load(io.BytesIO(data), **options)

    def load(self, file: Any, **options: Any) -> Any:
        return self.Unpickler(file, **options).load()


class _Pickler(pickle.Pickler):
    """A pickler for private modules: Python's own looks for classes among the worker's modules alone."""

    imports: PrivateImports

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        theirs = cls.__dict__.get("reducer_override")  # cloudpickle has one
        if theirs is not None:
            cls.reducer_override = lambda self, obj: _reduced(self, obj, theirs(self, obj))  # type: ignore[method-assign]

    def reducer_override(self, obj: Any) -> Any:
        return _reduced(self, obj, NotImplemented)


def _reduced(pickler: _Pickler, obj: Any, recipe: Any) -> Any:
    place = pickler.imports.place_of(obj) if recipe is NotImplemented else None
    return recipe if place is None else (pkgutil.resolve_name, (f"{place[1]}:{place[2]}",))


class _Unpickler(pickle.Unpickler):
    imports: PrivateImports

    def find_class(self, module: str, name: str, /) -> Any:
        if (module, name) == ("pkgutil", "resolve_name"):
            return self._resolved
        if self.imports.has(module):
            return _attribute(self.imports.load(module), name)
        return super().find_class(module, name)

    def _resolved(self, text: str) -> Any:
        module, _, name = text.partition(":")
        return self.find_class(module, name) if self.imports.has(module) else pkgutil.resolve_name(text)


def _copied(module: ModuleType, **instead: Any) -> ModuleType:
    """Returns a copy of a worker's module whose functions find `instead` among their globals."""
    copy = ModuleType(module.__name__)
    names = copy.__dict__
    names.update({**vars(module), **instead})
    for name, value in vars(module).items():
        if isinstance(value, FunctionType) and value.__globals__ is vars(module):
            names[name] = function = FunctionType(value.__code__, names, name, value.__defaults__, value.__closure__)
            function.__kwdefaults__ = value.__kwdefaults__
    return copy


def _metadata_with(folder: str) -> ModuleType:
    every = partial(importlib.metadata.distributions, path=[folder, *sys.path])

    def one(name: str) -> importlib.metadata.Distribution:
        return next(iter(every(name=name)), None) or importlib.metadata.distribution(name)

    return _copied(importlib.metadata, Distribution=SimpleNamespace(discover=every, from_name=one))


# ---- in pickles ----


def at_place(name: str, module: str, attribute: str) -> Any:
    own = ACTIVE[name].load(module)
    return _attribute(own, attribute) if attribute else own


def function_in(name: str, code: Any, globals: dict[str, Any], *more: Any) -> FunctionType:
    """Makes a function that travelled by value; it imports as where it came from."""
    globals["__builtins__"] = ACTIVE[name].builtins if name else LENT.builtins
    return FunctionType(code, globals, *more)


def _attribute(module: ModuleType, path: str) -> Any:
    value: Any = module
    for part in path.split("."):
        value = getattr(value, part, None)
    return value


# ---- what a folder has ----


def packages_in(folder: Path) -> dict[str, tuple[str, str]]:
    """Returns (distribution, version) of each top level name of a folder, where they are known."""
    packages = {
        entry.name.partition(".")[0]: ("", "")
        for entry in folder.iterdir()
        if entry.suffix in (".py", ".so") or (entry.is_dir() and not entry.suffix and entry.name not in NO_MODULES)
    }
    for distribution in importlib.metadata.distributions(path=[str(folder)]):
        tops = {file.parts[0].partition(".")[0] for file in distribution.files or ()}
        packages |= dict.fromkeys(tops & packages.keys(), (distribution.name, distribution.version))
    return packages


def find(top: str, path: Sequence[str]) -> bool:
    return PathFinder.find_spec(top, list(path)) is not None


def is_in(top: str, package: tuple[str, str], path: Sequence[str]) -> bool:
    """Returns whether the path has this version of the package."""
    name, version = package
    if not name or not find(top, path):
        return False
    return next((one.version for one in importlib.metadata.distributions(name=name, path=list(path))), "") == version
