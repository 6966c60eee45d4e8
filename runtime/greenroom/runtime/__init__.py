"""Actors on trio that own their state in LMDB.

An actor is addressed by (kind, key) and exists as soon as it is addressed. It handles one message at a time.
The effects of a message commit together or not at all. A reply leaves when everything that it could have seen
is on disk. The runtime knows neither MCP nor sessions.

    async with open_runtime(folder, actors=[Counter]) as runtime:
        count = await runtime.ask(Address("counter", "visits"), Increment(by=1))
"""

from __future__ import annotations

from greenroom.runtime.base.lazy import exports

TYPE_CHECKING = False  # see `lazy`
if TYPE_CHECKING:
    from greenroom.runtime.actor.actor import Actor as Actor
    from greenroom.runtime.actor.actor import handles as handles
    from greenroom.runtime.actor.context import Context as Context
    from greenroom.runtime.actor.message import WAITING as WAITING
    from greenroom.runtime.actor.message import Message as Message
    from greenroom.runtime.actor.message import Replay as Replay
    from greenroom.runtime.actor.message import Slices as Slices
    from greenroom.runtime.actor.message import Variants as Variants
    from greenroom.runtime.actor.message import finish as finish
    from greenroom.runtime.actor.message import reply_type as reply_type
    from greenroom.runtime.actor.message import reply_variants as reply_variants
    from greenroom.runtime.actor.query import IndexReader as IndexReader
    from greenroom.runtime.api.client import Procedure as Procedure
    from greenroom.runtime.api.client import ProcedureContext as ProcedureContext
    from greenroom.runtime.api.client import RuntimeClient as RuntimeClient
    from greenroom.runtime.api.open import CommonConfig as CommonConfig
    from greenroom.runtime.api.open import RuntimeConfig as RuntimeConfig
    from greenroom.runtime.api.open import open_runtime as open_runtime
    from greenroom.runtime.api.runtime import Runtime as Runtime
    from greenroom.runtime.base.address import Address as Address
    from greenroom.runtime.base.clock import Clock as Clock
    from greenroom.runtime.base.clock import SystemClock as SystemClock
    from greenroom.runtime.base.errors import ActorFailedError as ActorFailedError
    from greenroom.runtime.base.errors import ActorQuarantinedError as ActorQuarantinedError
    from greenroom.runtime.base.errors import ConfigurationError as ConfigurationError
    from greenroom.runtime.base.errors import DeadlineExceededError as DeadlineExceededError
    from greenroom.runtime.base.errors import GreenroomError as GreenroomError
    from greenroom.runtime.base.errors import IdempotencyConflictError as IdempotencyConflictError
    from greenroom.runtime.base.errors import InvalidAddressError as InvalidAddressError
    from greenroom.runtime.base.errors import OverloadedError as OverloadedError
    from greenroom.runtime.base.errors import OwnershipLostError as OwnershipLostError
    from greenroom.runtime.base.errors import RecordDamagedError as RecordDamagedError
    from greenroom.runtime.base.errors import Refusal as Refusal
    from greenroom.runtime.base.errors import RuntimeClosedError as RuntimeClosedError
    from greenroom.runtime.base.errors import StorageFullError as StorageFullError
    from greenroom.runtime.base.errors import StoreDamagedError as StoreDamagedError
    from greenroom.runtime.base.errors import StoreError as StoreError
    from greenroom.runtime.base.errors import StoreFailedError as StoreFailedError
    from greenroom.runtime.base.errors import StoreIdleError as StoreIdleError
    from greenroom.runtime.base.errors import StoreKeyError as StoreKeyError
    from greenroom.runtime.base.errors import StoreOwnedError as StoreOwnedError
    from greenroom.runtime.base.errors import StoreTooNewError as StoreTooNewError
    from greenroom.runtime.base.errors import UnknownKindError as UnknownKindError
    from greenroom.runtime.base.options import RuntimeOptions as RuntimeOptions
    from greenroom.runtime.base.statistics import ActorStatistics as ActorStatistics
    from greenroom.runtime.base.statistics import BusStatistics as BusStatistics
    from greenroom.runtime.base.statistics import CommitStatistics as CommitStatistics
    from greenroom.runtime.base.statistics import DispatcherStatistics as DispatcherStatistics
    from greenroom.runtime.base.statistics import Distribution as Distribution
    from greenroom.runtime.base.statistics import MessageStatistics as MessageStatistics
    from greenroom.runtime.base.statistics import RelayStatistics as RelayStatistics
    from greenroom.runtime.base.statistics import RuntimeStatistics as RuntimeStatistics
    from greenroom.runtime.base.statistics import StoreStatistics as StoreStatistics
    from greenroom.runtime.base.options import apply_settings as apply_settings
    from greenroom.runtime.base.options import current_settings as current_settings
    from greenroom.runtime.base.supervision import Group as Group
    from greenroom.runtime.base.supervision import Strategy as Strategy
    from greenroom.runtime.journal.chain import Checkpoint as Checkpoint
    from greenroom.runtime.journal.chain import Journal as Journal
    from greenroom.runtime.journal.chain import JournalRow as JournalRow
    from greenroom.runtime.journal.checkpoints import RollbackGap as RollbackGap
    from greenroom.runtime.journal.secrets import Secret as Secret
    from greenroom.runtime.journal.verify import Finding as Finding
    from greenroom.runtime.journal.verify import JournalReport as JournalReport
    from greenroom.runtime.kernel.callbacks import Ticket as Ticket
    from greenroom.runtime.kernel.mailbox import Idempotency as Idempotency
    from greenroom.runtime.kernel.mailbox import Result as Result
    from greenroom.runtime.kernel.pubsub import Subscriber as Subscriber
    from greenroom.runtime.lmdb.codec import PlainCodec as PlainCodec
    from greenroom.runtime.lmdb.codec import RecordCodec as RecordCodec
    from greenroom.runtime.lmdb.codec import pass_over as pass_over
    from greenroom.runtime.lmdb.encryption import Encryption as Encryption
    from greenroom.runtime.lmdb.encryption import key_source as key_source
    from greenroom.runtime.lmdb.environment import ACTORS as ACTORS
    from greenroom.runtime.lmdb.environment import INDEXES as INDEXES
    from greenroom.runtime.lmdb.environment import META as META
    from greenroom.runtime.lmdb.key_blinding import Names as Names
    from greenroom.runtime.lmdb.keys import Index as Index
    from greenroom.runtime.lmdb.keys import Row as Row
    from greenroom.runtime.lmdb.lock_file import FolderLock as FolderLock
    from greenroom.runtime.lmdb.write_batch import Op as Op
    from greenroom.runtime.lmdb.write_batch import Revocation as Revocation
    from greenroom.runtime.lmdb.write_batch import WriteBatch as WriteBatch
    from greenroom.runtime.maintenance.backup import BackupInfo as BackupInfo
    from greenroom.runtime.maintenance.backup import RestoreInfo as RestoreInfo
    from greenroom.runtime.maintenance.backup import VerifyReport as VerifyReport
    from greenroom.runtime.maintenance.backup import backup as backup
    from greenroom.runtime.maintenance.backup import older_stores as older_stores
    from greenroom.runtime.maintenance.backup import restore as restore
    from greenroom.runtime.maintenance.backup import verify as verify
    from greenroom.runtime.maintenance.damaged_store import MissingRange as MissingRange
    from greenroom.runtime.maintenance.downgrade import downgrade as downgrade
    from greenroom.runtime.maintenance.expunge import ExpungeInfo as ExpungeInfo
    from greenroom.runtime.maintenance.expunge import expunge as expunge
    from greenroom.runtime.maintenance.survey import StoppedStore as StoppedStore
    from greenroom.runtime.maintenance.survey import stopped_statistics as stopped_statistics
    from greenroom.runtime.maintenance.survey import stopped_store as stopped_store
    from greenroom.runtime.maintenance.reencrypt import EncryptInfo as EncryptInfo
    from greenroom.runtime.maintenance.reencrypt import encrypt as encrypt
    from greenroom.runtime.maintenance.reencrypt import rekey as rekey
    from greenroom.runtime.maintenance.reencrypt import renew_secret as renew_secret
    from greenroom.runtime.maintenance.remains import KeptRecords as KeptRecords
    from greenroom.runtime.maintenance.remains import Remains as Remains
    from greenroom.runtime.maintenance.remains import RepairRule as RepairRule
    from greenroom.runtime.maintenance.repair import Losses as Losses
    from greenroom.runtime.maintenance.repair import RepairInfo as RepairInfo
    from greenroom.runtime.maintenance.repair import Restate as Restate
    from greenroom.runtime.maintenance.repair import repair as repair
    from greenroom.runtime.sharing.runtime import SharedRuntime as SharedRuntime
    from greenroom.runtime.sharing.runtime import open_shared_runtime as open_shared_runtime
    from greenroom.runtime.store.committer import Committer as Committer
    from greenroom.runtime.store.committer import InlineCommitter as InlineCommitter
    from greenroom.runtime.store.committer import ThreadCommitter as ThreadCommitter
    from greenroom.runtime.store.integrity import TableReport as TableReport
    from greenroom.runtime.store.integrity import check_store as check_store
    from greenroom.runtime.store.store import Store as Store

    __version__: str
else:  # hidden from type checkers, which would then accept any name
    __getattr__, __dir__ = exports(__name__)
