"""Entities in documents: declarations, names found in texts, and suggestions; all functions are pure."""

from greenroom.actors.knowledge.entities.declarations import MANIFESTS as MANIFESTS
from greenroom.actors.knowledge.entities.declarations import parse_declarations as parse_declarations
from greenroom.actors.knowledge.entities.records import (
    UnreadableDeclarationsError as UnreadableDeclarationsError,
)
from greenroom.actors.knowledge.entities.names import EntityName as EntityName
from greenroom.actors.knowledge.entities.names import look_up as look_up
from greenroom.actors.knowledge.entities.manifests import is_manifest as is_manifest
from greenroom.actors.knowledge.entities.manifests import is_third_party as is_third_party
from greenroom.actors.knowledge.entities.manifests import select_libraries as select_libraries
from greenroom.actors.knowledge.entities.matching import NAMES as NAMES
from greenroom.actors.knowledge.entities.matching import EntityMatcher as EntityMatcher
from greenroom.actors.knowledge.entities.matching import MatchedNames as MatchedNames
from greenroom.actors.knowledge.entities.names import fold as fold
from greenroom.actors.knowledge.entities.suggestions import USUAL_COUNT as USUAL_COUNT
from greenroom.actors.knowledge.entities.suggestions import NameCounter as NameCounter
