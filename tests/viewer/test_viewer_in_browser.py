"""The page in Chromium: rows, records, images, sounds, filters, statistics, problems, comparisons and batches; with
the keyboard alone; hostile records as what they are. Nothing is fetched from outside, the console is empty, and axe
finds nothing that keeps anyone out."""

from __future__ import annotations

import re
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path

import pytest

import raw
import recordspec as rs
from media import image_bytes, photo, sound_bytes, tone
from some_records import example, write
from waiting import wait_until

pytestmark = [pytest.mark.services, pytest.mark.newest]

DATA = Path(__file__).parents[3] / "shared/data"
SCHEMA = """
schema: shown
features:
  n: int64
  picture: {kind: image, shape: [30, 40, 3], encoding: png}
  tone: {kind: audio, sample_rate: 8000, encoding: wav, dtype: int16}
  side: {kind: label, names: [left, right]}
  matrix: {dtype: float32, shape: [8, 8]}
"""
HANG = 240_000  # milliseconds, after which nothing comes any more
EVIL = "<img src=x onerror=alert(1)>\u202e<script>alert(2)</script>"


@contextmanager
def opened(browser, *files, **options):
    """A page of the viewer of these files. Afterwards its console is empty, and nothing came from outside."""
    command = [sys.executable, "-m", "recordspec", "view", *map(str, files), "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        page = browser.new_page(viewport={"width": 1200, "height": 800}, **options)
        page.set_default_timeout(HANG)
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
    rs.write(rows, rs.Schema.loads(SCHEMA), folder, shuffle=None, split={"train": 80, "test": 20})
    return folder


def test_rows_are_drawn_by_their_kinds(browser, data):
    with opened(browser, data) as page:
        assert page.locator("header p").inner_text().startswith("250 rows · train 203, test 47 · 2 files, ")
        first = page.locator("tbody tr").first
        assert first.locator("td").nth(0).inner_text().isdigit()
        picture = first.locator("img")
        assert picture.evaluate("async image => { await image.decode(); return image.naturalWidth }") == 40
        assert (
            picture.get_attribute("alt")
            == "PNG image, 40 x 30, " + picture.get_attribute("alt").split(", ")[2]
        )
        assert first.locator(".label").inner_text() in ("left", "right")
        assert first.locator("canvas").get_attribute("aria-label") == "float32 [8, 8]"
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


def test_rows_keep_their_split_until_those_of_another_are_there(browser, data):
    """Row 50 of all rows is no row of the split test: its image was asked for there."""
    with opened(browser, data) as page:
        held = []
        page.route("**/api/rows?*split=test*", lambda route: held.append(route))
        page.get_by_label("split").select_option("test")
        wait_until(lambda: (page.wait_for_timeout(20), held)[1])
        picture = page.locator("tbody tr").nth(50).locator("img")
        assert "split" not in picture.get_attribute("src")
        assert "split" not in page.locator("tbody a").nth(50).get_attribute("href")
        held[0].continue_()
        page.get_by_role("rowheader", name="46", exact=True).wait_for()
        page.locator("tbody tr").nth(50).wait_for(state="detached")
        assert "split=test" in page.locator("tbody tr img").first.get_attribute("src")


def test_a_record_is_walked_with_the_keyboard(browser, data):
    with opened(browser, data) as page:
        page.locator("tbody a").first.focus()
        page.keyboard.press("Enter")
        page.wait_for_selector("dialog img")
        page.keyboard.press("ArrowRight")
        page.wait_for_url("**/?row=1")
        page.get_by_role("heading", name="Row 1", exact=True).wait_for()
        page.get_by_text(re.compile(r"recordspec show .* 1$")).wait_for()
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
        expect(page.get_by_label("where")).to_be_hidden()
        page.get_by_role("button", name="search").click()
        expect(page.get_by_label("where")).to_be_visible()
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
        expect(rows).to_have_count(5, timeout=HANG)
        assert rows.nth(0).locator("td").nth(0).inner_text() == EVIL.replace("\u202e", "\\u202e")
        assert page.locator("thead").inner_text().count("<script>") == 1
        assert rows.nth(1).inner_text().startswith("1\t")
        assert rows.nth(2).locator(".bad").count() == 1
        for number in range(5):
            page.goto(f"{page.url.partition('?')[0]}?row={number}")
            page.wait_for_selector("dialog dd, dialog .bad")
        assert page.locator("tbody script, tbody svg[onload], dialog script").count() == 0


LONG = """
schema: long
features:
  before: text
  name: string
  scores: {dtype: float32, shape: [12]}
  day: {dtype: int64, date: days}
"""


def test_rows_are_low_and_the_number_and_the_key_stay(browser, tmp_path):
    rows = [
        {"before": "word " * 400, "name": f"row {row}", "scores": [0.125] * 12, "day": "2026-01-31"}
        for row in range(60)
    ]
    rs.write(rows, rs.Schema.loads(LONG), tmp_path / "data", key="name", shuffle=None, split="all")
    with opened(browser, tmp_path / "data") as page:
        page.set_viewport_size({"width": 500, "height": 600})
        first = page.locator("tbody tr").first
        assert first.bounding_box()["height"] < 140
        numbers = first.locator(".numbers")
        assert numbers.bounding_box()["height"] < 24
        first.get_by_text("2026-01-31").wait_for()
        region = page.get_by_role("region", name="rows")
        region.evaluate("region => region.scrollTo(9999, 9999)")
        last = page.locator("tbody tr").last
        left = region.bounding_box()["x"]
        assert last.locator("th").bounding_box()["x"] == left
        assert last.locator("td.key").bounding_box()["x"] < left + 100
        assert page.locator("thead th").last.bounding_box()["y"] == region.bounding_box()["y"]
        last.locator("td").last.click()
        page.get_by_role("heading", name="Row 59").wait_for()
        assert page.evaluate("document.activeElement.tagName") == "DIALOG"  # no button looks pressed


def test_the_reason_is_told_where_an_image_cannot_be_drawn(browser, tmp_path):
    png, jpeg = image_bytes(photo(), "png"), image_bytes(photo(), "jpeg")
    with opened(browser, write(tmp_path / "x", example(a=[png[:80]], b=[jpeg[:-40]]))) as page:
        reasons = page.locator("td .bad")
        expect(reasons).to_have_text([re.compile("^expected an image or audio, got .")] * 2, timeout=HANG)


def expect(locator):
    """What Playwright waits for."""
    return pytest.importorskip("playwright.sync_api").expect(locator)


def axe(page):
    """What axe finds: of accessibility, also the contrast of colours."""
    axe_playwright = pytest.importorskip("axe_playwright_python.sync_playwright")
    found = axe_playwright.Axe().run(page)
    return [
        (each["id"], [node["html"] for node in each["nodes"]][:3]) for each in found.response["violations"]
    ]


def test_rows_are_filtered_by_a_click_by_sql_and_by_a_text_and_sorted(browser, data):
    with opened(browser, data) as page:
        page.locator("thead th").filter(has_text="side").locator("svg .bar").first.click()
        page.wait_for_url("**/?split=train&where=**")  # the bars are of the largest split
        expect(page.get_by_label("where")).to_have_value("\"side\" = 'left'", timeout=HANG)
        page.get_by_label("split").select_option("")
        page.get_by_text("of 125", exact=True).wait_for()
        assert {*page.locator("tbody .label").all_inner_texts()} == {"left"}
        page.get_by_label("where").fill("n >= 10 AND n < 20")
        page.keyboard.press("Enter")
        page.get_by_text("of 10", exact=True).wait_for()
        page.get_by_role("button", name="n", exact=True).click()
        page.locator("th[aria-sort=ascending]").get_by_role("button").click()
        page.locator("th[aria-sort=descending]").wait_for()
        page.locator("tbody tr").first.get_by_text("19", exact=True).wait_for()
        numbers = [int(row.locator("td").first.inner_text()) for row in page.locator("tbody tr").all()]
        assert numbers == list(range(19, 9, -1))
        page.reload()  # all of it is in the URL
        page.get_by_text("of 10", exact=True).wait_for()
        assert page.locator("tbody td").first.inner_text() == "19"
        page.locator("tbody a").nth(1).click()
        page.wait_for_selector("dialog img")
        page.keyboard.press("ArrowRight")  # to the row after it in this order
        page.locator("dialog dd").first.get_by_text("17", exact=True).wait_for()
        page.keyboard.press("Escape")
        page.get_by_label("text").fill("right")
        page.keyboard.press("Enter")
        page.get_by_text("of 5", exact=True).wait_for()
        page.get_by_label("columns").fill("sid")
        page.keyboard.press("Enter")
        page.locator("tbody tr td:nth-child(2):last-child").first.wait_for()
        page.get_by_label("where").fill("n >")
        page.keyboard.press("Enter")
        page.get_by_text("syntax error at its end").wait_for()
        assert page.get_by_label("where").get_attribute("aria-invalid") == "true"
        assert page.locator("tbody tr").count() == 5  # those before
        page.get_by_label("where").fill("n < 0")
        page.keyboard.press("Enter")
        page.get_by_text("No row matches").wait_for()
        page.get_by_role("button", name="show all rows").click()
        page.get_by_text("of 250", exact=True).wait_for()


def test_a_bar_of_a_column_leads_to_its_rows(browser, data):
    with opened(browser, data) as page:
        page.get_by_role("link", name="Columns").click()
        page.wait_for_url("**/?tab=columns")
        page.get_by_label("columns").fill("side")
        card = page.locator("article")
        expect(card).to_have_count(1, timeout=HANG)  # when the statistics have come
        table = page.get_by_label("classes of side")
        assert table.locator("thead th").all_inner_texts() == ["classes", "train", "test"]
        count = table.locator("tbody td").first.inner_text().split()[0]
        table.get_by_role("button", name=f"left: {count} in train").press("Enter")
        page.wait_for_url("**/?split=train**")
        page.get_by_text(f"of {count}", exact=True).wait_for()
        page.go_back()
        page.get_by_role("heading", name="side").wait_for()
        wait_until((data / "statistics.json").exists)


def test_problems_are_found_and_lead_to_their_rows(browser, tmp_path):
    schema = tmp_path / "s.yaml"
    schema.write_text("{schema: s, features: {n: int64}}")
    path = write(tmp_path / "x", *(example(n=[1] * (2 if row == 7 else 1)) for row in range(20)))
    with opened(browser, path, "--schema", schema) as page:
        page.get_by_role("link", name="Problems").click()
        page.get_by_role("button", name="verify and check").click()
        page.get_by_role("heading", name="1 problem", exact=True).wait_for()
        page.get_by_text("20 records verified").wait_for()
        page.get_by_role("link", name="row 7").click()
        page.get_by_role("heading", name="Row 7").wait_for()
        page.locator("dialog .bad").get_by_text("expected 1 int64, got 2").wait_for()


def test_splits_and_other_files_are_compared(browser, data, tmp_path):
    rs.write({"n": list(range(99))}, rs.Schema.loads("{schema: s, features: {n: int64}}"), tmp_path / "other")
    with opened(browser, data, "--against", tmp_path / "other") as page:
        page.get_by_role("link", name="Compare").click()
        page.get_by_text("numbers: ").first.wait_for()  # of the other files and these
        page.locator("select[name=old]").select_option("train")
        page.locator("select[name=new]").select_option("test")
        page.get_by_role("button", name="compare").click()
        expect(page.locator("article h2")).to_have_count(5, timeout=HANG)
        shares = page.get_by_label("distances").locator("td.number").all_inner_texts()
        assert shares == sorted(shares, key=lambda text: -float(text.strip("<%")))


def test_a_batch_is_shown_as_the_model_gets_it_beside_what_is_stored(browser, tmp_path):
    (tmp_path / "s.yaml").write_text(
        """
schema: s
features:
  picture: {kind: image, shape: [null, null, 3], encoding: png, resize: {size: [16, 20]}}
  boxes: {kind: box, format: xyxy}
  side: {kind: label, names: [left, right]}
"""
    )
    (tmp_path / "c.yaml").write_text(
        "{schema: s.yaml, data: data, fit: {inputs: picture, targets: [boxes, side]},"
        " read: {batch: 4, shuffle: {global: true, seed: 1}}}"
    )
    rows = [{"picture": photo(), "boxes": [[4, 6, 20, 18]], "side": row % 2} for row in range(10)]
    rs.Pipeline.load(tmp_path / "c.yaml").build(rows)
    steps = rs.Pipeline.load(tmp_path / "c.yaml").which(1, 2)
    with opened(browser, tmp_path / "c.yaml") as page:
        page.goto(f"{page.url.partition('?')[0]}?tab=batch&epoch=1&step=2")
        table = page.locator("table.batch")
        table.wait_for()
        heads = [int(text) for text in table.locator("tbody th").all_inner_texts()]
        assert heads == [step["record"] for step in steps]
        pictures = table.locator("tbody tr").first.locator(".image")
        # resized from 30 x 40 to 16 x 20, and the box with it
        assert [image.get_attribute("alt").split(", ")[1] for image in pictures.locator("img").all()] == [
            "20 x 16",
            "40 x 30",
        ]
        boxes = [
            [float(box.get_attribute(side)) for side in ("x", "width")]
            for box in pictures.locator("rect").all()
        ]
        assert boxes == [[2, 8], [4, 16]]
        assert page.get_by_role("button", name="next").is_disabled()


def test_the_page_of_statistics_is_one_file_that_works_offline(browser, data, tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "recordspec", "stats", data, "--html", tmp_path / "page.html"],
        capture_output=True,
    )
    assert done.returncode == 0
    page, said = browser.new_page(), []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url) if request.url.startswith("http") else None)
    page.goto((tmp_path / "page.html").as_uri())
    assert page.locator("article h2").count() == 5
    page.get_by_label("columns").fill("sid")
    page.get_by_label("classes of side").get_by_text("left").wait_for()
    assert page.locator("article").count() == 1
    assert page.get_by_role("button").count() == 0
    assert axe(page) == []
    page.close()
    assert said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nobody_is_kept_out(browser, data, scheme):
    with opened(browser, data, color_scheme=scheme) as page:
        base = page.url.partition("?")[0]
        found = {}
        for state, ready in {
            "": "tbody td",
            "?row=3": "dialog img",
            "?tab=columns": "article",
            "?tab=problems&run=1": "h2",
            "?tab=compare&old=train&new=test": "article",
        }.items():
            page.goto(base + state)
            page.wait_for_selector(ready)
            found[state] = axe(page)
        assert {state: violations for state, violations in found.items() if violations} == {}


