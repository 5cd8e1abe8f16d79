"""The page in Chromium: rows, records, images, sounds; with the keyboard alone; and hostile records as what they
are. Nothing is fetched from outside, and the console is empty."""

from __future__ import annotations

import shutil
import subprocess
import sys
from contextlib import contextmanager

import pytest
from some_records import example, write

import recordspec as rs
from media import image_bytes, photo, sound_bytes, tone

pytestmark = [pytest.mark.services, pytest.mark.newest]

SCHEMA = """
schema: shown
features:
  n: int64
  picture: {kind: image, shape: [30, 40, 3], encoding: png}
  tone: {kind: audio, sample_rate: 8000, encoding: wav, dtype: int16}
  side: {kind: label, names: [left, right]}
  matrix: {dtype: float32, shape: [8, 8]}
"""
EVIL = "<img src=x onerror=alert(1)>\u202e<script>alert(2)</script>"


@pytest.fixture(scope="module")
def browser():
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium")
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


@contextmanager
def opened(browser, *files, **options):
    """A page of the viewer of these files. Afterwards its console is empty, and nothing came from outside."""
    command = [sys.executable, "-m", "recordspec", "view", *map(str, files), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        page = browser.new_page(viewport={"width": 1200, "height": 800}, **options)
        said, asked = [], []
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("dialog", lambda dialog: said.append(dialog.message))
        page.on("request", lambda request: asked.append(request.url))
        try:
            url = process.stdout.readline().strip()
            page.goto(url)
            page.wait_for_selector("tbody tr")
            yield page
            page.wait_for_load_state("networkidle")
            assert said == []
            assert [other for other in asked if not other.startswith(url.partition("?")[0])] == []
            assert "token" not in page.url
        finally:
            page.close()
            process.kill()


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("shown") / "data"
    rows = [
        {
            "n": row,
            "picture": photo(),
            "tone": tone(0.2),
            "side": row % 2,
            "matrix": [[row + one for one in range(8)]] * 8,
        }
        for row in range(250)
    ]
    rs.write(rs.Schema.loads(SCHEMA), rows, folder, shuffle=None, split={"train": 80, "test": 20})
    return folder


def test_rows_are_drawn_by_their_kinds(browser, data):
    with opened(browser, data) as page:
        first = page.locator("tbody tr").first
        assert first.locator("td").nth(0).inner_text().isdigit()
        picture = first.locator("img")
        assert picture.evaluate("image => [image.complete, image.naturalWidth]") == [True, 40]
        assert (
            picture.get_attribute("alt")
            == "PNG image, 40 x 30, " + picture.get_attribute("alt").split(", ")[2]
        )
        assert first.locator(".label").inner_text() in ("left", "right")
        assert first.locator("canvas").get_attribute("aria-label") == "float [8, 8]"
        sound = first.locator("audio")
        assert sound.evaluate(
            "async sound => { await sound.play(); return sound.duration }"
        ) == pytest.approx(0.2)


def test_pages_splits_and_records_are_in_the_url(browser, data):
    with opened(browser, data) as page:
        page.get_by_role("button", name="next").click()
        page.wait_for_url("**/?first=100")
        page.get_by_label("split").select_option("test")
        page.wait_for_url("**/?split=test")
        page.get_by_role("spinbutton", name="row").fill("20")
        page.keyboard.press("Enter")
        page.wait_for_url("**/?split=test&first=20")
        page.reload()
        page.wait_for_selector("tbody tr")
        assert page.locator("tbody th").first.inner_text() == "20"
        page.go_back()
        page.wait_for_url("**/?split=test")
        page.get_by_role("rowheader", name="0", exact=True).wait_for()


def test_a_record_is_walked_with_the_keyboard(browser, data):
    with opened(browser, data) as page:
        page.locator("tbody a").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog img")
        page.keyboard.press("ArrowRight")
        page.wait_for_url("**/?row=1")
        page.get_by_role("heading", name="Row 1", exact=True).wait_for()
        page.get_by_text("--record 1").wait_for()
        page.keyboard.press("ArrowLeft")
        page.wait_for_url("**/?row=0")
        page.keyboard.press("Escape")
        page.wait_for_selector("dialog", state="detached")
        assert "row" not in page.url


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_on_a_narrow_screen_and_in_the_dark_all_can_be_read(browser, data, scheme):
    with opened(browser, data, color_scheme=scheme) as page:
        page.set_viewport_size({"width": 360, "height": 640})
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        colours = page.evaluate(
            "(({color, backgroundColor}) => [color, backgroundColor])(getComputedStyle(document.body))"
        )
        assert len({*colours}) == 2


def test_hostile_records_are_what_they_are(browser, tmp_path):
    records = [
        example(**{EVIL: [EVIL.encode()], "b": [b"<svg onload=alert(3)>"]}),
        example(**{EVIL: [b"\xff\xfe" * 5000], "b": [b"x" * (1 << 22)]}),
        b"\xffno record",
        example(**{EVIL: [b"\x89PNG\r\n\x1a\n<script>"], "b": [image_bytes(photo(), "png")[:80]]}),
        example(b=[sound_bytes(tone(0.1), 8000)[:50]]),
    ]
    with opened(browser, write(tmp_path / "x", *records)) as page:
        page.wait_for_load_state("networkidle")
        rows = page.locator("tbody tr")
        assert rows.count() == 5
        assert rows.nth(0).locator("td").nth(0).inner_text() == EVIL.replace("\u202e", "\\u202e")
        assert page.locator("thead").inner_text().count("<script>") == 1
        assert rows.nth(1).inner_text().startswith("1\t")
        assert rows.nth(2).locator(".bad").count() == 1
        for number in range(5):
            page.goto(f"{page.url.partition('?')[0]}?row={number}")
            page.wait_for_selector("dialog dd, dialog .bad")
        assert page.locator("tbody script, tbody svg[onload], dialog script").count() == 0
