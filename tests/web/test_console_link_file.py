"""`greenroom console` hands its link to a browser in a file, and in no argument."""

from __future__ import annotations

import os
import re
import signal
import stat
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
import trio
from sockets.test_http_process import guests_at, server
from support.api import Browser
from support.programs import Program, running

from greenroom.transports.base import exit_codes
from greenroom.transports.web.rest.link_files import LinkFiles

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

pytestmark = [pytest.mark.slow, pytest.mark.promise("console.link-file")]

CAME = "the browser came"
LINK = re.compile(r'href="(http://127\.0\.0\.1:\d+/[^"]+/login/[^"]+)"')


class OwnBrowser:
    """A program in the place of a browser, which keeps its arguments and waits.

    Attributes:
        environment: By which commands find it.
    """

    def __init__(self, home: Path, *lines: str, name: str = "browser") -> None:
        self.seen = home / "arguments"
        script = home / name
        said = [f'printf "%s\\n" "$@" > {self.seen}', f"echo {CAME}"]
        script.write_text("\n".join(["#!/bin/sh", *(lines or said)]) + "\n")
        script.chmod(0o755)
        self.environment: dict[str, Any] = {"BROWSER": f"{script} %s", "DISPLAY": ":0", "WAYLAND_DISPLAY": ""}

    def file(self) -> Path:
        """Return the file that it was given the address of."""
        (address,) = self.seen.read_text().split()
        at = urlsplit(address)
        assert (at.scheme, at.netloc) == ("file", "")
        return Path(unquote(at.path))


@asynccontextmanager
async def console(home: Path, browser: OwnBrowser, *flags: str) -> AsyncIterator[Program]:
    arguments = ("console", "--data", str(home / "store"), *flags)
    async with running(home, *arguments, **browser.environment) as program:
        yield program


def files_in(home: Path) -> list[Path]:
    return list(home.rglob("links/*"))


def link_in(file: Path) -> str:
    found = LINK.search(file.read_text())
    assert found is not None
    return found[1]


async def log_in(link: str) -> int:
    """Log in by a link; return the status."""
    at = urlsplit(link)
    assert at.port is not None
    below, _, token = at.path.partition("/login/")
    async with guests_at(at.port) as (guest,):
        browser = Browser(guest, below)
        browser.headers |= {"host": at.netloc, "origin": f"http://{at.netloc}"}
        return (await browser.log_in(link=token)).status


async def test_a_browser_of_a_server_gets_a_file_that_goes_with_the_link(tmp_path: Path) -> None:
    browser = OwnBrowser(tmp_path)
    async with server(tmp_path), console(tmp_path, browser) as program:
        assert await program.end() == exit_codes.OK
        file = browser.file()
        assert "/login/" not in program.printed
        status, folder = file.stat(), file.parent.stat()
        assert (stat.S_IMODE(status.st_mode), stat.S_IMODE(folder.st_mode)) == (0o600, 0o700)
        assert (status.st_uid, status.st_nlink) == (os.geteuid(), 1)
        store = tmp_path / "store"
        assert store not in file.parents
        assert await log_in(link_in(file)) == 200
        assert not file.exists()


async def test_a_link_that_is_not_used_stays_in_a_file_until_its_server_ends(tmp_path: Path) -> None:
    browser = OwnBrowser(tmp_path)
    async with server(tmp_path) as (here, _):
        async with console(tmp_path, browser) as program:
            assert await program.end() == exit_codes.OK
        assert browser.file().exists()
        here.process.terminate()
        assert await here.process.wait() == 0
        assert not browser.file().exists()


async def test_a_command_that_serves_removes_its_file_when_it_is_interrupted(tmp_path: Path) -> None:
    async with server(tmp_path) as (here, _):  # which makes the store
        here.process.terminate()
        await here.process.wait()
    browser = OwnBrowser(tmp_path)
    async with console(tmp_path, browser) as program:
        await program.until(CAME)
        file = browser.file()
        assert link_in(file)
        assert await program.interrupt() == exit_codes.OK
        assert not file.exists()