GALLERY = {
    "digits": lambda folder: raw.digits(folder / "raw/digits", 50),
    "photos": lambda folder: raw.photos(folder / "raw/photos", 20),
    "sounds": lambda folder: raw.sounds(folder / "raw/sounds", 40),
    "docstrings": lambda folder: raw.docstrings(folder / "raw/docstrings", 150),
    "code_tokens": lambda _: list(raw.code_tokens(100)),
    "scattered_digits": lambda _: list(raw.scattered_digits(50)),
    "moments": lambda _: list(raw.moments(20)),
    "tagged_sentences": lambda _: [
        {"length": row, "tokens": list(range(row)), "labels": [0] * row} for row in range(1, 40)
    ],
    "movie_ratings": lambda _: [
        {"Age": row, "Movie": ["a", "b"][: row % 3], "Movie Ratings": [9.0] * (row % 3)}
        | {"Suggestion": "c", "Suggestion Purchased": 1.0, "Purchase Price": 9.9}
        for row in range(40)
    ],
}


@pytest.mark.parametrize("name", GALLERY)
def test_each_dataset_of_the_gallery_is_shown(browser, home, name):
    rows = GALLERY[name](home)
    pipeline = rs.Pipeline.load(home / f"configs/{name}.yaml")
    pipeline.build() if isinstance(rows, int) else pipeline.build(rows)
    total = sum(pipeline.manifest.rows(split) for split in pipeline.manifest.splits)
    with opened(browser, home / f"configs/{name}.yaml") as page:
        page.get_by_text(f"of {total:,}", exact=True).wait_for()
        assert page.locator("tbody tr").count() == min(total, 100)
        assert page.locator("tbody .bad").count() == 0
        assert page.locator("thead th").count() >= 1 + len(pipeline.schema.names)
        page.locator("thead svg.small").first.wait_for()
        page.get_by_role("link", name="Columns").click()
        page.locator("article").first.wait_for()
        page.go_back()
        page.locator("tbody a").first.press("Enter")
        page.locator("dialog dd").first.wait_for()


