"""Members put into texts of JSON with comments, YAML and TOML and taken out: all else stays."""

from __future__ import annotations

import json
from types import ModuleType

import pytest
import tomlkit
import yaml
from hypothesis import given
from hypothesis import strategies as st

from greenroom.transports.setup import json_text, toml_text, yaml_text

pytestmark = pytest.mark.promise("cli.setup")

NAMES = st.text('abc-é"\\ /,}', min_size=1, max_size=6)
LEAVES = st.one_of(st.text('ab:#/*,{}"\\é\n', max_size=8), st.integers(-9, 9), st.booleans())
SERVERS = st.dictionaries(NAMES, st.dictionaries(NAMES, LEAVES, max_size=2), max_size=3)
DOCUMENTS = st.tuples(st.dictionaries(NAMES, LEAVES, max_size=3), st.none() | SERVERS).map(
    lambda drawn: drawn[0] if drawn[1] is None else {**drawn[0], "servers": drawn[1]}
)
ENTRY = {"command": "/x y/greenroom", "args": ["serve", "--agent", "a"]}
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


TEXTS = {
    json_text: DOCUMENTS.flatmap(lambda value: st.sampled_from([None, 2]).map(lambda n: commented(value, n))),
    yaml_text: DOCUMENTS.flatmap(
        lambda value: st.sampled_from([True, False, None]).map(
            lambda flow: "# head\n" + yaml.safe_dump(value, default_flow_style=flow) + "# end\n"
        )
    ),
    toml_text: DOCUMENTS.map(lambda value: "# head\n" + tomlkit.dumps(value) + "# end\n"),
}


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
