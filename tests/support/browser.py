"""Chromium without a window, driven through its own protocol over a pipe: no package is needed besides it."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium-headless-shell", "chrome-headless-shell", "chromium", "chromium-browser", "google-chrome")
_SECONDS = 60
_LAUNCH = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(number), fcntl.F_DUPFD, 10) for number in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Chromium reads commands from file descriptor 3 and answers on file descriptor 4."""


def find_chromium() -> str | None:
    """The path of a Chromium; `PYSHARDY_CHROMIUM` overrides it."""
    named = os.environ.get("PYSHARDY_CHROMIUM")
    return next((path for name in ([named] if named else NAMES) if (path := shutil.which(name))), None)


class Browser:
    """A page of a Chromium.

    Attributes:
        problems: Warnings and errors in its console, and uncaught exceptions.
        requests: The addresses that it requested.
    """

    def __init__(self, process: subprocess.Popen[bytes], to: int, back: int) -> None:
        self._process, self._to, self._back = process, to, back
        self._rest, self._number, self._session = b"", 0, None
        self.problems: list[str] = []
        self.requests: list[str] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **params: Any) -> Any:
        """The result of a method of the protocol."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": params}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            found = self._next()
            if found.get("id") == self._number:
                if "error" in found:
                    raise AssertionError(f"{method}: {found['error']['message']}")
                return found["result"]
            self._note(found)

    def _next(self) -> dict[str, Any]:
        """The next message."""
        end = time.monotonic() + _SECONDS
        while b"\0" not in self._rest:
            ready, _, _ = select.select([self._back], [], [], max(0, end - time.monotonic()))
            if not ready or not (read := os.read(self._back, 1 << 20)):
                raise AssertionError("Chromium says nothing")
            self._rest += read
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _note(self, message: dict[str, Any]) -> None:
        """Record problems and requests of the page."""
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.problems.append(str([one.get("value", one.get("description")) for one in params["args"]]))
        elif method == "Log.entryAdded":
            self.problems.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def open(self, path: Path) -> float:
        """Open a file; the seconds until its script has run and its first view is painted."""
        start = time.monotonic()
        self.call("Page.navigate", url=path.as_uri())
        self.wait("document.readyState === 'complete' && document.querySelector('#main').children.length > 0")
        self.run("await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
        return time.monotonic() - start

    def run(self, code: str) -> Any:
        """Run the body of an asynchronous function in the page, and return its result."""
        found = self.call(
            "Runtime.evaluate", expression=f"(async () => {{ {code} }})()", awaitPromise=True, returnByValue=True
        )
        if "exceptionDetails" in found:
            details = found["exceptionDetails"]
            raise AssertionError(details.get("exception", {}).get("description", details["text"]))
        return found["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + _SECONDS
        while time.monotonic() < end:
            if self.run(f"return Boolean({condition})"):
                return
            time.sleep(0.02)
        raise AssertionError(f"not in time: {condition}")

    def press(self, key: str) -> None:
        """Press and release a key, such as "ArrowDown" or "Enter"."""
        code = {"Enter": 13, " ": 32, "Tab": 9}.get(key, 0)
        text = {"Enter": "\r", " ": " "}.get(key)
        more = {} if text is None else {"text": text}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def look(self, width: int, height: int = 900, scheme: str = "light") -> None:
        """Set the size of the window, and the theme."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path: Path, whole: bool = False) -> None:
        """Write the visible part, or the whole page, as PNG."""
        found = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(found["data"]))


@contextmanager
def chromium(path: str) -> Iterator[Browser]:
    """A Chromium with an empty page, closed after the last test that uses it."""
    read_there, to = os.pipe()
    back, write_there = os.pipe()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe"]
        command = [sys.executable, "-c", _LAUNCH, str(read_there), str(write_there)]
        process = subprocess.Popen(
            [*command, path, *options, f"--user-data-dir={folder}"],
            pass_fds=(read_there, write_there),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read_there)
        os.close(write_there)
        try:
            yield Browser(process, to, back)
        finally:
            os.close(to)
            os.close(back)
            process.terminate()
            process.wait(10)
