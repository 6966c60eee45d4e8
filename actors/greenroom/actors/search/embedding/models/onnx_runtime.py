"""Import onnxruntime with its telemetry disabled; nothing else may import it.

With telemetry, a build such as 1.32 gives the machine an id, keeps a database of events in the user's cache,
and can send them to its makers. onnxruntime reads the variable only when it is imported.
"""

import os

os.environ["ORT_DISABLE_TELEMETRY"] = "1"

import onnxruntime as onnxruntime  # type: ignore[import-untyped]
