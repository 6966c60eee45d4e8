"""Entities that documents speak of: declarations, names found in texts, suggestions. Pure functions."""

from greenroom.actors.entities.errors import UnreadableDeclarationsError as UnreadableDeclarationsError
from greenroom.actors.knowledge.entities.declarations import MANIFESTS as MANIFESTS
from greenroom.actors.knowledge.entities.declarations import declarations_in as declarations_in
from greenroom.actors.knowledge.entities.lookup import EntityName as EntityName
from greenroom.actors.knowledge.entities.lookup import look_up as look_up
from greenroom.actors.knowledge.entities.manifests import is_manifest as is_manifest
from greenroom.actors.knowledge.entities.manifests import is_of_others as is_of_others
from greenroom.actors.knowledge.entities.manifests import libraries_in as libraries_in
from greenroom.actors.knowledge.entities.matching import NAMES as NAMES
from greenroom.actors.knowledge.entities.matching import EntityMatcher as EntityMatcher
from greenroom.actors.knowledge.entities.matching import MatchedNames as MatchedNames
from greenroom.actors.knowledge.entities.names import folded as folded
from greenroom.actors.knowledge.entities.suggestions import USUAL_COUNT as USUAL_COUNT
from greenroom.actors.knowledge.entities.suggestions import NameCounter as NameCounter
