"""Files to chunks: headings, places, encodings; nothing gets lost."""

from __future__ import annotations

import io
import json
import string
from itertools import accumulate, pairwise
from zipfile import ZIP_DEFLATED, ZipFile

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from support.corpora import pdf_file

from greenroom.actors.content.documents import (
    Kind,
    UnreadableDocumentError,
    build_document,
    kind_of,
    markdown,
    unread_parts,
)
from greenroom.actors.content.documents.decode import SourceText
from greenroom.actors.content.documents.document_types import Chunk
from greenroom.actors.content.documents.sections import MAX_CHARACTERS, strip_markup

TEXT_KINDS: tuple[Kind, ...] = ("markdown", "text", "rst", "csv", "code")
MARKS = str.maketrans("", "", "#=-~^`*_>|\"'")


def chunks_of(kind: Kind, text: str | bytes, name: str = "a/file") -> list[Chunk]:
    return build_document(name, kind, text if isinstance(text, bytes) else text.encode()).chunks


def told(kind: Kind, text: str) -> list[tuple[list[str], str]]:
    return [(chunk.headings, chunk.text) for chunk in chunks_of(kind, text)]


def without_marks(text: str) -> str:
    return text.translate(MARKS)


lines = st.one_of(
    st.text(alphabet=string.ascii_letters + " .!,üß—😀\t`*_#>|\"'", max_size=60),
    st.sampled_from(
        ["# One", "## Two *2*", "### Three ###", "Under", "=====", "-----", "```", "---", "> # q", "", "  x"]
    ),
    st.integers(1, 3000).map(lambda count: "word. " * (count // 6)),
)
texts = st.builds(
    lambda some, end, mark: mark + end.join(some),
    st.lists(lines, max_size=40),
    st.sampled_from(["\n", "\r\n", "\r"]),
    st.sampled_from(["", "\ufeff"]),
)


@pytest.mark.promise("documents.whole")
@given(st.sampled_from(TEXT_KINDS), texts)
def test_a_chunk_is_what_is_at_its_place_and_between_two_are_headings_and_space(
    kind: Kind, text: str
) -> None:
    data = text.encode()
    try:
        chunks = chunks_of(kind, data)
    except UnreadableDocumentError:
        assert not text.strip("\ufeff").strip()
        return
    starts = [0]
    for chunk in chunks:
        assert data[chunk.first_byte : chunk.last_byte].decode() == chunk.text
        assert 0 < len(chunk.text) <= MAX_CHARACTERS
        starts += [chunk.first_byte, chunk.last_byte]
    assert starts == sorted(starts)
    headings = without_marks(" ".join(heading for chunk in chunks for heading in chunk.headings))
    gaps = pairwise([0, *(at for chunk in chunks for at in (chunk.first_byte, chunk.last_byte)), len(data)])
    for number, (first, last) in enumerate(gaps):
        if number % 2 == 0:
            between = data[first:last].decode()
            for word in between.replace("\ufeff", "").split():
                assert without_marks(word) in headings or kind == "csv"


def test_a_heading_that_is_too_long_to_be_kept_whole_is_text_as_well() -> None:
    ((headings, text),) = told("markdown", "# " + "word " * 60 + "\n\nbody")
    assert (len(headings[0]), text.count("word"), text.endswith("body")) == (200, 60, True)


@given(
    st.sampled_from(TEXT_KINDS),
    st.binary(max_size=400),
    st.sampled_from([b"", b"\xff\xfe", b"\xfe\xff", b"\xef\xbb\xbf"]),
)
def test_bytes_in_no_encoding_make_chunks_all_the_same(kind: Kind, data: bytes, mark: bytes) -> None:
    try:
        chunks = chunks_of(kind, mark + data)
    except UnreadableDocumentError:
        return
    for chunk in chunks:
        chunk.text.encode()
        assert 0 <= chunk.first_byte < chunk.last_byte <= len(mark + data)
        assert 1 <= chunk.first_line <= chunk.last_line


def test_lines_are_counted_from_1_and_say_where_a_chunk_is() -> None:
    (first, second) = chunks_of("markdown", "# A\n\none\ntwo\n\n## B\n\nthree\n")
    assert (first.first_line, first.last_line, second.first_line, second.last_line) == (3, 4, 8, 8)


# -- Markdown ---------------------------------------------------------------------------------------


indents = ["", "", "", "", " ", "   ", "   ", "    ", "\t", "> ", "- ", "1. ", "  - ", "* > "]
kinds = (
    "a|a|a|a|# 1|## 2|# 1|===|---|- - -|***|_ _ _|```|~~~|> b|- c|+ d|1. e|2) f|7. g|<div>|<!-- h|[i]: /j|-"
)
blocks = st.lists(
    st.tuples(st.sampled_from(indents), st.sampled_from([*kinds.split("|"), "#", ""])).map("".join),
    min_size=2,
    max_size=14,
).map("\n".join)


@given(blocks)
def test_headings_of_markdown_are_those_of_commonmark(text: str) -> None:
    text = f"\n{text}"  # what begins the first line may be front matter
    tokens = MarkdownIt("commonmark", {"maxNesting": 20}).parse(text)
    starts = [0, *accumulate(len(line) + 1 for line in text.split("\n"))]
    expected = [
        (starts[token.map[0]], strip_markup(inline.content))
        for token, inline in pairwise(tokens)
        if token.type == "heading_open" and not token.level and token.map
    ]
    found = markdown.read(SourceText(text.encode())).all[1:]
    assert [section.first for section in found] == [start for start, _ in expected]
    assert all(
        section.headings[-1] == words for section, (_, words) in zip(found, expected, strict=True) if words
    )


def test_markdown_is_cut_at_its_headings_and_each_has_those_above_it() -> None:
    text = "before\n# Top\nintro\n## `Sub` [one](x)\ntext\n# Other\nUnderlined\n---\nlast\n"
    assert told("markdown", text) == [
        ([], "before"),
        (["Top"], "intro"),
        (["Top", "Sub one"], "text"),
        (["Other", "Underlined"], "last"),
    ]


def test_a_heading_in_code_a_list_or_a_quotation_begins_no_section() -> None:
    text = "# Top\n\n```\n# no\n```\n\n- # no\n\n> # no\n\n    # no\n"
    assert [headings for headings, _ in told("markdown", text)] == [["Top"]]


def test_a_heading_without_text_is_found_by_itself() -> None:
    assert told("markdown", "# Top\n\n## Empty\n\n## Full\ntext") == [
        (["Top", "Empty"], "## Empty"),
        (["Top", "Full"], "text"),
    ]


@pytest.mark.parametrize("line", ["title: My page", 'title: "My page"', "title:   'My page'  "])
def test_front_matter_gives_the_title_and_is_found_itself(line: str) -> None:
    document = build_document("a.md", "markdown", f"---\n{line}\ntags: [blue]\n---\n# Top\ntext\n".encode())
    assert document.title == "My page"
    assert "tags: [blue]" in document.chunks[0].text
    assert (document.chunks[1].headings, document.chunks[1].first_line) == (["Top"], 6)


def test_without_a_title_of_its_own_a_document_is_called_by_its_first_heading_or_its_file() -> None:
    assert build_document("a/b.md", "markdown", b"x\n\n## Two\ny").title == "Two"
    assert build_document("a/b.md", "markdown", b"x").title == "b.md"


# -- long ones ------------------------------------------------------------------------------------------


def test_a_long_section_is_cut_between_paragraphs_or_else_between_sentences() -> None:
    paragraph = "This is a sentence of some words. " * 20
    cut = chunks_of("markdown", "# A\n" + f"{paragraph}\n\n" * 6)
    assert len(cut) > 1
    assert all(chunk.text.startswith("This") and chunk.text.endswith("words.") for chunk in cut)
    assert {each for chunk in cut for each in chunk.text.split("\n\n")} <= {paragraph, paragraph.strip()}
    one = chunks_of("text", "This is a sentence of some words. " * 500)
    assert all(chunk.text.startswith("This") and chunk.text.endswith("words.") for chunk in one)


def test_a_text_without_any_space_is_cut_all_the_same() -> None:
    assert "".join(chunk.text for chunk in chunks_of("text", "x" * 10_001)) == "x" * 10_001


def test_code_is_cut_before_what_is_not_indented() -> None:
    text = "".join(
        f"def f{number}():\n" + "    pass  # what it is for\n\n" * 10 + "\n" for number in range(40)
    )
    assert all(chunk.text.startswith("def f") for chunk in chunks_of("code", text))


# -- other kinds of text -------------------------------------------------------------------------------


def test_restructured_text_has_levels_by_the_order_in_which_their_lines_appear() -> None:
    text = (
        "=====\nTitle\n=====\n\nintro\n\nFirst :ref:`part`\n------------------\n\na\n\n"
        "Deeper\n~~~~~~\n\nb\n\n"
        "Second\n------\n\nc\n\n.. note::\n\n    Not one\n    -------\n"
    )
    assert told("rst", text) == [
        (["Title"], "intro"),
        (["Title", "First part"], "a"),
        (["Title", "First part", "Deeper"], "b"),
        (["Title", "Second"], "c\n\n.. note::\n\n    Not one\n    -------"),
    ]


def test_a_heading_that_follows_itself_begins_another_section() -> None:
    assert told("html", "<h2>Example</h2><p>one<h2>Example</h2><p>two<p>three") == [
        (["Example"], "one"),
        (["Example"], "two\n\nthree"),
    ]
    assert told("rst", "Note\n====\n\nNote\n====\n\nlast\n") == [
        (["Note"], "Note\n===="),
        (["Note"], "last"),
    ]


def test_rows_are_headed_by_the_names_of_the_columns() -> None:
    rows = "name,city\n" + "".join(f'"Ann {number}\nLee",Rome\n' for number in range(300))
    cut = chunks_of("csv", rows)
    assert len(cut) > 1
    assert all(chunk.headings == ["name, city"] and chunk.text.startswith('"Ann') for chunk in cut)
    assert cut[0].first_line == 2


def test_a_notebook_has_the_places_of_its_cells_and_nothing_of_its_outputs() -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Top\n", "intro"]},
        {"cell_type": "code", "source": "x = 1", "outputs": [{"text": "SECRET"}]},
        {"cell_type": "markdown", "source": "## Sub"},
        {"cell_type": "code", "source": ["y = 2"]},
    ]
    data = json.dumps({"metadata": {"a": [1, {}]}, "cells": cells, "nbformat": 4}, indent=1).encode()
    document = build_document("n.ipynb", "notebook", data)
    assert document.title == "Top"
    assert [(chunk.headings, chunk.text) for chunk in document.chunks] == [
        (["Top"], "intro\n\nx = 1"),
        (["Top", "Sub"], "## Sub\n\ny = 2"),
    ]
    last = document.chunks[-1]
    assert b'"y = 2"' in data[last.first_byte : last.last_byte]
    assert last.last_line > last.first_line > 1


def test_a_cell_of_a_notebook_without_text_has_no_word_of_python() -> None:
    sources = ("words", None, True, ["a ", None, True, "b"], {"x": None})
    cells = [{"cell_type": "code", "source": source} for source in sources]
    chunks = chunks_of("notebook", json.dumps({"cells": cells}).encode())
    assert "\n\n".join(chunk.text for chunk in chunks) == "words\n\na b"


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"cells": 1}', '{"cells": [', "[" * 100_000, '{"a":' * 100_000]
)
def test_what_is_no_notebook_is_told_so(text: str) -> None:
    with pytest.raises(UnreadableDocumentError, match="no notebook"):
        build_document("n.ipynb", "notebook", text.encode())


def test_html_is_what_is_shown_of_it() -> None:
    text = (
        "<!DOCTYPE html><html><head><title>A &amp; B</title><style>p{}</style></head><body>\n"
        "<h1>The <b>top</b></h1><p>Some\n   words &lt;here&gt;<script>if (a<b) c()</script></p>\n"
        "<pre>a\n  b</pre><h2>Sub</h2><ul>"
        "<li>one<li>two</ul>"
        "<table><tr><td>1</td><td>2</td></tr></table></body></html>"
    )
    document = build_document("p.html", "html", text.encode())
    assert document.title == "A & B"
    first, second = document.chunks
    assert (first.headings, first.text) == (["The top"], "Some words <here>\n\na\n  b")
    assert (second.headings, second.text) == (["The top", "Sub"], "one\n\ntwo\n\n1 \t2")
    assert (first.first_line, first.last_line) == (2, 5)
    assert text[second.first_byte : second.last_byte].startswith("one<li>two</ul>")


# -- containers ------------------------------------------------------------------------------------------

_COMPATIBLE = "http://schemas.openxmlformats.org/markup-compatibility/2006"
_W = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'


def word_file(body: str, head: str = "", encoding: str = "utf-8", **parts: str) -> bytes:
    """Return a DOCX file of a body and other parts, such as ``footnotes``, in their own words."""
    file = io.BytesIO()
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        archive.writestr(
            "word/styles.xml",
            f'<w:styles {_W}><w:style w:styleId="berschrift1">'
            '<w:name w:val="heading 1"/></w:style></w:styles>',
        )
        text = f"{head}<w:document {_W}><w:body>{body}</w:body></w:document>"
        archive.writestr("word/document.xml", text.encode(encoding))
        for name, content in parts.items():
            archive.writestr(f"word/{name}.xml", f"<w:part {_W}>{content}</w:part>")
    return file.getvalue()


def test_a_word_document_has_headings_by_their_styles_in_any_language() -> None:
    body = (
        '<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Ziel</w:t></w:r></w:p>'
        "<w:p><w:r><w:t>Ein </w:t></w:r><w:r><w:t>Satz</w:t><w:tab/><w:t>mehr</w:t></w:r></w:p>"
    )
    (chunk,) = chunks_of("docx", word_file(body))
    assert (chunk.headings, chunk.text, chunk.title) == (["Ziel"], "Ein Satz\tmehr", "Ziel")


def test_the_words_of_a_text_box_are_there_once_and_what_is_embedded_is_not_opened() -> None:
    box = "<w:txbxContent><w:p><w:r><w:t>boxed</w:t></w:r></w:p></w:txbxContent>"
    body = (
        f'<w:p><w:r><w:t>before</w:t></w:r><m:AlternateContent xmlns:m="{_COMPATIBLE}">'
        f"<m:Choice>{box}</m:Choice><m:Fallback>{box}</m:Fallback></m:AlternateContent>"
        "<w:r><w:t> and after</w:t></w:r></w:p>"
    )
    data = io.BytesIO(word_file(body))
    with ZipFile(data, "a") as archive:
        archive.writestr("word/embeddings/inner.docx", word_file("<w:p><w:r><w:t>inner</w:t></w:r></w:p>"))
        archive.writestr("word/embeddings/inner.zip", data.getvalue())
    (chunk,) = chunks_of("docx", data.getvalue())
    assert chunk.text == "before and after\n\nboxed"


def words(*texts: str, more: str = "") -> str:
    return "".join(f"<w:p><w:r><w:t>{text}</w:t>{more}</w:r></w:p>" for text in texts)


def rows(*all_rows: tuple[str, ...]) -> str:
    cells = ("".join(f"<w:tc>{cell or '<w:p/>'}</w:tc>" for cell in row) for row in all_rows)
    return "<w:tbl>" + "".join(f"<w:tr>{row}</w:tr>" for row in cells) + "</w:tbl>"


@pytest.mark.promise("documents.word")
def test_a_row_of_a_word_table_is_one_line_whatever_its_cells_hold() -> None:
    table = rows(
        (words("Product"), words("Price"), words("Stock")),
        (words("Gizmo", "red"), words("4711 euro"), words("12")),
        (words("Widget"), "", words("7")),
        (words("a|b"), words("|"), words("")),
        (words("Box"), rows((words("inner"), words("table"))), "<w:sdt>" + words("0") + "</w:sdt>"),
        ("", "", ""),
    )
    (chunk,) = chunks_of("docx", word_file(words("Prices") + table + words("Without tax")))
    assert chunk.text.splitlines() == [
        "Prices",
        "",
        "Product | Price | Stock",
        "Gizmo red | 4711 euro | 12",
        "Widget |  | 7",
        r"a\|b | \| |",
        "Box | inner table | 0",
        "",
        "Without tax",
    ]


def test_rows_of_a_long_word_table_are_not_cut() -> None:
    table = rows(
        *((words(f"name{number}"), words("Of it. " * 13), words(f"end{number}")) for number in range(60))
    )
    lines = [
        line for chunk in chunks_of("docx", word_file(table)) for line in chunk.text.splitlines() if line
    ]
    assert [line.split(" | ")[::2] for line in lines] == [[f"name{n}", f"end{n}"] for n in range(60)]


@pytest.mark.promise("documents.word")
def test_each_part_of_a_long_word_table_is_headed_by_its_columns_as_in_csv() -> None:
    heading = '<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Stock</w:t></w:r></w:p>'
    names, others = ("Product", "Price | tax"), [(f"thing{number}", "Of it. " * 40) for number in range(30)]
    table = rows(*(tuple(words(cell) for cell in row) for row in (names, *others)))
    first, *parts, last = chunks_of("docx", word_file(heading + words("Before") + table + words("After")))
    assert ((first.headings, first.text), (last.headings, last.text)) == (
        (["Stock"], "Before"),
        (["Stock"], "After"),
    )
    assert len(parts) > 3
    csv = chunks_of("csv", "\n".join(";".join(row) for row in (names, *others)))
    assert [each.headings for each in parts] == [["Stock", *csv[0].headings]] * len(parts)
    assert csv[0].headings == ["Product, Price | tax"]


def test_a_word_table_of_one_column_is_paragraphs_with_headings() -> None:
    heading = '<w:p><w:pPr><w:pStyle w:val="berschrift1"/></w:pPr><w:r><w:t>Ziel</w:t></w:r></w:p>'
    (chunk,) = chunks_of("docx", word_file(rows((heading + words("one", "two"),))))
    assert (chunk.headings, chunk.text) == (["Ziel"], "one\n\ntwo")


@pytest.mark.promise("documents.word")
def test_notes_of_word_documents_follow_what_they_belong_to_and_margins_come_last() -> None:
    body = (
        words("Without tax.", more='<w:footnoteReference w:id="2"/><w:endnoteReference w:id="2"/>')
        + rows((words("a", more='<w:commentReference w:id="0"/>'), words("b")))
        + words("After.")
    )
    data = word_file(
        body,
        footnotes=f'<w:footnote w:type="separator" w:id="0">{words("line")}</w:footnote>'
        f'<w:footnote w:id="2">{words("Nineteen", "percent")}</w:footnote>'
        f'<w:footnote w:id="3">{words("Nowhere")}</w:footnote>',
        endnotes=f'<w:endnote w:id="2">{words("At the end")}</w:endnote>',
        comments=f'<w:comment w:id="0" w:author="Ann">{words("Really?")}</w:comment>',
        header1=words("Draft"),
        header2=words("Draft"),
        footer1=words("Page 1"),
    )
    (chunk,) = chunks_of("docx", data)
    assert chunk.text.split("\n\n") == [
        "Without tax.",
        "Footnote: Nineteen percent",
        "Endnote: At the end",
        "a | b",
        "Comment by Ann: Really?",
        "After.",
        "Footnote: Nowhere",
        "Header: Draft",
        "Footer: Page 1",
    ]


def test_what_was_moved_or_deleted_in_a_word_document_is_read_once_and_formulas_are() -> None:
    math = "http://schemas.openxmlformats.org/officeDocument/2006/math"
    body = (
        "<w:p><w:moveFrom><w:r><w:t>twice</w:t></w:r></w:moveFrom>"
        "<w:del><w:r><w:delText>gone</w:delText></w:r></w:del><w:moveTo><w:r><w:t>once</w:t></w:r></w:moveTo>"
        f'<m:oMath xmlns:m="{math}"><m:r><m:t>=x²</m:t></m:r></m:oMath></w:p>'
    )
    (chunk,) = chunks_of("docx", word_file(body))
    assert chunk.text == "once=x²"


def test_a_word_document_of_the_strict_kind_is_read() -> None:
    data = io.BytesIO()
    with ZipFile(data, "w") as archive:
        w = 'xmlns:w="http://purl.oclc.org/ooxml/wordprocessingml/main"'
        archive.writestr(
            "word/document2.xml", f"<w:document {w}><w:body>{words('strict')}</w:body></w:document>"
        )
    assert chunks_of("docx", data.getvalue())[0].text == "strict"


@pytest.mark.promise("documents.word")
def test_parts_of_a_word_document_that_are_not_read_are_named() -> None:
    data = io.BytesIO(word_file(words("x"), footnotes="", settings="", commentsExtended=""))
    with ZipFile(data, "a") as archive:
        for name in (
            *("[Content_Types].xml", "_rels/.rels", "word/_rels/document.xml.rels", "docProps/core.xml"),
            *("word/theme/theme1.xml", "word/media/image1.png", "word/media/image2.png"),
            *("word/charts/chart1.xml", "word/embeddings/a.xlsx", "word/afchunk.mht"),
        ):
            archive.writestr(name, "")
    assert unread_parts(data.getvalue()) == [
        "word/afchunk.mht",
        "word/charts",
        "word/embeddings",
        "word/media",
    ]


@pytest.mark.parametrize(
    "data",
    [
        b"PK nothing",
        word_file("")[:-30],
        word_file("", '<!DOCTYPE a [<!ENTITY b "c">]>'),
        word_file("", '<!DOCTYPE a [<!ENTITY b "c">]>', "utf-16"),
        word_file("<w:p>" + " " * (65 << 20)),
        word_file("", **{f"header{n}": " " * (22 << 20) for n in range(3)}),
        word_file("<w:p>"),
    ],
    ids=["none", "cut", "entities", "entities in UTF-16", "bomb", "bombs", "broken"],
)
def test_what_is_no_word_document_is_told_so(data: bytes) -> None:
    with pytest.raises(UnreadableDocumentError, match=r"no Word document|when it is unpacked"):
        build_document("a.docx", "docx", data)


@pytest.mark.slow
def test_a_pdf_is_found_by_its_pages() -> None:
    document = build_document("a.pdf", "pdf", pdf_file("First words", "", "Third words"))
    assert [(chunk.page, chunk.text) for chunk in document.chunks] == [(1, "First words"), (3, "Third words")]


def test_a_pdf_without_text_is_named_as_such() -> None:
    with pytest.raises(UnreadableDocumentError, match="no text: its pages may be pictures"):
        build_document("a.pdf", "pdf", pdf_file("", ""))


@given(st.binary(max_size=200), st.integers(0, 600))
def test_a_broken_pdf_is_told_so(junk: bytes, place: int) -> None:
    data = pdf_file("First words")
    try:
        build_document("a.pdf", "pdf", data[:place] + junk + data[place + len(junk) :])
    except UnreadableDocumentError:
        return


# -- encodings and kinds --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", b""), ("cp1252", b""), ("utf-16-le", b"\xff\xfe"), ("utf-16-be", b"\xfe\xff")],
)
def test_encodings_are_told_apart_and_places_are_those_of_the_bytes(encoding: str, mark: bytes) -> None:
    data = mark + "# Größe\n\n“Fünf” — süß\n\n# B\n\nübel".encode(encoding)
    first, second = chunks_of("markdown", data)
    assert (first.headings, first.text, second.text) == (["Größe"], "“Fünf” — süß", "übel")
    assert data[second.first_byte : second.last_byte].decode(encoding) == "übel"


def test_one_broken_byte_spoils_no_other() -> None:
    (chunk,) = chunks_of("text", "süß und für ".encode() + b"\xff" + " über".encode())
    assert chunk.text == "süß und für \ufffd über"


@pytest.mark.parametrize(
    ("name", "head", "kind"),
    [
        ("a.MD", b"x", "markdown"),
        ("a/README", b"x", "text"),
        (".hidden", b"x", "text"),
        ("a.unknown", b"x", "text"),
        ("a.py", b"import a", "code"),
        ("a.md", b"\0\1", None),
        ("a.md", b"\xff\xfea\0", "markdown"),
        ("a.pdf", b"%PDF-1.7", "pdf"),
        ("a.pdf", b"<html>", None),
        ("a.docx", b"PK\3\4", "docx"),
        ("a.zip", b"PK\3\4\0\0", None),
    ],
)
def test_kinds_are_told_by_name_and_beginning(name: str, head: bytes, kind: Kind | None) -> None:
    assert kind_of(name, head) == kind
