# The quick loop: what says within a minute whether a change holds.

# Many containers set it: then each run compiles every test file anew, and each program all of Greenroom.
unexport PYTHONDONTWRITEBYTECODE

export PATH := justfile_directory() / ".venv/bin:" + env("PATH")

# Format, lint, types and the fast tests.
check: format lint types test

format:
    ruff format .

lint:
    ruff check .
    python docs/plain_words.py

types:
    mypy

# The tests that are not slow, with few examples; `just test tests/test_x.py` runs those of one file.
test *arguments="-m 'not slow' --hypothesis-profile quick --numprocesses logical --maxprocesses 4 --dist worksteal":
    pytest -q -p no:cacheprovider {{ arguments }}

# Write the reference pages and the lists that tests compare with.
generate:
    python docs/generate.py
    python tests/support/stored_names.py

# Make the site of the documentation.
site folder="build/site":
    python docs/build_site.py {{ folder }}

# Everything that must hold, on a fresh machine.
ci:
    .ci/run
