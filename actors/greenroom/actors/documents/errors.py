"""The error of files that are no documents."""


class UnreadableDocumentError(Exception):
    """A file has no text that could be found; the sentence says why, beginning with "it"."""
