"""A headless Chromium that shows one page, driven over DevTools' protocol on a pair of pipes."""

import base64
import itertools
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time


def find_chromium():
    """The command, or None where none is installed."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        found = shutil.which(name)
        if found:
            return found
    return None


class Chromium:
    """One page of a browser. Errors and exceptions of the page are in `complaints`."""

    def __init__(self, command, page, width=1400, height=900, patience=60):
        # The browser's own processes may outlive it by a moment, and still write there.
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self._numbers = itertools.count(1)
        self._patience = patience
        self._unread = b""
        self._loaded = set()  # documents, by the browser's numbers for them
        self.complaints = []
        to_read, self._to = os.pipe()
        self._from, to_write = os.pipe()
        # The protocol is on descriptors 3 and 4; the shell moves ours there.
        options = [
            "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
            "--disable-dev-shm-usage", "--force-device-scale-factor=1", "--disable-extensions",
            "--disable-background-networking", "--user-data-dir=" + self._home.name,
            f"--window-size={width},{height}", "--remote-debugging-pipe", "about:blank",
        ]
        self._process = subprocess.Popen(
            ["sh", "-c", f'exec "$@" 3<&{to_read} 4>&{to_write}', "sh", command, *options],
            pass_fds=(to_read, to_write), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, env={**os.environ, "HOME": self._home.name}, start_new_session=True)
        os.close(to_read)
        os.close(to_write)
        self._session = None
        targets = self._ask("Target.getTargets")["targetInfos"]
        target = next(t for t in targets if t["type"] == "page")["targetId"]
        self._session = self._ask("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Runtime", "Log", "Page"):
            self._ask(domain + ".enable")
        self._ask("Emulation.setDeviceMetricsOverride", width=width, height=height,
                  deviceScaleFactor=1, mobile=False)
        self._ask("Page.setLifecycleEventsEnabled", enabled=True)
        document = self._ask("Page.navigate", url="file://" + os.path.abspath(page))["loaderId"]
        # Not the first that is loaded: that may be the empty page that the browser began with.
        while document not in self._loaded:
            self._until(lambda message: message.get("method") == "Page.lifecycleEvent")

    def close(self):
        os.close(self._to)
        os.close(self._from)
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._home.cleanup()

    def value(self, expression):
        """What JavaScript evaluates to in the page."""
        result = self._ask("Runtime.evaluate", expression=expression, returnByValue=True,
                           awaitPromise=True)
        if "exceptionDetails" in result:
            raise RuntimeError(result["exceptionDetails"]["text"])
        return result["result"].get("value")

    def mouse(self, kind, x, y, **more):
        """Moves the mouse ("mouseMoved"), presses or releases it."""
        self._ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, **more)
        self.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def click(self, x, y):
        for kind in ("mousePressed", "mouseReleased"):
            self.mouse(kind, x, y, button="left", clickCount=1)

    def picture(self, path):
        """Writes what is to be seen to a PNG file."""
        data = self._ask("Page.captureScreenshot", format="png")["data"]
        with open(path, "wb") as out:
            out.write(base64.b64decode(data))

    def _ask(self, method, **params):
        number = next(self._numbers)
        request = {"id": number, "method": method, "params": params}
        if self._session:
            request["sessionId"] = self._session
        data = json.dumps(request).encode() + b"\0"
        while data:
            data = data[os.write(self._to, data):]
        answer = self._until(lambda message: message.get("id") == number)
        if "error" in answer:
            raise RuntimeError(f"{method}: {answer['error']}")
        return answer["result"]

    def _until(self, wanted):
        end = time.monotonic() + self._patience
        while True:
            message = self._read(end)
            self._note(message)
            if wanted(message):
                return message

    def _read(self, end):
        while b"\0" not in self._unread:
            ready, _, _ = select.select([self._from], [], [], max(0, end - time.monotonic()))
            if not ready:
                raise TimeoutError("Chromium does not answer")
            data = os.read(self._from, 1 << 20)
            if not data:
                raise RuntimeError("Chromium has ended")
            self._unread += data
        text, self._unread = self._unread.split(b"\0", 1)
        return json.loads(text)

    def _note(self, message):
        method, params = message.get("method"), message.get("params", {})
        if method == "Page.lifecycleEvent" and params["name"] == "load":
            self._loaded.add(params["loaderId"])
        elif method == "Runtime.exceptionThrown":
            details = params["exceptionDetails"]
            self.complaints.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.complaints.append(params["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning"):
            self.complaints.append(str(params["args"]))
