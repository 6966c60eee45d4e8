"""The library onnxruntime, which is imported here alone: told first to keep to itself that it is used.

Else a build such as 1.32 gives the machine an id, keeps a database of events in the user's cache, and has
an address of its makers to send them to. It looks for the variable when it is imported, and only then.
"""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as onnxruntime  # type: ignore[import-untyped]
