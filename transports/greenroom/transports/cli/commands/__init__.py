"""What each command of `greenroom` does; `greenroom.transports.ops.cli` says which there are."""
