"""Pages of maps in a real browser: Playwright drives the system's Chromium over file://.

`pip install -e '.[browser]'` and Debian's package chromium; without either these tests are skipped.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from compared_maps import with_texts
from html_pages import HOSTILE, hostile, raced, together
from project import REPOSITORY
from report_maps import ABORTED, MXFP4

from gluonmap.diff.comparison import difference
from gluonmap.model import codec
from gluonmap.report.html import diff_page, map_page, site
from gluonmap.report.plain_text import visible

CHROMIUM = shutil.which("chromium") or "/usr/bin/chromium"


def missing() -> str:
    """Why there is no browser to drive; "" where there is."""
    try:
        import playwright.sync_api  # noqa: F401
    except ImportError:
        return "playwright is not installed: pip install 'gluonmap[browser]'"
    return "" if Path(CHROMIUM).exists() else "Chromium is not installed: apt-get install chromium"


pytestmark = [pytest.mark.browser, pytest.mark.skipif(bool(missing()), reason=missing() or "a browser is here")]

MAPS = {
    "mxfp4": REPOSITORY / "reports/cdna4/gemm_mxfp4.gfx950.json",
    "bf16": REPOSITORY / "reports/cdna3/gemm_bf16.gfx942.json",
    "hopper": REPOSITORY / "reports/hopper/gemm_fp16.sm_90.json",
    "rmsnorm": REPOSITORY / "reports/rmsnorm.gfx942.json",
}
BY_HAND = ("marks", "race", "failing", "hostile", "long", "diff-hostile", "diff-long")
COMPARED = {"diff": ("bf16", "cdna4"), "diff-rmsnorm": ("rmsnorm", "gfx950")}
"""Pages of two maps; those of strange texts are made by hand."""


@pytest.fixture(scope="session", name="folder")
def _folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The pages of all maps here."""
    folder = tmp_path_factory.mktemp("pages")
    spaces = {name: codec.read_map(path) for name, path in MAPS.items()}
    for name, space in spaces.items():
        (folder / f"{name}.html").write_bytes(map_page.render(space, home="index.html"))
    made = {
        "marks": map_page.render(MXFP4),
        "race": map_page.render(together(), [raced(together())]),
        "failing": map_page.render(ABORTED),
        "hostile": map_page.render(hostile(HOSTILE), [raced(hostile(HOSTILE))], warnings=[HOSTILE]),
        "long": map_page.render(hostile("x" * 10_000)),
        "index": site.index([(f"{name}.html", space) for name, space in [*spaces.items(), ("failing", ABORTED)]]),
    }
    spaces |= {
        "cdna4": codec.read_map(REPOSITORY / "reports/cdna4/gemm_bf16.gfx950.json"),
        "gfx950": codec.read_map(REPOSITORY / "reports/rmsnorm.gfx950.json"),
    }
    made |= {
        name: diff_page.render(difference(spaces[one], spaces[other]), (f"{one}.json", f"{other}.json"))
        for name, (one, other) in COMPARED.items()
    }
    for name, text in (("diff-hostile", HOSTILE), ("diff-long", "x" * 10_000)):
        made[name] = diff_page.render(difference(*with_texts(text)), (text, text))
    for name, data in made.items():
        (folder / f"{name}.html").write_bytes(data)
    return folder


@pytest.fixture(scope="session", name="browser")
def _browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
        )
        yield browser
        browser.close()