async def test_what_a_killed_server_left_goes_when_the_next_one_starts(tmp_path: Path) -> None:
    browser = OwnBrowser(tmp_path)
    async with server(tmp_path) as (here, _):
        async with console(tmp_path, browser) as program:
            assert await program.end() == exit_codes.OK
        here.process.send_signal(signal.SIGKILL)
        await here.process.wait()
    file = browser.file()
    assert file.exists()
    a_minute_ago = time.time() - 61
    os.utime(file, (a_minute_ago, a_minute_ago))
    async with server(tmp_path) as (_, port), guests_at(port) as (guest,):
        while file.exists():
            assert (await guest.ask("GET", "/healthz")).status == 200


UNABLE = {
    "snap": ('exec /snap/bin/firefox "$@"',),
    "snap run": ('exec snap run chromium "$@"',),
    "flatpak": ('exec flatpak run --file-forwarding org.mozilla.firefox @@u "$@" @@',),
    "windows": ('exec "/mnt/c/Program Files/Mozilla Firefox/firefox.exe" "$@"',),
    "remote editor": ('exec node /opt/vscode-server/cli.js --openExternal "$@"',),
    "none": ("exit 1",),
}


@pytest.mark.parametrize("lines", UNABLE.values(), ids=UNABLE)
async def test_for_a_browser_that_cannot_read_the_file_the_address_is_printed(
    tmp_path: Path, lines: tuple[str, ...]
) -> None:
    browser = OwnBrowser(tmp_path, *lines)
    async with server(tmp_path), console(tmp_path, browser) as program:
        assert await program.end() == exit_codes.OK
        found = re.search(r"^http://\S+/login/\S+$", program.printed, re.MULTILINE)
        assert found is not None
        assert await log_in(found[0]) == 200
        assert not files_in(tmp_path)


OTHERS = {
    "in a folder of snap": ({}, "snap/bin/firefox %s"),
    "flatpak run": ({}, "flatpak run org.mozilla.firefox %s"),
    "wslview": ({}, "wslview %s"),
    "of windows": ({}, "firefox.exe %s"),
    "in wsl": ({"WSL_DISTRO_NAME": "Ubuntu"}, "own %s"),
    "in a sandbox": ({"SNAP": "/snap/code/1"}, "own %s"),
}


