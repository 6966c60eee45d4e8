"""Entities that documents speak of: declarations, names found in texts, suggestions. Pure functions."""

from greenroom.actors.entities.declarations import MANIFESTS as MANIFESTS
from greenroom.actors.entities.declarations import declarations_in as declarations_in
from greenroom.actors.entities.errors import UnreadableDeclarationsError as UnreadableDeclarationsError
from greenroom.actors.entities.lookup import EntityName as EntityName
from greenroom.actors.entities.lookup import look_up as look_up
from greenroom.actors.entities.manifests import is_manifest as is_manifest
from greenroom.actors.entities.manifests import is_of_others as is_of_others
from greenroom.actors.entities.manifests import libraries_in as libraries_in
from greenroom.actors.entities.matching import NAMES as NAMES
from greenroom.actors.entities.matching import EntityMatcher as EntityMatcher
from greenroom.actors.entities.matching import MatchedNames as MatchedNames
from greenroom.actors.entities.names import folded as folded
from greenroom.actors.entities.suggestions import USUAL_COUNT as USUAL_COUNT
from greenroom.actors.entities.suggestions import NameCounter as NameCounter
