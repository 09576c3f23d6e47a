"""The page in a real headless Chromium: what it shows, its keys, and that nothing a message holds comes alive in it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from acp_manifold.bridge.view.data import page_data
from acp_manifold.bridge.view.page import page as page_of
from acp_manifold.translators.narrow import JsonObject

from .browser import chromium, missing
from .scene import HEADER, HOSTILE, ONE, TWO, hostile, request, scene

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Dialog, Page

if (why := missing()) is not None:
    pytest.skip(why, allow_module_level=True)

Show = Callable[..., "Page"]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def show(browser: Browser, tmp_path: Path) -> Iterator[Show]:
    """Opens the page of a recording from a file; at the end nothing may have gone wrong or been fetched in it."""
    faults: list[str] = []
    pages: list[Page] = []

    def dismiss(dialog: Dialog) -> None:
        faults.append(f"dialog: {dialog.message}")
        dialog.dismiss()

    def open_page(entries: list[JsonObject], header: JsonObject = HEADER, *, scheme: str = "light") -> Page:
        place = tmp_path / f"{len(pages)}.html"
        place.write_text(page_of(page_data("a.jsonl", header, entries)), encoding="utf-8")
        page = browser.new_page(viewport={"width": 1360, "height": 860})
        page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
        page.on("console", lambda message: faults.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on("dialog", dismiss)
        page.on("request", lambda sent: None if sent.url == place.as_uri() else faults.append(f"request: {sent.url}"))
        page.goto(place.as_uri())
        pages.append(page)
        return page

    yield open_page
    for page in pages:
        page.close()
    assert faults == []


def names(page: Page) -> list[str]:
    """The names in the rows that are drawn, from the top."""
    rows = page.locator(".row").evaluate_all(
        "rows => rows.map(row => [...row.querySelectorAll('.of, .name')].map(part => part.textContent).join(' '))"
    )
    return [str(row) for row in rows]


def selected(page: Page) -> str:
    return str(page.locator(".row.selected").text_content())


def test_lanes_stand_from_the_client_over_the_bridge_to_each_session(show: Show) -> None:
    page = show(scene())
    heads = page.locator(".lane")
    labels = [text.strip() for text in heads.locator("b").all_text_contents()]
    assert labels == ["client 1", "bridge", "Parser of dates", "Docs"]
    lefts = [float(left) for left in heads.evaluate_all("all => all.map(one => one.getBoundingClientRect().left)")]
    assert lefts == sorted(lefts)
    assert page.locator("#scenario").text_content() == HEADER["scenario"]


def test_messages_are_arrows_between_their_lanes_one_below_the_other(show: Show) -> None:
    page = show(scene())
    assert names(page)[:4] == ["initialize", "initialize", "start", "session/new"]
    tops = page.locator(".row").evaluate_all("rows => rows.map(row => row.getBoundingClientRect().top)")
    assert tops == sorted(tops)
    assert [page.locator(".row").nth(row).locator(".rightwards").count() for row in (0, 1)] == [1, 0]
    assert page.locator(".row").nth(1).locator(".leftwards").count() == 1
    client, bridge = (page.locator(".lane").nth(lane).bounding_box() for lane in (0, 1))
    arrow = page.locator(".row .arrow").first.bounding_box()
    assert client and bridge and arrow
    assert abs(arrow["x"] - (client["x"] + client["width"] / 2)) < 2
    assert abs(arrow["x"] + arrow["width"] - (bridge["x"] + bridge["width"] / 2)) < 2


def test_titles_bear_whose_they_are_and_a_discarded_one_is_struck_out(show: Show) -> None:
    page = show(scene())
    page.locator("button.mark.title").click()
    shown = [
        (
            row.locator(".title").text_content(),
            row.locator(".origin").text_content(),
            row.locator(".deed").last.text_content(),
        )
        for row in page.locator(".row").all()
    ]
    assert shown == [
        ("Docs", "client", "asked for"),
        ("Docs", "client", "written"),
        ("Dates and parsers", "model", "heard"),
        ("Dates and parsers", "model", "heard"),
        ("Dates and parsers", "model", "told"),
        ("Parser of dates", "client", "asked for"),
        ("Parser of dates", "client", "written"),
        ("Parser of dates", "client", "heard"),
        ("A late generated one", "model", "discarded"),
    ]
    line = page.locator(".is-dropped .title").evaluate("title => getComputedStyle(title).textDecorationLine")
    assert line == "line-through"


def test_a_question_is_joined_with_its_answer(show: Show) -> None:
    page = show(scene())
    page.locator("button.mark.question").click()
    assert page.locator(".row.request .join").all_text_contents() == [
        "→ allow 3.21 s",
        "→ allow_once 3.21 s",
        "→ decline 1.40 s",
    ]
    bars = page.locator(".bar-of-question")
    assert bars.count() == 3
    page.keyboard.press("Enter")
    assert page.locator("#detail-name").text_content() == "can_use_tool"
    page.keyboard.press("o")
    assert "allow" in selected(page)
    assert "can_use_tool" in str(page.locator(".row.partner").text_content())


def test_what_was_dropped_or_is_no_json_is_shown(show: Show) -> None:
    page = show(scene())
    page.locator("button.mark.dropped").click()
    assert names(page) == ["dropped", "title"]
    page.keyboard.press("Escape")
    page.locator("button.mark.error").click()
    assert "non-JSON" in names(page)
    page.locator(".row", has_text="non-JSON").click()
    assert page.locator("#tree").text_content() == "WARN not a line of the protocol"


def test_pieces_of_streams_are_a_row_for_each_stream_until_they_are_unfolded(show: Show) -> None:
    page = show(scene())
    chunks = page.locator(".row", has_text="agent_message_chunk")
    assert chunks.count() == 1
    assert "× 24" in str(chunks.text_content())
    assert "word0 word1 word2" in str(chunks.text_content())
    page.keyboard.press("f")
    assert page.locator("#fold").get_attribute("aria-pressed") == "false"
    page.locator("#method").select_option("session/update agent_message_chunk")
    assert page.locator(".row").count() == 24


def test_filters_by_session_method_and_text_leave_what_fits_and_escape_takes_them_back(show: Show) -> None:
    page = show(scene())
    everything = names(page)
    page.locator("#session").select_option(TWO)
    assert set(names(page)) >= {"thread/start", "turn/start"}
    assert "can_use_tool" not in names(page)
    page.keyboard.press("Escape")
    page.keyboard.press("Escape")
    assert names(page) == everything
    page.keyboard.press("/")
    page.keyboard.type("TEST_DATES")
    page.keyboard.press("Enter")
    assert names(page) == ["can_use_tool", "session/request_permission"]
    assert page.locator(".row mark").all_text_contents() == ["test_dates"]
    page.keyboard.press("Escape")
    page.keyboard.press("/")
    page.keyboard.type("nothing like it")
    page.keyboard.press("Enter")
    assert page.locator("#none").is_visible()


def test_a_click_on_the_head_of_a_lane_leaves_that_session_with_its_lanes(show: Show) -> None:
    page = show(scene())
    page.locator(".lane", has_text="Docs").click()
    assert page.locator("#session").input_value() == TWO
    assert page.locator(".lane b").all_text_contents() == ["client 1", "bridge", "Docs"]
    assert page.locator(".life").count() == 3
    page.locator(".lane", has_text="Docs").click()
    assert page.locator(".lane").count() == 4


def test_keys_move_open_close_and_explain(show: Show) -> None:
    page = show(scene())
    page.keyboard.press("j")
    page.keyboard.press("j")
    page.keyboard.press("k")
    assert page.locator(".row.selected").get_attribute("id") == "row-1"
    page.keyboard.press("Enter")
    assert page.locator("#detail").is_visible()
    assert '"acp-manifold"' not in str(page.locator("#tree").text_content())
    assert "acp-manifold" in str(page.locator("#tree").text_content())
    page.keyboard.press("j")
    assert page.locator("#detail-name").text_content() == "start"
    page.keyboard.press("Escape")
    assert page.locator("#detail").is_hidden()
    page.keyboard.press("G")
    assert "exit" in selected(page)
    page.keyboard.press("g")
    page.keyboard.press("t")
    assert "Docs" in selected(page)
    page.keyboard.press("?")
    assert page.locator("#keys").is_visible()
    page.keyboard.press("Escape")
    assert page.locator("#keys").is_hidden()


def test_json_folds_and_keeps_numbers_as_they_were_written(show: Show) -> None:
    page = show(
        [{"t": 0, "leg": "client", "dir": "in", "line": request(1, "x", exact=12345678901234567890, deep={"a": [1]})}]
    )
    page.keyboard.press("Enter")
    assert "12345678901234567890" in str(page.locator("#tree").text_content())
    deep = page.locator(".nest", has=page.locator("> .line > .key", has_text="deep"))
    assert deep.locator("> .inside").is_visible()
    deep.locator("> .line").click()
    assert deep.locator("> .inside").is_hidden()
    page.locator("#open-all").click()
    assert deep.locator("> .inside").is_visible()


@pytest.mark.parametrize("text", HOSTILE)
def test_whatever_a_message_holds_is_text_and_nothing_else(show: Show, text: str) -> None:
    header = {**HEADER, "scenario": text, "clis": {text: text}, "date": text}
    page = show(hostile(text), header)
    made = page.evaluate(
        "[...document.querySelectorAll('*')].map(one => one.localName).filter((n, i, all) => all.indexOf(n) === i)"
    )
    assert set(made).isdisjoint({"img", "a", "svg", "iframe", "object", "embed", "base", "link"})
    for _ in hostile(text):
        page.keyboard.press("Enter")
        page.keyboard.press("j")
    page.locator("#search").fill(text)
    page.keyboard.press("Enter")
    page.keyboard.press("?")
    assert page.evaluate("window.alive") is None
    assert page.locator("script").count() == 2
    assert page.locator("meta").count() == 5
    assert page.evaluate("document.querySelectorAll('[href], [src], [onerror], [onfocus], [onload]').length") == 0


def test_what_a_message_holds_is_shown_as_it_is(show: Show) -> None:
    text = HOSTILE[0]
    page = show(hostile(text))
    assert page.locator(".row .name").first.text_content() == text.rpartition(" ")[2]
    page.keyboard.press("Enter")
    assert page.locator("#tree .string").last.text_content() == text
    assert page.locator("#session option").nth(1).get_attribute("value") == text


def test_the_hostile_texts_would_come_alive_in_a_page_that_took_them_as_html(browser: Browser) -> None:
    page = browser.new_page()
    page.set_content(f"<body>{HOSTILE[3]}{HOSTILE[0]}</body>")
    page.wait_for_function("window.alive !== undefined")
    page.close()


def test_the_page_can_make_no_html_of_text(browser: Browser, tmp_path: Path) -> None:
    place = tmp_path / "page.html"
    place.write_text(page_of(page_data("a.jsonl", HEADER, scene())), encoding="utf-8")
    page = browser.new_page()
    page.goto(place.as_uri())
    refused = page.evaluate("(() => { try { document.body.innerHTML = '<b>x</b>'; } catch (e) { return e.name; } })()")
    assert refused == "TypeError"
    page.close()


def test_ten_thousand_messages_are_all_there_and_few_are_drawn(show: Show) -> None:
    entries = [
        {
            "t": number / 100,
            "leg": "client",
            "dir": "in",
            "session": ONE,
            "line": request(number, "session/prompt", n=f"<{number}>"),
        }
        for number in range(10_000)
    ]
    page = show(entries)
    assert page.locator(".row").count() < 80
    page.keyboard.press("G")
    assert page.locator(".row.selected").get_attribute("aria-posinset") == "10000"
    assert page.locator(".row.selected").is_visible()
    page.keyboard.press("/")
    page.keyboard.type("<5432>")
    page.keyboard.press("Enter")
    assert page.locator(".row").count() == 1
    assert page.locator(".row.selected").get_attribute("data-at") == "5432"
    page.keyboard.press("Escape")
    assert page.locator(".row.selected").get_attribute("data-at") == "5432"
    assert page.locator(".row.selected").is_visible()


@pytest.mark.parametrize(("scheme", "dark"), [("light", False), ("dark", True)])
def test_the_page_is_light_or_dark_as_the_person_has_it(show: Show, scheme: str, dark: bool) -> None:
    page = show(scene(), scheme=scheme)
    colour = str(page.evaluate("getComputedStyle(document.body).backgroundColor"))
    red = int(colour.removeprefix("rgb(").partition(",")[0])
    assert (red < 128) is dark


def test_on_a_narrow_window_a_message_is_shown_below_and_the_keys_still_work(show: Show) -> None:
    page = show(scene())
    page.set_viewport_size({"width": 390, "height": 800})
    page.keyboard.press("q")
    page.keyboard.press("Enter")
    panel = page.locator("#detail").bounding_box()
    assert panel
    assert (panel["x"], panel["width"]) == (0, 390)
    assert page.locator(".bar").evaluate("bar => bar.scrollWidth <= bar.clientWidth")