@pytest.mark.parametrize(("more", "command"), OTHERS.values(), ids=OTHERS)
async def test_a_browser_is_known_by_its_name_and_where_it_is(
    tmp_path: Path, more: dict[str, Any], command: str
) -> None:
    program = tmp_path / command.split(maxsplit=1)[0]
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(f"#!/bin/sh\necho > {tmp_path / 'ran'}\n")
    program.chmod(0o755)
    chosen: dict[str, Any] = {"BROWSER": command, "DISPLAY": ":0", "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    arguments = ("console", "--data", str(tmp_path / "store"))
    async with server(tmp_path), running(tmp_path, *arguments, **chosen, **more) as console_run:
        assert await console_run.end() == exit_codes.OK
        assert "/login/" in console_run.printed
        assert not (tmp_path / "ran").exists()
        assert not files_in(tmp_path)


ENTRIES = {
    "snap": "env BAMF_DESKTOP_FILE_HINT=/x/firefox.desktop /snap/bin/firefox %u",
    "flatpak": "/usr/bin/flatpak run --branch=stable org.mozilla.firefox @@u %u @@",
    "windows": "/usr/bin/wslview %u",
}


@pytest.mark.quick
@pytest.mark.parametrize("command", ENTRIES.values(), ids=ENTRIES)
async def test_what_the_desktop_opens_pages_with_is_looked_at(tmp_path: Path, command: str) -> None:
    programs, entries = tmp_path / "bin", tmp_path / "share" / "applications"
    programs.mkdir()
    entries.mkdir(parents=True)
    (entries / "own.desktop").write_text(f"[Desktop Entry]\nType=Application\nName=x\nExec={command}\n")
    opened = tmp_path / "opened"
    for name, line in {"xdg-mime": "echo own.desktop", "xdg-open": f'echo "$@" >> {opened}'}.items():
        (programs / name).write_text(f"#!/bin/sh\n{line}\n")
        (programs / name).chmod(0o755)
    desktop: dict[str, Any] = {
        "DISPLAY": ":0",
        "PATH": f"{programs}:{os.environ['PATH']}",
        "XDG_DATA_HOME": str(tmp_path / "share"),
        "BROWSER": "xdg-open",
    }
    arguments = ("console", "--data", str(tmp_path / "store"))
    async with server(tmp_path), running(tmp_path, *arguments, **desktop) as program:
        assert await program.end() == exit_codes.OK
        assert "/login/" in program.printed
        assert not opened.exists()
    (entries / "own.desktop").write_text("[Desktop Entry]\nType=Application\nName=x\nExec=/usr/bin/own %u\n")
    async with server(tmp_path), running(tmp_path, *arguments, **desktop) as program:
        assert await program.end() == exit_codes.OK
        assert re.fullmatch("file:///[^ ]+/links/[0-9a-f]+[.]html\n", opened.read_text())


@pytest.mark.skipif(sys.platform != "linux", reason="there is no /proc")
async def test_no_program_that_is_run_has_the_link_or_the_path_in_its_arguments(tmp_path: Path) -> None:
    seen, arguments = tmp_path / "all", tmp_path / "arguments"
    every = f'for each in /proc/[0-9]*; do tr "\\0" " " < $each/cmdline; done > {seen} 2> {tmp_path}/gone'
    browser = OwnBrowser(tmp_path, f'printf "%s\\n" "$@" > {arguments}', every, "exit 0")
    async with server(tmp_path), console(tmp_path, browser) as program:
        assert await program.end() == exit_codes.OK
        link = urlsplit(link_in(browser.file()))
        below, _, token = link.path.partition("/login/")
        text = seen.read_text(errors="replace")
        assert str(browser.file()) in text
        assert token not in text
        assert below not in text


async def test_a_folder_that_others_may_change_gets_no_file_and_keeps_what_it_has(tmp_path: Path) -> None:
    site = tmp_path / "site"
    site.mkdir()
    page = site / ("a" * 32 + ".html")
    page.write_text("mine")
    os.utime(page, (0, 0))
    secrets = tmp_path / "secrets"
    secrets.mkdir(0o700)
    (secrets / "links").symlink_to(site)
    flags = ("--secrets", str(secrets))
    browser = OwnBrowser(tmp_path)
    async with server(tmp_path, *flags), console(tmp_path, browser, *flags) as program:
        assert await program.end() == exit_codes.OK
        assert "/login/" in program.printed
        assert not browser.seen.exists()
    assert [(each.name, each.read_text()) for each in site.iterdir()] == [(page.name, "mine")]
    (secrets / "links").unlink()
    (secrets / "links").mkdir()
    (secrets / "links").chmod(0o750)
    async with server(tmp_path, *flags), console(tmp_path, browser, *flags) as program:
        assert await program.end() == exit_codes.OK
        assert "/login/" in program.printed
        assert not list((secrets / "links").iterdir())


@pytest.mark.usefixtures("autojump_clock")
async def test_a_file_goes_after_its_time_and_so_does_what_a_killed_server_left(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = Path("secrets", "links")
    killed = LinkFiles(folder, 60.0).write("http://127.0.0.1:8080/x/login/killed")
    assert killed is not None
    files = LinkFiles(folder, 60.0)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(files.run)
        await trio.sleep(20)
        first, second = (files.write(f"http://127.0.0.1:8080/x/login/{each}") for each in ("a", "b"))
        assert first is not None
        assert second is not None
        assert first.is_absolute()
        files.remove_used("b")
        files.remove_used("unknown")
        assert (first.exists(), second.exists(), killed.exists()) == (True, False, True)
        await trio.sleep(39)
        assert (first.exists(), killed.exists()) == (True, True)
        await trio.sleep(2)
        assert (first.exists(), killed.exists()) == (True, False)
        await trio.sleep(18)
        assert first.exists()
        await trio.sleep(2)
        assert not first.exists()
        many = [files.write(f"http://127.0.0.1:8080/x/login/{number}") for number in range(200)]
        there = [each for each in many if each is not None and each.exists()]
        assert 0 < len(there) < 100
        assert there[-1] == many[-1]
        nursery.cancel_scope.cancel()
    assert not files_in(tmp_path)
