"""Writing files."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from pyshardy.core.files import replace_file


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_new_file_has_the_mode_that_files_have(tmp_path: Path) -> None:
    replace_file(tmp_path / "out", b"new")
    (tmp_path / "other").write_text("")
    assert (tmp_path / "out").read_bytes() == b"new"
    assert (tmp_path / "out").stat().st_mode == (tmp_path / "other").stat().st_mode
    assert names(tmp_path) == ["other", "out"]


def test_the_mode_of_a_file_that_is_there_stays(tmp_path: Path) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    path.chmod(0o640)
    replace_file(str(path), b"new")
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)


def test_a_file_is_replaced_not_written_over(tmp_path: Path) -> None:
    """Who has the old one open reads on in that."""
    path = tmp_path / "out"
    path.write_text("old")
    with path.open() as stream:
        replace_file(path, b"new")
        assert stream.read() == "old"


@pytest.mark.parametrize("is_there", [False, True])
def test_links_are_followed(tmp_path: Path, is_there: bool) -> None:
    (tmp_path / "folder").mkdir()
    target = tmp_path / "folder" / "out"
    if is_there:
        target.write_text("old")
    (tmp_path / "folder" / "link").symlink_to("out")
    (tmp_path / "link").symlink_to("folder/link")
    replace_file(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink() and (tmp_path / "folder" / "link").is_symlink()
    assert (target.read_bytes(), target.is_symlink()) == (b"new", False)
    assert names(tmp_path / "folder") == ["link", "out"]


def test_a_pipe_is_written(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found: list[bytes] = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    replace_file(path, b"new")
    reader.join()
    assert found == [b"new"]
    assert stat.S_ISFIFO(path.stat().st_mode) and names(tmp_path) == ["pipe"]


def test_a_device_is_written(tmp_path: Path) -> None:
    path = tmp_path / "null"
    try:
        os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        path.write_bytes(b"")
    except PermissionError:
        pytest.skip("only root makes devices, and not everywhere")
    (tmp_path / "link").symlink_to(path)
    for name in ("null", "link"):
        replace_file(tmp_path / name, b"new")
    assert stat.S_ISCHR(path.stat().st_mode) and names(tmp_path) == ["link", "null"]


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="no files of processes here")
def test_an_open_file_is_written_as_it_is(tmp_path: Path) -> None:
    """As `/dev/stdout` is: the one that is open, not one in its place."""
    path = tmp_path / "out"
    with path.open("w+b") as stream:
        replace_file(f"/proc/self/fd/{stream.fileno()}", b"new")
        assert stream.read() == b"new"
    read, write = os.pipe()
    (tmp_path / "link").symlink_to(f"/proc/self/fd/{write}")
    replace_file(tmp_path / "link", b"through")
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        assert pipe.read() == b"through"
    assert names(tmp_path) == ["link", "out"]


@pytest.mark.parametrize(
    ("name", "reason"),
    [("folder", "Is a directory"), ("missing/out", "No such file"), ("file/out", "Not a directory"), ("circle", "symbolic"),
     ("a\0b", "a name that no file can have"), ("\ud800", "a name that no file can have"), ("", "No such file")],
)  # fmt: skip
def test_what_cannot_be_written(name: str, reason: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("folder").mkdir()
    Path("file").write_text("old")
    Path("circle").symlink_to("circle")
    with pytest.raises(OSError, match=reason):
        replace_file(name, b"new")
    assert names(tmp_path) == ["circle", "file", "folder"]
    assert Path("file").read_text() == "old"


def test_a_file_that_may_not_be_written_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    path.write_text("old")
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(PermissionError):
        replace_file(path, b"new")
    assert (path.read_text(), names(tmp_path)) == ("old", ["out"])


def test_nothing_is_left_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "out"
    path.write_text("old")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="No space left"):
        replace_file(path, b"new")
    assert (path.read_text(), names(tmp_path)) == ("old", ["out"])


def test_what_another_run_has_left_behind_is_no_obstacle(tmp_path: Path) -> None:
    left = tmp_path / f".pyshardy-{os.getpid()}-0"
    left.write_text("left")
    replace_file(tmp_path / "out", b"new")
    assert (left.read_text(), (tmp_path / "out").read_bytes()) == ("left", b"new")