class Visit:
    """One page in a window, and what it did that it must not do."""

    def __init__(self, browser: Any, path: Path, width: int = 1280, scheme: str = "light") -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.wrong: list[str] = []
        self.requests: list[str] = []
        self.page.on("pageerror", lambda error: self.wrong.append(str(error)))
        self.page.on("console", lambda message: self.wrong.append(message.text))
        self.page.on("dialog", lambda dialog: (self.wrong.append("a dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.address = path.as_uri()
        self.page.goto(self.address)


@pytest.fixture(name="visit")
def _visit(browser: Any, folder: Path) -> Iterator[Any]:
    """Opens pages by name; at the end nothing has gone wrong on any, and no request has left any."""
    visits: list[Visit] = []

    def open_(name: str, **window: Any) -> Any:
        visits.append(Visit(browser, folder / f"{name}.html", **window))
        return visits[-1].page

    yield open_
    for visit in visits:
        assert visit.wrong == []
        assert {url.partition("#")[0] for url in visit.requests} <= {visit.address, "data:,"}
        visit.context.close()


# --- cells ------------------------------------------------------------------------------------------------------------


def shown(page: Any) -> list[str]:
    """Ids of the details that can be seen."""
    return page.evaluate(
        "[...document.querySelectorAll('.details')].filter((e) => e.checkVisibility()).map((e) => e.id)"
    )


@pytest.mark.parametrize("name", ["mxfp4", "marks"])
def test_every_cell_is_reached_by_tab_and_opens_its_details_by_enter(visit: Any, name: str) -> None:
    page = visit(name)
    cells = page.locator(".cell").count()
    space = MXFP4 if name == "marks" else codec.read_map(MAPS[name])
    assert cells == sum(len(knob.values) for knob in space.knobs.values())
    page.locator(".cell").first.focus()
    reached = []
    for _ in range(cells):
        focused = page.evaluate("[document.activeElement.id, document.activeElement.getAttribute('aria-controls')]")
        page.keyboard.press("Enter")
        assert focused[1] in shown(page)
        assert page.locator(f"#{focused[0]}").get_attribute("aria-expanded") == "true"
        page.keyboard.press("Escape")
        assert focused[1] not in shown(page)
        reached.append(focused[0])
        page.keyboard.press("Tab")
    assert len(set(reached)) == cells


def test_a_click_opens_a_value_and_closes_the_other_one_of_its_knob(visit: Any) -> None:
    page = visit("mxfp4")
    assert shown(page) == []
    cells = page.locator(".cell")
    cells.nth(0).click()
    cells.nth(1).click()
    assert shown(page) == ["k1-2-details"]
    details = page.locator("#k1-2-details").inner_text()
    for text in ("CRASHED SIGABRT", "Invalid basis 128", "gemm_mxfp4.py:139", "gluonmap repeat reports/cdna4"):
        assert text in details
    cells.nth(1).click()
    assert shown(page) == []


def test_arrows_move_within_a_knob_and_stop_at_its_ends(visit: Any) -> None:
    page = visit("mxfp4")
    page.locator("#k1-1").focus()
    for key, at in (("ArrowLeft", "k1-1"), ("ArrowRight", "k1-2"), ("ArrowRight", "k1-3"), ("ArrowRight", "k1-4")):
        page.keyboard.press(key)
        assert page.evaluate("document.activeElement.id") == at
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.id") == "k1-4"


def test_a_link_to_a_value_opens_it(visit: Any) -> None:
    page = visit("mxfp4")
    page.goto(f"{page.url}#k6-1")
    page.reload()
    assert shown(page) == ["k6-1-details"]


def test_every_value_of_two_maps_is_reached_by_tab_and_opens_both_sides(visit: Any) -> None:
    page = visit("diff")
    page.locator(".cell").first.focus()
    for _ in range(page.locator(".cell").count()):
        details = page.evaluate("document.activeElement.getAttribute('aria-controls')")
        page.keyboard.press("Enter")
        assert details in shown(page)
        sides = page.locator(f"#{details} h4").all_inner_texts()
        assert [side.split()[0] for side in sides] == ["A", "B"]
        page.keyboard.press("Escape")
        assert shown(page) == []
        page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") != "cell both"


# --- tables and the graph ---------------------------------------------------------------------------------------------


def column(page: Any, table: str, place: int) -> list[str]:
    return [text.strip() for text in page.locator(f"{table} tbody tr td:nth-child({place})").all_inner_texts()]


def test_tables_are_sorted_by_number_and_turned_around(visit: Any) -> None:
    page = visit("hopper")
    table = "#programs ~ .box table"
    heads = [text.split("\n")[0].strip() for text in page.locator(f"{table} thead th").all_inner_texts()]
    place = heads.index("spills") + 1
    head = page.locator(f"{table} thead th").nth(place - 1)
    before = column(page, table, place)
    head.locator("button").focus()
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "ascending"
    up = [int(text.split()[0].replace(",", "")) for text in column(page, table, place)]
    assert up == sorted(up)
    page.keyboard.press("Enter")
    assert head.get_attribute("aria-sort") == "descending"
    assert column(page, table, place)[0] == "1,586 B ▲"
    page.locator(f"{table} thead th").first.locator("button").click()
    assert column(page, table, place) == before
    assert head.get_attribute("aria-sort") is None


def test_a_column_of_words_is_sorted_as_words_and_no_value_goes_last(visit: Any) -> None:
    page = visit("mxfp4")
    table = "#programs ~ .box table"
    heads = [text.split("\n")[0].strip() for text in page.locator(f"{table} thead th").all_inner_texts()]
    place = next(n for n, head in enumerate(heads, 1) if head.startswith("cache_"))
    page.locator(f"{table} thead th").nth(place - 1).locator("button").click()
    found = column(page, table, place)
    assert found == sorted(found)
    assert set(found) == {".cg", ".cv", "None"}


def test_what_grew_is_sorted_by_how_much_it_grew(visit: Any) -> None:
    page = visit("diff-rmsnorm")
    table = ".data.pairs"
    heads = [text.split("\n")[-1].strip() for text in page.locator(f"{table} thead th").all_inner_texts()]
    place = heads.index("VGPR") + 1
    head = page.locator(f"{table} thead th").nth(place - 1).locator("button")
    head.click()
    cells = page.locator(f"{table} tbody tr td:nth-child({place})")
    growth = [int(cell.get_attribute("data-by")) for cell in cells.all()]
    assert growth == sorted(growth)
    assert growth[0] < 0 < growth[-1]
    head.click()
    assert cells.first.inner_text() in ("42 → 44", "70 → 72")


def test_all_regressions_open_as_one_table(visit: Any) -> None:
    page = visit("diff")
    rows = page.locator(".data.worse tbody tr")
    assert not rows.first.is_visible()
    page.locator("details.all summary").click()
    assert rows.first.is_visible()
    assert rows.count() == 112


def test_a_box_of_the_graph_says_its_relation_on_focus_and_on_hover_and_leads_to_it(visit: Any) -> None:
    page = visit("hopper")
    note = page.locator("#graphnote")
    idle = note.inner_text()
    box = page.locator(".node.constraint").first
    box.focus()
    assert note.inner_text().startswith(
        "(BLOCK_M + BLOCK_N) * BLOCK_K * STAGES <= 110592. learned: 110 failed, 279 got"
    )
    assert page.locator(".edge.on").count() == 4
    assert page.locator(".node.knob.on").count() == 4
    page.keyboard.press("Enter")
    assert page.url.endswith("#c1")
    page.locator(".node.knob").first.hover()
    assert note.inner_text().startswith("BLOCK_K: 16, 32, 64, 128, 256; baseline 64. Bounded: ")
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    assert note.inner_text() == idle


# --- how it looks -----------------------------------------------------------------------------------------------------

EVERY = (*MAPS, *COMPARED, *BY_HAND, "index")

CONTRASTS = r"""
() => {
  const parse = (text) => (text.match(/[\d.]+/g) || []).map(Number);
  const linear = (v) => (v /= 255) <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4;
  const light = ([r, g, b]) => 0.2126 * linear(r) + 0.7152 * linear(g) + 0.0722 * linear(b);
  const ground = (element) => {
    const box = element.closest("g, a.node")?.querySelector("rect");
    if (box) { const fill = parse(getComputedStyle(box).fill); if (fill.length && fill[3] !== 0) return fill; }
    for (let e = element; e; e = e.parentElement) {
      const c = parse(getComputedStyle(e).backgroundColor);
      if (c.length && c[3] !== 0) return c;
    }
    return [255, 255, 255];
  };
  const found = {};
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const element = walker.currentNode.parentElement, style = getComputedStyle(element);
    if (!walker.currentNode.data.trim() || ["SCRIPT", "STYLE", "title"].includes(element.tagName)) continue;
    if (!element.getClientRects().length) continue;
    const ink = parse(element.namespaceURI.endsWith("svg") ? style.fill : style.color);
    const [a, b] = [light(ink), light(ground(element))].sort((x, y) => y - x);
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < 4.5) found[`${element.tagName}.${element.className.baseVal ?? element.className}`] = ratio.toFixed(2);
  }
  return found;
}
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["mxfp4", "bf16", "marks", "race", "index", *COMPARED])
def test_text_has_the_contrast_that_reading_needs_in_both_schemes(visit: Any, name: str, scheme: str) -> None:
    page = visit(name, scheme=scheme)
    page.evaluate("for (const part of document.querySelectorAll('[hidden]')) part.hidden = false")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate(CONTRASTS) == {}


@pytest.mark.parametrize(("scheme", "faint"), [("light", "#888888"), ("dark", "#666666")])
def test_the_measure_of_contrast_sees_faint_text(visit: Any, scheme: str, faint: str) -> None:
    page = visit("mxfp4", scheme=scheme)
    page.add_style_tag(content=f"h2 {{ color: {faint} }} .node.pinned text {{ fill: {faint} !important }}")
    assert set(page.evaluate(CONTRASTS)) == {"H2.", "text."}


def test_the_dark_scheme_is_dark_and_paper_is_not(visit: Any) -> None:
    def ground(page: Any) -> list[int]:
        return page.evaluate("getComputedStyle(document.body).backgroundColor.match(/\\d+/g).map(Number)")

    assert min(ground(visit("mxfp4", scheme="light"))) > 240
    page = visit("mxfp4", scheme="dark")
    assert max(ground(page)) < 40
    page.emulate_media(media="print")
    assert min(ground(page)) > 240


@pytest.mark.parametrize("width", [1280, 400])
@pytest.mark.parametrize("name", EVERY)
def test_the_page_itself_never_scrolls_sideways(visit: Any, name: str, width: int) -> None:
    page = visit(name, width=width)
    page.evaluate("for (const part of document.querySelectorAll('[hidden]')) part.hidden = false")
    page.evaluate("for (const part of document.querySelectorAll('details')) part.open = true")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = """() => [...document.querySelectorAll("main *")]
        .filter((e) => !e.closest(".box, .heat") && e.getBoundingClientRect().right > innerWidth + 1)
        .map((e) => e.outerHTML.slice(0, 90))"""
    assert page.evaluate(cut) == []


def test_boxes_that_scroll_are_reached_by_keyboard(visit: Any) -> None:
    page = visit("bf16", width=400)
    for box in page.locator(".box").all():
        if box.evaluate("e => e.scrollWidth > e.clientWidth || e.scrollHeight > e.clientHeight"):
            assert box.get_attribute("tabindex") == "0"
            assert box.get_attribute("aria-label")


# --- texts of others --------------------------------------------------------------------------------------------------


def test_hostile_texts_stand_on_the_page_as_they_are_and_run_nothing(visit: Any) -> None:
    page = visit("hostile")
    assert page.locator("h1 .kernel").text_content() == visible(HOSTILE)
    page.locator(".cell").first.click()
    details = page.locator(".details:visible")
    assert visible(HOSTILE) in details.inner_text()
    assert page.locator("img, main script").count() == 0


def test_hostile_texts_stand_on_the_page_of_two_maps_and_run_nothing(visit: Any) -> None:
    page = visit("diff-hostile")
    assert page.locator("h1 .kernel").text_content() == f"double → {visible(HOSTILE)}"
    page.locator(".cell", has_text="128").last.click()
    assert visible(HOSTILE) in page.locator(".details:visible").inner_text()
    assert page.locator("img, main script").count() == 0


def test_a_long_line_is_cut_and_opens_whole(visit: Any) -> None:
    page = visit("long")
    page.locator(".cell").first.click()
    details = page.locator(".details:visible")
    whole = details.locator("details").first
    assert not whole.locator("pre").is_visible()
    whole.locator("summary").click()
    assert whole.locator("pre").inner_text() == "x" * 10_000


def test_the_index_leads_to_each_page_and_back(visit: Any, folder: Path) -> None:
    page = visit("index")
    links = [link.get_attribute("href") for link in page.locator(".entry a").all()]
    assert set(links) == {"mxfp4.html", "bf16.html", "hopper.html", "rmsnorm.html", "failing.html"}
    assert all((folder / link).exists() for link in links)
    assert visit("mxfp4").locator("a.brand").get_attribute("href") == "index.html"