@pytest.mark.parametrize("folder", ["hostile", "mnist", "sequence", "taxi"])
def test_data_that_others_wrote_is_shown(browser, folder):
    if not (DATA / folder).exists():
        pytest.skip("the data of others is not here")
    others = (".md", ".csv", ".yaml", ".pbtxt")
    files = [
        path for path in sorted((DATA / folder).rglob("*")) if path.is_file() and path.suffix not in others
    ]
    with opened(browser, *files) as page:
        page.locator("thead svg.small, tbody .bad").first.wait_for()


def test_the_rows_of_packs_have_colours_and_links(browser, tmp_path):
    (tmp_path / "s.yaml").write_text(
        "schema: s\nfeatures: {words: {kind: ragged, dtype: int64, shape: [null]}}"
    )
    for name in ("one", "two"):
        (tmp_path / f"{name}.yaml").write_text(
            f"{{schema: s.yaml, data: {name}, fit: {{inputs: words, targets: words_next}},"
            " read: {batch: 4, shuffle: {global: true, seed: 1}, pack: 16}}"
        )
        made = rs.Pipeline.load(tmp_path / f"{name}.yaml")
        made.build([{"words": range(1 + row % 9)} for row in range(60)])
    (tmp_path / "mixed.yaml").write_text(
        "{mix: {datasets: {one: one.yaml, two: two.yaml}},"
        " read: {batch: 4, shuffle: {global: true, seed: 1}, pack: 16}, fit: {inputs: words}}"
    )
    for config in ("one", "mixed"):
        rows = rs.Pipeline.load(tmp_path / f"{config}.yaml").which(0, 1)
        with opened(browser, tmp_path / f"{config}.yaml") as page:
            page.goto(f"{page.url.partition('?')[0]}?tab=batch&epoch=0&step=1")
            table = page.locator("table.batch")
            table.wait_for()
            packs = [sum(row["pack"] == pack for row in rows) for pack in range(4)]
            lines = table.locator("tbody tr")
            assert [line.locator("td:last-child a").count() for line in lines.all()] == packs
            first = lines.first.locator("td").first
            colours = [
                span.evaluate("one => one.style.background") for span in first.locator(".pack span").all()
            ]
            dots = [dot.evaluate("one => one.style.background") for dot in first.locator(".dot").all()]
            assert len(set(colours)) == len(colours) == packs[0]
            assert colours == dots
            said = lines.first.locator("td:last-child li").first.inner_text().split()
            assert said[1:] == ([rows[0]["dataset"]] if config == "mixed" else [])
            lines.first.locator("td:last-child a").first.click()
            page.wait_for_selector("dialog[open]")
