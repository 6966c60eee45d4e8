# The quick loop: what says within a minute whether a change holds.

# Many containers set it: then each run compiles every test file anew, and each program all of Greenroom.
unexport PYTHONDONTWRITEBYTECODE

export PATH := justfile_directory() / ".venv/bin:" + env("PATH")

# Format, lint, types and the quick part of the tests.
check: format lint types test

format:
    ruff format .

lint:
    ruff check .
    python docs/plain_words.py

types:
    mypy

# The quick part; `just test tests/test_x.py` runs the tests of one file, `just test --all` all there are.
test *arguments:
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
