"""Media by their size in pixels, never by the length of their base64; framing by family."""

from __future__ import annotations

import pytest

from workbench.model import Media, Message, Text, ToolCall, ToolResult
from workbench.tokens.framing import ANTHROPIC, OPENAI_CHAT, framing_for
from workbench.tokens.images import FLAT, media_tokens


@pytest.mark.parametrize(
    ("model", "width", "height", "tokens"),
    [
        ("gpt-4o", 512, 512, 85 + 170),
        ("gpt-4o", 1024, 1024, 85 + 4 * 170),  # the shorter side goes down to 768: 2 × 2 tiles
        ("gpt-4o", 4096, 8192, 85 + 6 * 170),  # into 2048², then 768 × 1536: 2 × 3
        ("gpt-4o-mini", 512, 512, 2833 + 5667),
        ("o3", 512, 512, 75 + 150),
        ("gpt-5", 512, 512, 70 + 140),
        ("gpt-4.1-mini", 1024, 1024, 1659),  # 1024 patches × 1.62
        ("gpt-4.1-mini", 8000, 8000, 2488),  # the cap of 1,536
        ("o4-mini", 320, 320, 172),
        ("gpt-5.5", 256, 256, 77),
        ("gpt-5.5", 512, 512, 307),
        ("claude-sonnet-4-5", 256, 256, 100),
        ("claude-sonnet-4-5", 512, 512, 361),
        ("claude-sonnet-4-5", 1024, 1024, 1369),
        ("claude-sonnet-4-5", 1280, 720, 1196),
        ("claude-sonnet-4-5", 4000, 4000, 1568),
        ("claude-opus-4-7", 1920, 1080, 2691),
        ("claude-opus-4-7", 4000, 4000, 4784),
        ("gemini-2.5-pro", 384, 384, 258),
        ("gemini-2.5-pro", 1024, 768, 516),
        ("gemini-3-pro", 5000, 20, 1080),
        (None, 1024, 1024, 765),
    ],
)
def test_by_model(model, width, height, tokens):
    assert media_tokens(Media("image", width=width, height=height), model) == tokens


@pytest.mark.parametrize("model", ["gpt-4o", "claude-sonnet-4-5", "gemini-2.5-pro", None])
def test_an_unknown_size_is_taken_for_a_screenshot_and_bytes_do_not_matter(model):
    default = media_tokens(Media("image", width=1024, height=1024), model)
    for media in (Media("image"), Media("image", size=9_000_000), Media("image", width=0, height=-3), Media("image", width=100)):
        assert media_tokens(media, model) == default


@pytest.mark.parametrize("kind", ["document", "audio", "video"])
def test_other_media_have_a_flat_number(kind):
    assert media_tokens(Media(kind, size=12), "gpt-4o") == FLAT[kind] > 0


@pytest.mark.parametrize("size", [(1, 1), (1, 100_000), (10**9, 10**9)])
@pytest.mark.parametrize("model", ["gpt-4o", "gpt-4.1-mini", "claude-sonnet-4-5", "claude-opus-5", "gemini-2.0", "gemini-3"])
def test_odd_sizes_are_neither_nothing_nor_without_bound(size, model):
    assert 0 < media_tokens(Media("image", width=size[0], height=size[1]), model) < 100_000


def test_framing_of_messages():
    call, result = ToolCall("a", "run", {}, "{}"), ToolResult("a", "run", (Text("x"),))
    assert OPENAI_CHAT.of(Message(0, "", "assistant", (call, call))) == 4 + 2 * OPENAI_CHAT.per_call
    assert ANTHROPIC.of(Message(0, "", "tool", (result,))) == 4 + ANTHROPIC.per_result
    assert OPENAI_CHAT.of_request(0) == 3
    assert ANTHROPIC.of_request(2) == 3 + 346 + 2 * ANTHROPIC.per_tool


@pytest.mark.parametrize(
    ("source_format", "model", "name"),
    [
        ("claude-code", None, "anthropic"),
        ("claude-code", "gpt-5", "openai-chat"),
        ("openai-chat", "us.anthropic.claude-3-opus", "anthropic"),
        ("anthropic-messages", "unknown", "anthropic"),
        ("codex", None, "openai-chat"),
        ("", None, "openai-chat"),
    ],
)
def test_framing_by_model_then_format(source_format, model, name):
    assert framing_for(source_format, model).name == name
