"""The pictures of `docs/viewing.md`: the viewer in Chromium, of datasets of the gallery.

`make screenshots` makes those of the repository; a build of the site makes its own, where there is a browser.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

BUFFER = "{buffer: 1000, seed: 17}"
ROOT = Path(__file__).parents[2]
# By the name of the picture: the config, the state of the page in its URL, and what must be there.
PICTURES = {
    "view-rows": ("moments", "", "tbody audio"),
    "view-columns": ("moments", "?tab=columns", "article"),
    "view-batch": ("scattered_digits", "?tab=batch&epoch=1&step=2", "table.batch img"),
}


@contextmanager
def viewed(folder: Path, name: str) -> Iterator[str]:
    """The URL of the viewer of a config, which is built in a folder."""
    sys.path.insert(0, str(ROOT / "demo"))
    import raw
    import recordspec as rs

    for part in ("configs", "schemas"):
        shutil.copytree(ROOT / part, folder / part, dirs_exist_ok=True)
    config = folder / "configs" / f"{name}.yaml"
    # of a shuffle buffer, it is not known which rows a batch has
    text = config.read_text()
    assert "global: true" in text or text.count(BUFFER) == 1, f"{config} has another shuffle"
    config.write_text(text.replace(BUFFER, "{global: true, seed: 17}"))
    rs.Pipeline.load(config).build(getattr(raw, name)(), force=True, progress=False)
    command = [sys.executable, "-m", "recordspec", "view", f"configs/{name}.yaml", "--no-browser"]
    own = {**os.environ, "PYTHONPATH": str(ROOT / "pipelines")}
    with subprocess.Popen(command, cwd=folder, env=own, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.kill()


def make(target: Path) -> bool:
    """Makes the pictures in a folder; without a browser, none, and returns False."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        found = None
    if found is None:
        return False
    arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
    with sync_playwright() as playwright, tempfile.TemporaryDirectory() as folder:
        browser = playwright.chromium.launch(executable_path=found, args=arguments)
        for picture, (name, state, there) in PICTURES.items():
            with viewed(Path(folder), name) as url:
                page = browser.new_page(viewport={"width": 1100, "height": 620})
                page.goto(url)
                page.goto(url.partition("?")[0] + state)
                page.locator(there).first.wait_for(timeout=120_000)
                page.wait_for_load_state("networkidle")
                page.screenshot(path=target / f"{picture}.png")
        browser.close()
    return True


def setup(app: Any) -> dict[str, Any]:
    def replace(app: Any, exception: Exception | None) -> None:
        if exception is None and not make(Path(app.outdir) / "_images"):
            print("no Chromium, or no Playwright: the pictures of the viewer are those of the repository")

    app.connect("build-finished", replace)
    return {"parallel_read_safe": True}


if __name__ == "__main__":
    if not make(ROOT / "docs/static"):
        sys.exit("it needs Chromium, and the extra `docs`")
