"""Prompts on their way to the CLI."""

from __future__ import annotations

import pytest

from acp_manifold.translators.claude.commands import commands
from acp_manifold.translators.claude.input import user_message
from acp_manifold.translators.narrow import JsonObject, as_objects, obj, text
from acp_manifold.translators.updates import Command, Content, Image, ResourceLink, Text, TextResource


def block(content: Content) -> JsonObject:
    message = user_message((content,), "u1")
    assert message["uuid"] == "u1" and message["type"] == "user"
    return as_objects(obj(message, "message").get("content"))[0]


def test_text_goes_as_it_is() -> None:
    assert block(Text(" /compact\n\ud800 ")) == {"type": "text", "text": " /compact\n\ud800 "}


def test_an_image_goes_as_base64() -> None:
    source = {"type": "base64", "media_type": "image/png", "data": "QUJD"}
    assert block(Image("QUJD", "image/png")) == {"type": "image", "source": source}


@pytest.mark.parametrize(
    ("uri", "mention"),
    [
        ("file:///w/a.py", "@/w/a.py"),
        ("file:///w/a%20b.py", '@"/w/a b.py"'),
        ("file://localhost/w/a.py", "@/w/a.py"),
        ("file:///w/%22.py", "[n](file:///w/%22.py)"),
        ("file:///w/a(1).py", '@"/w/a(1).py"'),
        ("file:///w/a.py#L2-3", "@/w/a.py#L2-3"),
        ("file:///w/a%20b.py#L2", '@"/w/a b.py#L2"'),
        ("file:///w/a.py#main", "[n](file:///w/a.py#main)"),
        ("file:///w/a%23L2.py", "[n](file:///w/a%23L2.py)"),
        ("file://elsewhere/w/a.py", "[n](file://elsewhere/w/a.py)"),
        ("https://example.org/x", "[n](https://example.org/x)"),
    ],
)
def test_a_link_is_a_mention_of_a_file_or_a_markdown_link(uri: str, mention: str) -> None:
    assert block(ResourceLink(uri, "n")) == {"type": "text", "text": mention}


def blocks(*prompt: Content, is_command: bool = False) -> list[str]:
    """The blocks of a prompt: the words of each, or its kind."""
    sent = as_objects(obj(user_message(prompt, "u1", is_command=is_command), "message").get("content"))
    return [text(one, "text") or text(one, "type") for one in sent]


LINK, NOTES, PICTURE = ResourceLink("file:///w/a.py", "a.py"), TextResource("x:n", "of it"), Image("QUJD", "image/png")


def test_all_words_of_a_command_are_its_last_block() -> None:
    assert blocks(Text("/fix "), LINK, Text("please"), is_command=True) == ["/fix @/w/a.py please"]
    context = '<context ref="x:n">\nof it\n</context>'
    assert blocks(Text("/fix"), PICTURE, NOTES, is_command=True) == [context, "image", "/fix [@n](x:n)"]


@pytest.mark.parametrize("before", [Text("look"), LINK])
def test_no_command_is_found_behind_other_words(before: Content) -> None:
    assert blocks(before, Text("/clear"))[-1] == " /clear"
    assert blocks(before, PICTURE, Text("/fix it"))[-1] == " /fix it"
    assert blocks(before, Text("/usr/bin"))[-1] == "/usr/bin"
    assert blocks(PICTURE, Text("/fix it"))[-1] == "/fix it"


def test_commands_for_a_terminal_are_left_out() -> None:
    entries: list[object] = [
        {"name": "compact", "description": "Free up\n context", "argumentHint": "<what>"},
        {"name": "init", "description": "x" * 300, "argumentHint": ""},
        *({"name": name, "description": ""} for name in ("doctor", "__hidden", "vim", "")),
    ]
    offered = commands({"commands": entries}, left_out=("vim",)).commands
    assert offered[0] == Command("compact", "Free up context", "<what>")
    assert [command.name for command in offered] == ["compact", "init", "status", "mcp", "skills"]
    assert len(offered[1].description) == 200 and offered[1].hint is None
