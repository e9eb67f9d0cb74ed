"""Checked files: every bit counts, nothing escapes, nothing runs."""

import json
import os
import pickle

import numpy as np
import pytest

from grasp.errors import CorruptCheckpoint, DiskFault
from grasp.files import read_arrays, read_folder, stamp, write_arrays, write_folder, write_whole

ARRAYS = {"a": np.arange(6, dtype=np.float32).reshape(2, 3), "scalar": np.asarray(7, np.int32)}
OTHER = {"empty": np.zeros((3, 0), np.float32), "flags": np.array([True, False])}


def test_arrays_come_back_with_shape_and_type(tmp_path):
    write_folder(tmp_path / "x", {"one": ARRAYS, "two": OTHER}, {"step": 3, "best": None})
    parts, facts = read_folder(tmp_path / "x")
    assert facts == {"step": 3, "best": None}
    for part, expected in (("one", ARRAYS), ("two", OTHER)):
        assert parts[part].keys() == expected.keys()
        for name, array in expected.items():
            np.testing.assert_array_equal(parts[part][name], array)
            assert parts[part][name].dtype == array.dtype
            assert parts[part][name].shape == array.shape


def test_every_flipped_bit_is_noticed(tmp_path):
    write_folder(tmp_path / "x", {"one": ARRAYS, "two": OTHER}, {"step": 3})
    for path in sorted((tmp_path / "x").iterdir()):
        content = path.read_bytes()
        for bit in range(0, 8 * len(content), 3):
            damaged = bytearray(content)
            damaged[bit // 8] ^= 1 << bit % 8
            path.write_bytes(damaged)
            with pytest.raises(CorruptCheckpoint, match=path.name):
                read_folder(tmp_path / "x")
        path.write_bytes(content)
    read_folder(tmp_path / "x")


def test_every_truncation_deletion_swap_and_stranger_is_noticed(tmp_path):
    write_folder(tmp_path / "x", {"one": ARRAYS, "two": OTHER}, {"step": 3})
    folder = tmp_path / "x"
    for path in sorted(folder.iterdir()):
        content = path.read_bytes()
        for size in range(len(content)):
            path.write_bytes(content[:size])
            with pytest.raises(CorruptCheckpoint, match=path.name):
                read_folder(folder)
        path.unlink()
        with pytest.raises(CorruptCheckpoint, match=path.name):
            read_folder(folder)
        path.write_bytes(content)
    one, two = (folder / f"{name}.safetensors" for name in ("one", "two"))
    contents = one.read_bytes(), two.read_bytes()
    one.write_bytes(contents[1])
    two.write_bytes(contents[0])
    with pytest.raises(CorruptCheckpoint, match="safetensors is damaged"):
        read_folder(folder)
    one.write_bytes(contents[0])
    two.write_bytes(contents[1])
    (folder / "more").write_text("")
    with pytest.raises(CorruptCheckpoint, match="holds more"):
        read_folder(folder)


def forged(folder, body):
    """A manifest whose digest is right."""
    from grasp.files import _manifest

    folder.mkdir(exist_ok=True)
    (folder / "manifest.json").write_bytes(_manifest({"format": 2, "facts": {}} | body))


class Evil:
    def __reduce__(self):
        return (os.system, ("touch ran",))


@pytest.mark.parametrize(
    "name", ["../secret", "/etc/passwd", "a/b.safetensors", "x.pkl", "..", ".safetensors"]
)
def test_no_name_in_a_manifest_leads_out_of_its_folder(tmp_path, name):
    (tmp_path / "secret").write_bytes(b"1234")
    forged(tmp_path / "x", {"files": {name: stamp(b"1234")}})
    with pytest.raises(CorruptCheckpoint, match="names files"):
        read_folder(tmp_path / "x")


def test_a_link_is_not_followed(tmp_path):
    write_folder(tmp_path / "x", {"one": ARRAYS}, {})
    target = tmp_path / "elsewhere.safetensors"
    (tmp_path / "x" / "one.safetensors").rename(target)
    (tmp_path / "x" / "one.safetensors").symlink_to(target)
    with pytest.raises(CorruptCheckpoint, match=r"one\.safetensors cannot be read"):
        read_folder(tmp_path / "x")


def hostile():
    """Contents that are not arrays of ours, each with a right SHA-256."""
    huge = json.dumps({"a": {"dtype": "F32", "shape": [2**40], "data_offsets": [0, 2**42]}})
    negative = json.dumps({"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}})
    objects = json.dumps({"a": {"dtype": "OBJECT", "shape": [1], "data_offsets": [0, 4]}})
    twice = '{"a": {"dtype": "F32", "shape": [9], "data_offsets": [0, 4]}, "a": 1}'

    def with_header(text):
        return len(text).to_bytes(8, "little") + text.encode() + b"\0" * 4

    return {
        "pickle": pickle.dumps(Evil()),
        "empty": b"",
        "huge header": (2**60).to_bytes(8, "little"),
        "huge array": with_header(huge),
        "negative shape": with_header(negative),
        "object dtype": with_header(objects),
        "a key twice": with_header(twice),
        "nested": with_header("[" * 100_000),
    }


@pytest.mark.parametrize("kind", hostile())
def test_a_hostile_file_is_refused_and_nothing_runs(tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    content = hostile()[kind]
    forged(tmp_path / "x", {"files": {"one.safetensors": stamp(content)}})
    (tmp_path / "x" / "one.safetensors").write_bytes(content)
    with pytest.raises(CorruptCheckpoint, match="holds no arrays"):
        read_folder(tmp_path / "x")
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "text", ["", "null", "[]", "{}", '{"facts": NaN}', "[" * 100_000, '{"digest": "00"}', "\xff"]
)
def test_what_is_no_manifest_is_refused(tmp_path, text):
    (tmp_path / "manifest.json").write_text(text)
    with pytest.raises(CorruptCheckpoint, match=r"manifest\.json"):
        read_folder(tmp_path)


def test_the_first_format_is_still_read(tmp_path):
    write_arrays(tmp_path / "x", ARRAYS, {"step": 3})
    content = (tmp_path / "x" / "arrays.safetensors").read_bytes()
    manifest = {"sha256": stamp(content)["sha256"], "facts": {"step": 3}}
    (tmp_path / "x" / "manifest.json").write_text(json.dumps(manifest))
    arrays, facts = read_arrays(tmp_path / "x")
    assert facts == {"step": 3}
    np.testing.assert_array_equal(arrays["a"], ARRAYS["a"])
    (tmp_path / "x" / "arrays.safetensors").write_bytes(content[:-1] + b"\1")
    with pytest.raises(CorruptCheckpoint, match="SHA-256"):
        read_arrays(tmp_path / "x")


def test_a_disk_that_refuses_is_one_sentence(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(DiskFault, match="cannot write"):
        write_whole(tmp_path / "nowhere" / "x", b"1")
    with pytest.raises(DiskFault, match="cannot write"):
        write_folder(tmp_path / "file" / "x", {}, {})
    assert DiskFault.exit_code == 74
