"""The LMDB files: keys, records, encryption, snapshots and write batches."""
