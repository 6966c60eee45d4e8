"""Actors on trio that own their state in LMDB.

An actor is addressed by (kind, key) and exists when it is addressed. It handles one
message at a time; the effects of a message commit together or not at all; a reply
leaves when everything it could have seen is on disk. The runtime knows neither MCP
nor what a session is.

    async with open_runtime(folder, actors=[Counter]) as runtime:
        count = await runtime.ask(Address("counter", "visits"), Increment(by=1))
"""

from greenroom.runtime._actor import Actor as Actor
from greenroom.runtime._actor import Message as Message
from greenroom.runtime._actor import Slices as Slices
from greenroom.runtime._actor import handles as handles
from greenroom.runtime._actor import reply_type as reply_type
from greenroom.runtime._address import Address as Address
from greenroom.runtime._backup import BackupInfo as BackupInfo
from greenroom.runtime._backup import RestoreInfo as RestoreInfo
from greenroom.runtime._backup import VerifyReport as VerifyReport
from greenroom.runtime._backup import backup as backup
from greenroom.runtime._backup import restore as restore
from greenroom.runtime._backup import verify as verify
from greenroom.runtime._bus import Subscriber as Subscriber
from greenroom.runtime._check import TableReport as TableReport
from greenroom.runtime._clock import Clock as Clock
from greenroom.runtime._clock import SystemClock as SystemClock
from greenroom.runtime._codec import PlainCodec as PlainCodec
from greenroom.runtime._codec import RecordCodec as RecordCodec
from greenroom.runtime._commit import Committer as Committer
from greenroom.runtime._commit import InlineCommitter as InlineCommitter
from greenroom.runtime._commit import ThreadCommitter as ThreadCommitter
from greenroom.runtime._context import Context as Context
from greenroom.runtime._doors import Doors as Doors
from greenroom.runtime._encryption import Encryption as Encryption
from greenroom.runtime._encryption import key_source as key_source
from greenroom.runtime._errors import ActorFailedError as ActorFailedError
from greenroom.runtime._errors import ActorSetAsideError as ActorSetAsideError
from greenroom.runtime._errors import DeadlineExceededError as DeadlineExceededError
from greenroom.runtime._errors import GreenroomError as GreenroomError
from greenroom.runtime._errors import IdempotencyConflictError as IdempotencyConflictError
from greenroom.runtime._errors import OverloadedError as OverloadedError
from greenroom.runtime._errors import Refusal as Refusal
from greenroom.runtime._errors import RuntimeClosedError as RuntimeClosedError
from greenroom.runtime._errors import StorageFullError as StorageFullError
from greenroom.runtime._errors import StoreDamagedError as StoreDamagedError
from greenroom.runtime._errors import StoreError as StoreError
from greenroom.runtime._errors import StoreFailedError as StoreFailedError
from greenroom.runtime._errors import StoreIdleError as StoreIdleError
from greenroom.runtime._errors import StoreKeyError as StoreKeyError
from greenroom.runtime._errors import StoreOwnedError as StoreOwnedError
from greenroom.runtime._errors import StoreTooNewError as StoreTooNewError
from greenroom.runtime._errors import UnknownKindError as UnknownKindError
from greenroom.runtime._histogram import Distribution as Distribution
from greenroom.runtime._journal import Checkpoint as Checkpoint
from greenroom.runtime._journal import Entry as Entry
from greenroom.runtime._journal import Journal as Journal
from greenroom.runtime._journal_check import Finding as Finding
from greenroom.runtime._journal_check import JournalReport as JournalReport
from greenroom.runtime._lasting import Again as Again
from greenroom.runtime._mailbox import Idempotency as Idempotency
from greenroom.runtime._mailbox import Result as Result
from greenroom.runtime._opening import open_runtime as open_runtime
from greenroom.runtime._options import RuntimeOptions as RuntimeOptions
from greenroom.runtime._posted import Posted as Posted
from greenroom.runtime._procedure import Desk as Desk
from greenroom.runtime._procedure import Procedure as Procedure
from greenroom.runtime._query import IndexReader as IndexReader
from greenroom.runtime._query import Query as Query
from greenroom.runtime._renewing import renew_secret as renew_secret
from greenroom.runtime._repair import MissingRange as MissingRange
from greenroom.runtime._repair import RepairInfo as RepairInfo
from greenroom.runtime._repair import repair as repair
from greenroom.runtime._rewriting import EncryptInfo as EncryptInfo
from greenroom.runtime._rewriting import encrypt as encrypt
from greenroom.runtime._rewriting import rekey as rekey
from greenroom.runtime._rows import Index as Index
from greenroom.runtime._rows import Row as Row
from greenroom.runtime._runtime import Runtime as Runtime
from greenroom.runtime._secrets import Secret as Secret
from greenroom.runtime._seen import Break as Break
from greenroom.runtime._statistics import ActorStatistics as ActorStatistics
from greenroom.runtime._statistics import BusStatistics as BusStatistics
from greenroom.runtime._statistics import CommitStatistics as CommitStatistics
from greenroom.runtime._statistics import DispatcherStatistics as DispatcherStatistics
from greenroom.runtime._statistics import MessageStatistics as MessageStatistics
from greenroom.runtime._statistics import RelayStatistics as RelayStatistics
from greenroom.runtime._statistics import RuntimeStatistics as RuntimeStatistics
from greenroom.runtime._stopped import stopped_statistics as stopped_statistics
from greenroom.runtime._store import Store as Store
from greenroom.runtime._store import StoreStatistics as StoreStatistics
from greenroom.runtime._supervision import Group as Group
from greenroom.runtime._supervision import Strategy as Strategy
from greenroom.runtime._veil import Names as Names
from greenroom.runtime._work import Work as Work
from greenroom.runtime.relay._shared import SharedRuntime as SharedRuntime
from greenroom.runtime.relay._shared import open_shared_runtime as open_shared_runtime
