"""A real JupyterLab and a real Chromium. One Lab for the whole run; a notebook is made by the test from its cells.

Rules of these tests: never sleep, never count redraws (ipywidgets joins updates in flight), wait for the exact end
state and compare it with the kernel's.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.shared import ROOT

CHROMIUM = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
CHROME_ARGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
SLOW = float(os.environ.get("WORKBENCH_SLOW", "1"))  # multiplies every timeout on a loaded machine
REQUIRED = "browser" in re.split(r"[,\s]+", os.environ.get("WORKBENCH_REQUIRE", ""))
TOKEN = "tok"
SETTINGS = {  # no news toast, no theme of the machine
    "apputils-extension/notification": {"fetchNews": "false", "checkForUpdates": False},
    "apputils-extension/themes": {"adaptive-theme": False},
}


def chromium_missing() -> str | None:
    """Why there is no browser to drive, or None."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed"
    return None if CHROMIUM else "no chromium on PATH; set CHROMIUM to its path"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    """The browser, or a skip with the reason (a failure where WORKBENCH_REQUIRE names browser)."""
    missing = chromium_missing()
    if missing:
        (pytest.fail if REQUIRED else pytest.skip)(f"browser tests: {missing}")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROME_ARGS)
        yield browser
        browser.close()


class Lab:
    """A JupyterLab server of its own, with private folders for everything that it would keep."""

    def __init__(self, base: Path) -> None:
        self.base, self.root = base, base / "work"
        self.root.mkdir()
        for name, values in SETTINGS.items():
            file = base / "settings" / "@jupyterlab" / f"{name}.jupyterlab-settings"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(json.dumps(values))
        folders = {
            "JUPYTER_CONFIG_DIR": "config",
            "JUPYTER_DATA_DIR": "data",
            "JUPYTER_RUNTIME_DIR": "run",
            "JUPYTERLAB_SETTINGS_DIR": "settings",
            "JUPYTERLAB_WORKSPACES_DIR": "workspaces",
            "IPYTHONDIR": "ipython",
        }
        env = dict(os.environ, **{name: str(base / folder) for name, folder in folders.items()}, JUPYTER_PLATFORM_DIRS="1")
        env["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{port}"
        options = [
            "--no-browser",
            "--allow-root",
            "--ServerApp.ip=127.0.0.1",
            f"--ServerApp.port={port}",
            "--ServerApp.port_retries=0",
            f"--ServerApp.root_dir={self.root}",
            f"--IdentityProvider.token={TOKEN}",
            "--LabApp.expose_app_in_browser=True",
            "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate",
            "--LabApp.extension_manager=readonly",
        ]
        self.log = (base / "lab.log").open("w+")
        command = [sys.executable, "-m", "jupyterlab", *options]
        self.process = subprocess.Popen(command, stdout=self.log, stderr=subprocess.STDOUT, env=env, start_new_session=True)

    def wait(self) -> None:
        end = time.monotonic() + 120 * SLOW
        while True:
            with contextlib.suppress(urllib.error.URLError, OSError):
                urllib.request.urlopen(f"{self.url}/api?token={TOKEN}", timeout=5)
                return
            if self.process.poll() is not None or time.monotonic() > end:
                self.stop()
                raise RuntimeError("JupyterLab did not start: " + (self.base / "lab.log").read_text()[-4000:])
            time.sleep(0.2)  # a server that is starting gives no signal to wait for

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)  # one SIGTERM: the server shuts its kernels down too
        try:
            self.process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.log.close()


