# The quick loop: what says within a minute whether a change holds.

export PATH := justfile_directory() / ".venv/bin:" + env("PATH")

# Format, lint, types and the fast tests.
check: format lint types test

format:
    ruff format .

lint:
    ruff check .

types:
    mypy

# The tests that start no program and take no minute; `just test tests/test_x.py` runs those of one file.
test *arguments="-m 'not slow'":
    pytest -q -p no:cacheprovider --numprocesses logical --dist worksteal {{ arguments }}

# Write the reference pages and the lists that tests compare with.
generate:
    python docs/generate.py
    python tests/support/stored_names.py

# Everything that must hold, on a fresh machine.
ci:
    .ci/run
