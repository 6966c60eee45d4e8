"""Members put into texts of JSON with comments, YAML and TOML and taken out: all else stays."""

from __future__ import annotations

import json
from types import ModuleType
from typing import Any

import pytest
import tomlkit
import yaml
from hypothesis import given
from hypothesis import strategies as st

from greenroom.transports.clients.setup import json_text, toml_text, yaml_text

pytestmark = pytest.mark.promise("cli.setup")

NAMES = st.text('abc-é"\\ /,}', min_size=1, max_size=6)
SECRET = st.sampled_from(
    [53053053, 53053.053, "s3cr3t", "s3cr3t\n# 's3cr3t\"", "a: s3cr3t #", "s3cr3t: {", "é s3cr3t // /*"]
)
LEAVES = st.one_of(st.text('ab:#/*,{}"\\é\n', max_size=8), st.integers(-9, 9), st.booleans())


def documents(leaves: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    servers = st.dictionaries(
        NAMES, st.dictionaries(NAMES, leaves | st.lists(leaves), max_size=2), max_size=3
    )
    return st.tuples(st.dictionaries(NAMES, leaves, max_size=3), st.none() | servers).map(
        lambda drawn: drawn[0] if drawn[1] is None else {**drawn[0], "servers": drawn[1]}
    )


ENTRY: dict[str, Any] = {"command": "/x y/greenroom", "args": ["serve", "--agent", "a"]}
PATH = ("servers", "greenroom")


def commented(value: object, indent: int | None) -> str:
    """Write a value as JSON with comments at its head and its end, and with trailing commas."""
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    if indent:
        text = "\n".join(
            line + "," if line.endswith(('"', "}")) and line not in {"}", "{}"} else line
            for line in text.split("\n")
        )
    return f"// head , }}\n{text} /* end */\n"


def texts_of(values: st.SearchStrategy[dict[str, Any]]) -> dict[ModuleType, st.SearchStrategy[str]]:
    return {
        json_text: values.flatmap(
            lambda value: st.sampled_from([None, 2]).map(lambda indent: commented(value, indent))
        ),
        yaml_text: values.flatmap(
            lambda value: st.sampled_from([True, False, None]).map(
                lambda flow: "# head\n" + yaml.safe_dump(value, default_flow_style=flow) + "# end\n"
            )
        ),
        toml_text: values.map(lambda value: "# head\n" + tomlkit.dumps(value) + "# end\n"),
    }


TEXTS = texts_of(documents(LEAVES))
SECRETS = texts_of(documents(SECRET))


@pytest.mark.parametrize("texts", TEXTS, ids=lambda module: module.__name__.rpartition(".")[2])
@given(data=st.data())
def test_put_twice_is_once_and_taken_out_is_as_before(texts: ModuleType, data: st.DataObject) -> None:
    text = data.draw(TEXTS[texts])
    before = texts.parse(text)
    once = texts.put(text, PATH, ENTRY)
    assert texts.parse(once) == {**before, "servers": {**before.get("servers", {}), "greenroom": ENTRY}}
    assert texts.parse(texts.put(once, PATH, ENTRY)) == texts.parse(once)
    back = texts.take(once, PATH)
    assert {"servers": {}} | texts.parse(back) == {"servers": {}} | before
    assert back.startswith(text.partition("head")[0] + "head")
    assert "end" in back
    if before.get("servers") and texts is not toml_text:  # tomlkit leaves an empty line
        assert back == text


@pytest.mark.promise("cli.setup-secrets")
@pytest.mark.parametrize("texts", TEXTS, ids=lambda module: module.__name__.rpartition(".")[2])
@given(data=st.data())
def test_what_is_shown_has_the_entry_and_no_value_of_others(texts: ModuleType, data: st.DataObject) -> None:
    text = data.draw(SECRETS[texts])
    once = texts.put(text, PATH, ENTRY)
    for shown in (texts.masked(once, PATH), texts.masked(once, None), texts.masked(text, None)):
        assert "s3cr3t" not in shown
        assert "53053" not in shown
        assert "head" not in shown  # comments may have keys as well
    assert ENTRY["command"] in texts.masked(once, PATH)
    assert ENTRY["command"] not in texts.masked(once, None)


@pytest.mark.parametrize(
    ("texts", "text"),
    [
        (json_text, '{"servers": null, "z": "s"}'),
        (json_text, '{ // c\n  "servers": null\n}'),
        (yaml_text, "servers:\nz: 1\n"),
        (yaml_text, "servers: ~ # c\nz: 1\n"),
        (yaml_text, "{servers: {x: {a: 1}}, # c\n z: 1}\n"),
        (yaml_text, "z: {\n  # c\n  a: 1 }\nservers: { # c\n  x: {a: 1}\n}\n"),
        (yaml_text, "{}\n"),
    ],
)
def test_null_and_mappings_between_braces_are_taken(texts: ModuleType, text: str) -> None:
    before = texts.parse(text)
    once = texts.put(text, PATH, ENTRY)
    assert texts.parse(once) == {**before, "servers": {**(before.get("servers") or {}), "greenroom": ENTRY}}
    assert ("# c" in text, "// c" in text) == ("# c" in once, "// c" in once)
    back = texts.take(once, PATH)
    assert back == text or not before.get("servers")
    assert texts.parse(back) == {**before, "servers": before.get("servers") or {}}
