"""What is raised for declarations that cannot be read."""

from greenroom.runtime import GreenroomError


class UnreadableDeclarationsError(GreenroomError):
    """A file declares no entities that could be understood; the sentence says which, and why."""
