"""Files that are whole or not there, and that are read only if they are what was written.

A folder of arrays is written beside its place, flushed to disk and renamed. Its manifest carries
the size and SHA-256 of each file, and a digest of itself; the bytes of a manifest must be exactly
those that writing its content again would give, so that no bit of it can change unseen. Arrays are
in safetensors, which cannot hold code; names that a manifest gives are matched against a pattern
before they become paths, and links are not followed.
"""

import contextlib
import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import load as load_arrays
from safetensors.numpy import save as save_arrays

from grasp.errors import CorruptCheckpoint, DiskFault

Arrays = dict[str, np.ndarray]
Facts = dict[str, Any]  # what JSON can hold

FORMAT = 2
MANIFEST = "manifest.json"
MOST_MANIFEST = 2**24  # bytes; ours are some kilobytes
_FILE = re.compile(r"[a-z]{1,32}\.safetensors")


def write_folder(folder: Path, parts: dict[str, Arrays], facts: Facts) -> None:
    """Arrays, one file for each part, and facts as one directory that appears whole."""
    beside = folder.with_name(f".tmp-{folder.name}")
    with disk(folder):
        shutil.rmtree(beside, ignore_errors=True)
        beside.mkdir(parents=True)
        files = {}
        for part, arrays in parts.items():
            content = packed(arrays)
            files[f"{part}.safetensors"] = stamp(content)
            write(beside / f"{part}.safetensors", content)
        write(beside / MANIFEST, _manifest({"format": FORMAT, "files": files, "facts": facts}))
        flush_directory(beside)
        if folder.exists():  # the reader has another folder to fall back to meanwhile
            gone = folder.with_name(f".tmp-gone-{folder.name}")
            shutil.rmtree(gone, ignore_errors=True)
            folder.rename(gone)
            beside.rename(folder)
            shutil.rmtree(gone)
        else:
            beside.rename(folder)
        flush_directory(folder.parent)


def read_folder(folder: Path) -> tuple[dict[str, Arrays], Facts]:
    """The parts and facts of a folder; anything that is not as written is named and refused."""
    manifest = read_manifest(folder)
    files: Any = manifest.get("files")
    if not isinstance(files, dict) or not all(_FILE.fullmatch(str(name)) for name in files):
        raise CorruptCheckpoint(f"{folder / MANIFEST} names files that no folder of ours has")
    parts = {
        name.removesuffix(".safetensors"): unpacked(folder / name, read_stamped(folder / name, at))
        for name, at in files.items()
    }
    others = {entry.name for entry in folder.iterdir()} - {MANIFEST, *files}
    if others:
        raise CorruptCheckpoint(f"{folder} holds {sorted(others)[0]}, which its manifest lacks")
    return parts, manifest["facts"]


def read_manifest(folder: Path) -> Facts:
    path = folder / MANIFEST
    content = _read(path, MOST_MANIFEST)
    try:
        manifest = json.loads(content)
        body = {name: value for name, value in manifest.items() if name != "digest"}
        whole = _manifest(body) == content
    except (ValueError, AttributeError, TypeError, RecursionError):
        raise CorruptCheckpoint(f"{path} is damaged: it is no manifest") from None
    if not whole or not isinstance(body.get("facts"), dict) or body.get("format") != FORMAT:
        raise CorruptCheckpoint(f"{path} is damaged: its digest is not that of its content")
    return body


def write_arrays(folder: Path, arrays: Arrays, facts: Facts) -> None:
    """Arrays and facts as a folder of one part."""
    write_folder(folder, {"arrays": arrays}, facts)


def read_arrays(folder: Path) -> tuple[Arrays, Facts]:
    """What `write_arrays` wrote, in today's format or in the first one."""
    first = _first_format(folder)
    if first is not None:
        return first
    parts, facts = read_folder(folder)
    return parts.get("arrays", {}), facts


def _first_format(folder: Path) -> tuple[Arrays, Facts] | None:
    """A folder whose manifest has the SHA-256 of its one file and no digest of itself."""
    content = _read(folder / MANIFEST, MOST_MANIFEST)
    try:
        manifest = json.loads(content)
        digest, facts = manifest["sha256"], manifest["facts"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    path = folder / "arrays.safetensors"
    arrays = _read(path, None)
    if hashlib.sha256(arrays).hexdigest() != digest:
        raise CorruptCheckpoint(f"{path} is damaged: its SHA-256 is not that of its manifest")
    return unpacked(path, arrays), facts


def packed(arrays: Arrays) -> bytes:
    return save_arrays({name: np.asarray(array, order="C") for name, array in arrays.items()})


def unpacked(path: Path, content: bytes) -> Arrays:
    try:
        return load_arrays(content)
    except Exception as problem:  # whatever it is, these are not arrays that we wrote
        raise CorruptCheckpoint(f"{path} holds no arrays: {problem}") from None


def stamp(content: bytes) -> Facts:
    """What a manifest says of a file."""
    return {"bytes": len(content), "sha256": hashlib.sha256(content).hexdigest()}


def read_stamped(path: Path, expected: Any) -> bytes:
    """The content of a file, if it is what its stamp says."""
    if not isinstance(expected, dict) or expected.keys() != {"bytes", "sha256"}:
        raise CorruptCheckpoint(f"{path} has no size and SHA-256 in its manifest")
    content = _read(path, expected["bytes"])
    if len(content) != expected["bytes"]:
        raise CorruptCheckpoint(
            f"{path} is damaged: it has {len(content)} bytes instead of {expected['bytes']}"
        )
    if stamp(content) != expected:
        raise CorruptCheckpoint(f"{path} is damaged: its SHA-256 is not that of its manifest")
    return content


def write(path: Path, content: bytes) -> None:
    """Write a file and wait until the disk has it."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def write_whole(path: Path, content: bytes) -> None:
    """Replace a file by one rename."""
    beside = path.with_name(f".tmp-{path.name}")
    with disk(path):
        write(beside, content)
        beside.rename(path)
        flush_directory(path.parent)


def flush_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def disk(path: Path) -> Iterator[None]:
    """A disk that does not take what is written is said in one sentence."""
    try:
        yield
    except OSError as problem:
        raise DiskFault(
            f"cannot write {path}: {problem.strerror or problem}; make room or give another "
            "place, then repeat the command: the last whole checkpoint is kept"
        ) from None


def _manifest(body: Facts) -> bytes:
    digest = hashlib.sha256(_json(body)).hexdigest()
    return _json(body | {"digest": digest})


def _json(facts: Facts) -> bytes:
    return json.dumps(facts, sort_keys=True, allow_nan=False).encode()


def _read(path: Path, most: int | None) -> bytes:
    """A file's bytes; a link or a file of more than `most` bytes is not read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
        with os.fdopen(descriptor, "rb") as file:
            size = os.fstat(file.fileno()).st_size
            if most is not None and size > most:
                raise CorruptCheckpoint(f"{path} is damaged: it has {size} bytes, over {most}")
            return file.read()
    except OSError as problem:
        raise CorruptCheckpoint(f"{path} cannot be read: {problem.strerror}") from None
