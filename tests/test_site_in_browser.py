"""The site that `make docs` built, opened from its folder in Chromium."""

from __future__ import annotations

import re
import threading
from functools import partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

import pytest

SITE = Path(__file__).parents[1] / "build/site"
PAGES = sorted(path for path in SITE.rglob("*.html") if "_static" not in path.parts)

pytestmark = [pytest.mark.docs, pytest.mark.newest]


class Links(HTMLParser):
    """The links of a page, and the names that links can end at."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.names: set[str] = set()
        self.images_without_text: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag, attributes):
        given = dict(attributes)
        self.names |= {given[key] for key in ("id", "name") if given.get(key)}
        if tag == "a" and given.get("href"):
            self.links.add(given["href"])
        if tag == "img" and not given.get("alt"):
            self.images_without_text.append(given.get("src", ""))


@pytest.fixture(scope="module")
def parsed():
    if not PAGES:
        pytest.fail("there is no site: `make docs` builds it")
    return {path: Links(path) for path in PAGES}


def test_every_link_inside_ends_somewhere(parsed):
    missing = []
    for path, page in parsed.items():
        for link in page.links:
            if re.match(r"[a-z]+:", link):
                continue
            target, _, fragment = unquote(link).partition("#")
            place = (path.parent / target).resolve() if target else path
            known = parsed.get(place)
            if not place.is_file() or (fragment and known is not None and fragment not in known.names):
                missing.append((str(path.relative_to(SITE)), link))
    assert missing == []


def test_images_have_a_text(parsed):
    assert {
        path.name: page.images_without_text for path, page in parsed.items() if page.images_without_text
    } == {}


@pytest.fixture
def opened(browser):
    """Opens a page; at the end, what went wrong in it must be nothing."""
    wrong: list[str] = []
    contexts = []

    def open_page(name: str = "index.html", **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(120_000)
        page.on("console", lambda message: wrong.append(message.text) if message.type == "error" else None)
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda request: None if local(request.url) else wrong.append(request.url))
        page.goto((SITE / name).as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert wrong == []


def local(url: str) -> bool:
    return url.startswith(("file:", "data:", "blob:", "http://127.0.0.1:"))


def test_pages_load_nothing_from_outside_and_fit_a_narrow_screen(opened):
    page = opened(viewport={"width": 390, "height": 800})
    wide = []
    for path in PAGES:
        page.goto(path.as_uri())
        if page.evaluate("document.documentElement.scrollWidth") > 390:
            wide.append(path.name)
    assert wide == []


def test_search_finds_an_option_and_a_class(opened):
    page = opened()
    for words, expected in (("with_missing", "The YAML language"), ("ShardedWriter", "Python API")):
        page.goto((SITE / "index.html").as_uri())
        page.fill("input[name=q]", words)
        page.keyboard.press("Enter")
        # results appear one after another
        page.wait_for_selector(f"#search-results li:has-text('{expected}')")


def test_search_results_have_their_context_on_a_server(opened):
    page = opened()
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(SimpleHTTPRequestHandler, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page.goto(f"http://127.0.0.1:{server.server_port}/search.html?q=quarantine")
        page.wait_for_selector("#search-results li p.context:has-text('quarantine')")
        # The page still requests the context of other results: a server that ends would reset them.
        page.close()
        server.shutdown()


def test_code_of_the_landing_page_is_not_cut_off(opened):
    for width in (390, 1300):
        page = opened(viewport={"width": width, "height": 800})
        assert (
            page.evaluate(
                "Array.from(document.querySelectorAll('pre'), pre => pre.scrollWidth - pre.clientWidth)"
            )
            == [0] * 5
        )


def test_the_contents_of_a_page_are_beside_it_from_1200_pixels_on(opened):
    page = opened("training.html", viewport={"width": 1200, "height": 800})
    contents, text = (page.locator(name).bounding_box() for name in (".toc-drawer", ".content"))
    assert text["x"] + text["width"] <= contents["x"]
    assert contents["x"] + contents["width"] <= 1200


def test_a_command_is_copied_without_its_prompt_and_output(opened):
    page = opened("building.html", permissions=["clipboard-read", "clipboard-write"])
    page.locator(".highlight-console").nth(1).hover()
    page.locator(".highlight-console button.copybtn").nth(1).click()
    assert (
        page.evaluate("navigator.clipboard.readText()") == "recordspec build configs/readings.yaml --jobs 2"
    )


def test_navigation_leads_to_a_page_and_to_the_next(opened):
    page = opened()
    page.click(
        "nav >> text=A ten-minute tutorial" if page.query_selector("nav") else "text=A ten-minute tutorial"
    )
    assert page.inner_text("h1").startswith("A ten-minute tutorial")
    page.click("a.next-page")
    assert page.inner_text("h1").startswith("How-to pages")


def test_dark_and_light(opened):
    background = "getComputedStyle(document.body).backgroundColor"
    colours = {scheme: opened(color_scheme=scheme).evaluate(background) for scheme in ("light", "dark")}
    assert colours["light"] != colours["dark"]
    page = opened(color_scheme="light")
    seen = set()
    for _ in range(3):
        page.click(".content-icon-container .theme-toggle")
        seen.add(page.evaluate(background))
    assert seen == set(colours.values())


def test_a_narrow_screen_has_a_menu(opened):
    page = opened(viewport={"width": 390, "height": 800})
    link = page.locator(".sidebar-tree a[href='reference/commands.html']")
    assert not link.is_visible() or link.bounding_box()["x"] < 0
    page.click("label.nav-overlay-icon")
    page.wait_for_function("link => link.getBoundingClientRect().x >= 0", arg=link.element_handle())
    link.click()
    assert page.inner_text("h1").startswith("Commands")
