"""The errors of files whose text is not read."""


class UnreadableDocumentError(Exception):
    """A file has no text that could be found; the sentence says why, beginning with "it"."""


class MissingReaderError(UnreadableDocumentError):
    """What reads such files is not installed here: the sentence says nothing of the file, but what to do."""
