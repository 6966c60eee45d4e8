"""How many tokens of a language model a text is, about.

Each model counts differently, and no model's tokenizer is at hand. A token is four bytes of
UTF-8 here: English prose has some 4.2 to a token in today's models and JSON some 3; a letter of Greek or
Cyrillic has two bytes, a Chinese character three, which errs on the side of too many tokens.
"""

from __future__ import annotations

BYTES_PER_TOKEN = 4


def estimate_tokens(text: str | bytes) -> int:
    """Return about how many tokens a text is: its bytes in UTF-8 by four, rounded up."""
    size = (
        len(text) if isinstance(text, bytes) or text.isascii() else len(text.encode(errors="surrogatepass"))
    )
    return tokens_of_size(size)


def tokens_of_size(size: int) -> int:
    """Return about how many tokens so many bytes of UTF-8 are."""
    return -(-size // BYTES_PER_TOKEN)
