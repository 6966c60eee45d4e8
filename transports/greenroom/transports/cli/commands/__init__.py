"""What each command of `greenroom` does; `greenroom.transports.cli` says which there are."""