@pytest.fixture(scope="session")
def lab(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """One JupyterLab for the whole run. It needs `chromium` first: without a browser no server is started."""
    server = Lab(tmp_path_factory.mktemp("lab"))
    server.wait()
    yield server
    server.stop()


class Notebook:
    """An open notebook in a page of its own. `page` is Playwright's; the rest are the waits and checks all tests need."""

    def __init__(self, page: Any, lab: Lab) -> None:
        self.page, self._lab = page, lab
        self.problems: list[str] = []
        self.outside: list[str] = []
        self.received = 0  # bytes that came over websockets
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.on("console", lambda line: self.problems.append(line.text) if line.type == "error" else None)
        page.on("request", lambda request: self._request(request.url))
        page.on("websocket", self._websocket)

    def _request(self, url: str) -> None:
        if not url.startswith((self._lab.url, "data:", "blob:")):
            self.outside.append(url)

    def _websocket(self, socket: Any) -> None:
        if not socket.url.startswith(self._lab.url.replace("http", "ws", 1)):
            self.outside.append(socket.url)
        socket.on("framereceived", self._frame)

    def _frame(self, frame: str | bytes) -> None:
        self.received += len(frame) if isinstance(frame, bytes) else len(frame.encode())

    def open(self, cells: list[str], name: str) -> Notebook:
        """Write a notebook of these code cells, open it, run it to the end, and fail on the first cell error."""
        import nbformat

        book = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        nbformat.write(book, self._lab.root / name)
        return self.open_file(name)

    def open_file(self, name: str) -> Notebook:
        """Open a notebook that stands in the server's folder already, run it, and fail on the first cell error."""
        self.page.goto(f"{self._lab.url}/lab/tree/{name}?token={TOKEN}&reset")
        session = "window.jupyterapp?.shell?.currentWidget?.sessionContext?.session?.kernel"
        self.page.wait_for_function(f"{session}?.connectionStatus === 'connected' && {session}.status === 'idle'")
        self.run_all()
        return self

    def only_outputs(self) -> None:
        """Hide the code and the side bar, so that a screenshot shows the views."""
        for command in ("notebook:hide-all-cell-code", "application:toggle-left-area"):
            self.page.evaluate("command => window.jupyterapp.commands.execute(command)", command)

    def run_all(self) -> None:
        """Run all cells and fail on the first cell error."""
        self.page.evaluate("window.jupyterapp.commands.execute('notebook:run-all-cells')")
        self.page.wait_for_function(
            """() => { const w = window.jupyterapp.shell.currentWidget;
                const code = [...w.content.model.cells].filter(c => c.type === 'code');
                const failed = code.some(c => c.outputs.toJSON().some(o => o.output_type === 'error'));
                return failed || (code.every(c => c.executionCount) && w.sessionContext.session.kernel.status === 'idle'); }"""
        )
        errors = self.page.evaluate(
            """[...window.jupyterapp.shell.currentWidget.content.model.cells].flatMap(c => c.type === 'code' ? c.outputs.toJSON() : [])
                .filter(o => o.output_type === 'error').map(o => o.ename + ': ' + o.evalue + String.fromCharCode(10) + o.traceback.slice(-3).join(' '))"""
        )
        assert not errors, errors[0]

    def python(self, expression: str) -> Any:
        """The value of an expression in the notebook's kernel, by JSON. It runs after all that is queued there."""
        code = f"import json as _json; print('@@' + _json.dumps({expression}))"
        answer = self.page.evaluate(
            """async code => { const kernel = window.jupyterapp.shell.currentWidget.sessionContext.session.kernel;
                let text = ''; const ask = kernel.requestExecute({code, store_history: false});
                ask.onIOPub = m => { if (m.header.msg_type === 'stream') text += m.content.text;
                                     if (m.header.msg_type === 'error') text += '!!' + m.content.ename + ': ' + m.content.evalue; };
                await ask.done; return text; }""",
            code,
        )
        assert "@@" in answer, answer
        return json.loads(answer.split("@@", 1)[1])

    def becomes(self, expression: str, value: Any) -> None:
        """Wait until an expression has a value in the kernel: what the page sent last may still be on its way."""
        end = time.monotonic() + 30 * SLOW
        while (now := self.python(expression)) != value:
            assert time.monotonic() < end, f"{expression} is {now!r}, not {value!r}"

    def theme(self, light: bool) -> None:
        """Switch JupyterLab's theme and wait for it, and for the end of Lab's splash: two at once are an error of Lab's own."""
        name = "JupyterLab Light" if light else "JupyterLab Dark"
        self.page.evaluate("theme => window.jupyterapp.commands.execute('apputils:change-theme', {theme})", name)
        self.page.wait_for_function("light => document.body.dataset.jpThemeLight === String(light) && !document.querySelector('#jupyterlab-splash')", arg=light)

    def shot(self, name: str) -> None:
        """Save a screenshot into the folder that SHOTS names, if it names one."""
        folder = os.environ.get("SHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=Path(folder) / f"{name}.png")

    def check(self) -> None:
        """Nothing left this machine and the console is clean."""
        assert self.outside == [], self.outside
        assert self.problems == [], self.problems


@pytest.fixture
def notebook(lab: Lab, chromium: Any, request: pytest.FixtureRequest) -> Iterator[Callable[..., Notebook]]:
    """``notebook([cell, …])`` opens a fresh notebook of these cells in a fresh page, run to the end.

    At the end of the test each page is photographed, its kernel shut down, and its requests and console checked.
    """
    opened: list[tuple[Any, Notebook]] = []
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", request.node.name)

    def go(cells: list[str], *, size: tuple[int, int] = (1400, 1000), scale: float = 1) -> Notebook:
        width, height = size
        context = chromium.new_context(viewport={"width": width, "height": height}, reduced_motion="reduce", device_scale_factor=scale)
        context.set_default_timeout(60_000 * SLOW)
        book = Notebook(context.new_page(), lab)
        opened.append((context, book))
        return book.open(cells, f"{safe}_{len(opened)}.ipynb")  # a name of its own: Lab keeps the session of a path

    yield go
    for number, (context, book) in enumerate(opened):
        book.shot(safe if number == 0 else f"{safe}_{number + 1}")
        with contextlib.suppress(Exception):  # a page that never loaded has no kernel to stop
            book.theme(light=True)  # the theme is a setting of the server: the next test starts light
            book.page.evaluate("window.jupyterapp.shell.currentWidget.sessionContext.shutdown()")
        context.close()
    for _, book in opened:
        book.check()
