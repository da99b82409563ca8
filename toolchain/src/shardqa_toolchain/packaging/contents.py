"""Contents of a bundle: our own files that answering needs, the model, and of the libraries what is imported.

That nothing is missing is proven by answering from the bundle alone (`trial.py`).
"""

import shutil
from fnmatch import fnmatchcase
from pathlib import Path

import shardqa
import shardqa_toolchain
from shardqa.models import shipped
from shardqa.models.check_reader import READER_FILES
from shardqa_toolchain.cards import Card

# The files of shardqa and of the toolchain that `serving.py` imports, itself included.
CODE = (
    "shardqa/__init__.py",
    "shardqa/answer_lines.py",
    "shardqa/errors.py",
    "shardqa/keys.py",
    "shardqa/machine.py",
    "shardqa/models/__init__.py",
    "shardqa/models/metrics.py",
    "shardqa/models/reader.py",
    "shardqa/models/scoring.py",
    "shardqa/models/sentences.py",
    "shardqa/models/session.py",
    "shardqa/models/shipped.py",
    "shardqa/models/tokenizer.py",
    "shardqa_toolchain/__init__.py",
    "shardqa_toolchain/packaging/__init__.py",
    "shardqa_toolchain/packaging/answering.py",
    "shardqa_toolchain/packaging/serving.py",
    "shardqa_toolchain/windows.py",
)

# Patterns of the libraries' files that answering does not load.
LEFT_OUT = (
    "*.dist-info/*",
    "bin/*",
    # for people and compilers
    "*.pyi",
    "*.pxd",
    "*.pyx",
    "*.h",
    "*.a",
    "*.md",
    "*.txt",
    # tests, and what only they load
    "*/tests/*",
    "*/testing/*",
    "*/conftest.py",
    "numpy/_core/_*_tests.*.so",
    "numpy/_core/_simd.*.so",
    # building things on numpy
    "numpy/_core/include/*",
    "numpy/_core/lib/*",
    "numpy/_pyinstaller/*",
    "numpy/distutils/*",
    "numpy/f2py/*",
    # parts that numpy loads only when they are named
    "numpy/fft/*",
    "numpy/ma/*",
    "numpy/polynomial/*",
    "numpy/random/*",
    # onnxruntime's makers of models, and its shared library for C programs
    "onnxruntime/backend/*",
    "onnxruntime/datasets/*",
    "onnxruntime/quantization/*",
    "onnxruntime/tools/*",
    "onnxruntime/transformers/*",
    "onnxruntime/LICENSE",
    "onnxruntime/capi/libonnxruntime.so*",
    "tokenizers/tools/*",
)


def add_code(entry: str, root: Path) -> None:
    """Copy these files, and ``entry`` of entry/, to the root."""
    packages = {"shardqa": Path(shardqa.__file__).parent, "shardqa_toolchain": Path(shardqa_toolchain.__file__).parent}
    for name in CODE:
        package, _, file = name.partition("/")
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(packages[package] / file, root / name)
    shutil.copyfile(Path(__file__).parent / "entry" / entry, root / entry)


def add_model(reader: Path, root: Path) -> None:
    """Copy a reader's files to the folder ``model`` of the root."""
    out = root / "model"
    out.mkdir()
    names = [*READER_FILES, *([shipped.CARD_FILE] if Card.find(reader) else [])]
    for name in names:
        shutil.copyfile(reader / name, out / name)


def thin(root: Path) -> None:
    """Remove what answering does not load from a folder of libraries."""
    for path in sorted(root.rglob("*"), reverse=True):
        name = path.relative_to(root).as_posix()
        if path.is_dir():
            if not any(path.iterdir()):
                path.rmdir()
        elif any(fnmatchcase(name, pattern) for pattern in LEFT_OUT):
            path.unlink()


def files(root: Path) -> dict[str, Path]:
    """Every file under the root by its name there, sorted."""
    return {path.relative_to(root).as_posix(): path for path in sorted(root.rglob("*")) if path.is_file()}


def sizes(root: Path) -> dict[str, int]:
    """Bytes under the root by the first part of the name, the largest first."""
    sizes: dict[str, int] = {}
    for name, path in files(root).items():
        part = name.partition("/")[0]
        sizes[part] = sizes.get(part, 0) + path.stat().st_size
    return dict(sorted(sizes.items(), key=lambda item: -item[1]))
