"""Words of command lines that say nothing of anybody: programs, their subcommands, options with one dash."""

from __future__ import annotations

from typing import Final


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


PROGRAMS: Final = _words("""
    ack ansible apt apt-get awk aws az bash bat black brew bun bundle bzip2 cargo cat cd chmod chown clang
    clang-format clear cmake code column comm composer conda convert cp crontab ctest curl cut date dd deno
    df diff dig dirname dnf docker docker-compose dotnet du echo emacs env eslint exit expr fd ffmpeg fg file
    find flake8 free ftp g++ gcc gdb gem gh git go gofmt gradle grep gunzip gzip head helm history htop id
    ifconfig install ip isort jar java javac jest jobs journalctl jq just kill killall kubectl less ln
    locate ls lsof make man mkdir mocha mongo more mount mv mvn mypy mysql nano nc netstat next ninja nmap
    node npm npx nslookup nvim nvm open patch perl php phpunit ping pip pip3 pipx pkill pnpm podman poetry
    pre-commit prettier printenv printf ps psql pwd pylint pyright pytest python python3 r rails rake
    rbenv readlink redis-cli rg rm rmdir rsync ruby ruff rustc rustup scp sed seq service set sh shellcheck
    sleep sort source split sqlite3 ssh stat strace su sudo svn swift sync systemctl tail tar tee terraform
    test time timeout tmux top touch tox tr traceroute tree tsc tshark type ulimit umount uname uniq unzip
    uptime uv uvicorn vagrant valgrind vi vim vitest wait watch wc webpack wget whereis which whoami xargs
    xdg-open yarn yum zcat zip zsh
""")
"""Programs that need not come often before they are remembered by name."""

SUBCOMMANDS: Final = _words("""
    add apply audit auth benchmark bisect blame branch build bump cache check checkout cherry-pick clean
    clippy clone commit compose config container coverage create daemon-reload delete deploy describe dev diff
    disable doc docs down drop edit enable exec explain export fetch fix fmt format generate get grep help
    image images import info init inspect install lint list lock log login logout logs merge migrate mod move
    network new node outdated pack package plan pod pods prune ps publish pull push rebase recreate release
    reload remote remove rename reset restart restore revert revision rm rollback rollout run scale search
    serve service set setup shell show sort stage start stash stats status stop submodule switch sync tag
    test tidy top uninstall unstash up update upgrade validate venv verify version vet view volume watch why
    worktree
""")
"""Subcommands, of whatever program."""

OPTIONS: Final = _words("""
    -delete -empty -exec -iname -jar -maxdepth -mindepth -mtime -name -newer -path -perm -print -regex -size
    -type -version
""")
"""Options of more than three letters behind one dash; all others may be a letter with its value."""

WRAPPERS: Final = _words("builtin command env exec nice nohup npx sudo time timeout xargs")
"""Programs whose first argument is a program."""

SECRETIVE: Final = _words("""
    chpasswd echo export gpg htpasswd login mysqladmin openssl passwd printf read set sshpass su vault
""")
"""Programs whose arguments are never remembered by their words."""

NAMING_OPTIONS: Final = frozenset({("python", "-m"), ("python3", "-m"), ("npx", "-y"), ("uv", "-m")})
"""Programs with an option behind which a program's name is."""
