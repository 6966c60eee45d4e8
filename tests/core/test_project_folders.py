"""Which project a folder belongs to: its repository's, if the repository says so, too."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from support.repositories import commit, git, linked, repository

from greenroom.actors.core.git.git_files import Revision
from greenroom.actors.core.git.project_names import project_of_path
from greenroom.actors.core.git.projects import find_project


def project(folder: Path, *, apart: bool = False) -> str:
    return find_project(str(folder), apart=apart).project_id


def own(folder: Path) -> str:
    return project_of_path(str(folder.resolve()))


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return repository(tmp_path / "shop")


@pytest.mark.promise("projects.worktree")
def test_a_linked_worktree_is_of_its_repositorys_project_unless_kept_apart(
    shop: Path, tmp_path: Path
) -> None:
    tree = linked(shop, tmp_path / "shop-feature")
    (tree / "src").mkdir()
    within = linked(shop, shop / ".trees/fix", "fix")
    assert {project(each) for each in (shop, tree, tree / "src", within)} == {own(shop)}
    assert find_project(str(tree / "src")).top == str(tree)
    assert project(tree / "src", apart=True) == own(tree)
    assert project(shop, apart=True) == own(shop)


@pytest.mark.promise("projects.worktree")
def test_a_git_file_may_be_relative(shop: Path, tmp_path: Path) -> None:
    tree = linked(shop, tmp_path / "shop-feature")
    admin = shop / ".git/worktrees/shop-feature"
    (tree / ".git").write_text("gitdir: ../shop/.git/worktrees/shop-feature\n")
    (admin / "gitdir").write_text("../../../../shop-feature/.git\n")
    assert project(tree) == own(shop)
    (admin / "gitdir").write_text("../../../shop-feature/.git\n")
    assert project(tree) == own(tree)


@pytest.mark.promise("projects.worktree")
def test_worktrees_of_a_bare_repository_share_its_project(shop: Path, tmp_path: Path) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(shop), "bare.git")
    trees = [linked(tmp_path / "bare.git", tmp_path / name, name) for name in ("one", "two")]
    assert {project(each) for each in trees} == {own(tmp_path / "bare.git")}

    (tmp_path / "hub").mkdir()  # often the bare repository is hidden beside its work trees
    git(tmp_path, "clone", "-q", "--bare", str(shop), "hub/.bare")
    (tmp_path / "hub/.git").write_text("gitdir: ./.bare\n")
    tree = linked(tmp_path / "hub/.bare", tmp_path / "hub/three", "three")
    assert project(tree) == project(tmp_path / "hub") == own(tmp_path / "hub")


@pytest.mark.promise("projects.worktree")
def test_submodules_and_clones_are_projects_of_their_own(shop: Path, tmp_path: Path) -> None:
    lib = repository(tmp_path / "lib")
    git(shop, "submodule", "add", "-q", str(lib), "vendor")
    git(shop, "commit", "-q", "-m", "vendor")
    tree = linked(shop, tmp_path / "shop-feature")
    git(tree, "submodule", "update", "-q", "--init")
    git(tmp_path, "clone", "-q", "--shared", str(shop), "borrowing")
    of_module = linked(shop / "vendor", tmp_path / "vendor-fix", "fix")
    assert project(of_module) == own(shop / "vendor")
    (shop / "vendor/.git").write_text("gitdir: ../.git/modules/elsewhere\n")
    assert project(of_module) == own(shop / ".git/modules/vendor")
    for each in (shop / "vendor", tree / "vendor", tmp_path / "borrowing"):
        assert project(each) == own(each)


@pytest.mark.promise("projects.worktree")
@pytest.mark.parametrize("way", ["a file", "a link"])
def test_worktrees_of_a_git_directory_elsewhere_know_the_main_one_that_it_names(
    shop: Path, tmp_path: Path, way: str
) -> None:
    apart = tmp_path / "apart.git"
    if way == "a file":
        git(shop, "init", "-q", "--separate-git-dir", str(apart))
    else:
        (shop / ".git").rename(apart)
        (shop / ".git").symlink_to(apart)
    tree = linked(shop, tmp_path / "tree")
    assert (project(shop), project(tree)) == (own(shop), own(apart))
    git(shop, "config", "core.worktree", str(shop))
    assert project(shop) == project(tree) == own(shop)
    git(shop, "config", "core.worktree", str(tmp_path))
    assert project(tree) == own(apart)


@pytest.mark.promise("projects.believed")
@pytest.mark.parametrize("config", ["\n" * 8_190, "worktree=a" + " " * 8_100 + "b", " " * 8_190])
def test_a_hostile_configuration_costs_no_time(tmp_path: Path, shop: Path, config: str) -> None:
    git(tmp_path, "clone", "-q", "--bare", str(shop), "bare.git")
    tree = linked(tmp_path / "bare.git", tmp_path / "tree")
    (tmp_path / "bare.git/config").write_text(config)
    began = time.process_time()
    for _ in range(40):
        assert project(tree) == own(tmp_path / "bare.git")
    assert time.process_time() - began < 1


def names_the_repository(claim: Path, tree: Path) -> None:
    (claim / ".git").write_text(f"gitdir: {tree.parent}/shop/.git\n")


def names_a_worktree(claim: Path, tree: Path) -> None:
    (claim / ".git").write_text((tree / ".git").read_text())


def is_a_hard_link(claim: Path, tree: Path) -> None:
    (claim / ".git").hardlink_to(tree / ".git")


def is_a_symbolic_link(claim: Path, tree: Path) -> None:
    (claim / ".git").symlink_to(tree / ".git")


def brings_a_folder_that_shares(claim: Path, tree: Path) -> None:
    (claim / ".git").mkdir(exist_ok=True)
    (claim / ".git/commondir").write_text(f"{tree.parent}/shop/.git\n")
    (claim / ".git/gitdir").write_text(f"{claim}/.git\n")


def is_a_repository_that_shares(claim: Path, tree: Path) -> None:
    git(claim, "init", "-q")
    brings_a_folder_that_shares(claim, tree)


def brings_its_own_admin_folder(claim: Path, tree: Path) -> None:
    admin = claim / "x/worktrees/shop-feature"
    admin.mkdir(parents=True)
    (admin / "commondir").write_text(f"{tree.parent}/shop/.git\n")
    (admin / "gitdir").write_text(f"{claim}/.git\n")
    (claim / ".git").write_text(f"gitdir: {admin}\n")


def leads_there_by_a_link(claim: Path, tree: Path) -> None:
    (claim / "x").symlink_to(tree.parent / "shop/.git")
    (claim / ".git").write_text("gitdir: ./x/worktrees/shop-feature\n")


def is_in_a_subfolder_of_the_worktree(claim: Path, tree: Path) -> None:
    (tree.parent / "shop/.git/worktrees/shop-feature/gitdir").write_text(f"{tree}/deeper/.git\n")
    (claim / ".git").write_text((tree / ".git").read_text())


def is_not_what_git_writes(claim: Path, tree: Path) -> None:
    named = os.fsencode(tree.parent) + b"/shop/.git\0/worktrees/x\n\xff"
    (claim / ".git").write_bytes(b"gitdir: " + named + b"x" * 9_000)


CLAIMS: dict[str, Callable[[Path, Path], None]] = {
    each.__name__: each
    for each in (
        names_the_repository,
        names_a_worktree,
        is_a_hard_link,
        is_a_symbolic_link,
        brings_a_folder_that_shares,
        is_a_repository_that_shares,
        brings_its_own_admin_folder,
        leads_there_by_a_link,
        is_in_a_subfolder_of_the_worktree,
        is_not_what_git_writes,
    )
}


@pytest.mark.promise("projects.believed")
@pytest.mark.parametrize("claim", list(CLAIMS))
def test_a_folder_that_the_repository_does_not_name_is_a_project_of_its_own(
    shop: Path, tmp_path: Path, claim: str
) -> None:
    tree = linked(shop, tmp_path / "shop-feature")
    unpacked = tmp_path / "unpacked"
    unpacked.mkdir()
    CLAIMS[claim](unpacked, tree)
    found = find_project(str(unpacked))
    assert found.project_id == own(unpacked)
    assert own(shop) not in found.older
    assert found.revision == Revision()


@pytest.mark.promise("projects.believed")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to another user")
@pytest.mark.parametrize("part", ["tree/.git", "shop/.git/worktrees/tree", "shop/.git/worktrees/tree/gitdir"])
def test_of_another_users_files_none_is_believed(shop: Path, tmp_path: Path, part: str) -> None:
    tree = linked(shop, tmp_path / "tree")
    assert project(tree) == own(shop)
    os.chown(tmp_path / part, 65_534, -1)
    assert project(tree) == own(tree)


@pytest.mark.promise("projects.believed")
@pytest.mark.parametrize("kind", ["a repository", "an empty folder"])
@pytest.mark.parametrize("around", ["a repository", "a plain folder"])
def test_a_folder_with_the_name_of_gits_own_is_not_the_folder_around_it(
    shop: Path, tmp_path: Path, around: str, kind: str
) -> None:
    outer = shop if around == "a repository" else tmp_path / "plain"
    claim = outer / "worktrees"
    claim.mkdir(parents=True)
    if kind == "a repository":
        git(claim, "init", "-q")
    (claim / ".git").mkdir(exist_ok=True)
    (claim / ".git/commondir").write_text("../..\n")
    found = find_project(str(claim))
    is_plain_part = outer == shop and kind == "an empty folder"  # as git has it
    assert found.project_id == own(shop if is_plain_part else claim)
    assert own(tmp_path / "plain") not in {found.project_id, *found.older}


@pytest.mark.promise("projects.believed")
def test_a_folder_that_only_looks_like_a_shared_one_is_not_shared(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    admin, claim = plain / "worktrees/x", plain / "worktrees/y"
    admin.mkdir(parents=True)
    claim.mkdir()
    (admin / "commondir").write_text("../..\n")
    (admin / "gitdir").write_text("../y/.git\n")
    (claim / ".git").write_text("gitdir: ../x\n")
    assert project(claim) == own(claim)
    (plain / "HEAD").write_text("ref: refs/heads/main\n")
    for part in ("objects", "refs"):
        assert project(claim) == own(claim)
        (plain / part).mkdir()
    assert project(claim) == own(plain)  # now it is a bare repository with a work tree


def is_empty(pointer: Path) -> None:
    pointer.touch()


def is_a_repository(pointer: Path) -> None:
    git(pointer.parent, "init", "-q", "-b", "evil")


def is_a_pointer(pointer: Path) -> None:
    pointer.write_text("gitdir: /elsewhere\n")


@pytest.mark.promise("projects.believed")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files to another user")
@pytest.mark.parametrize("kind", [is_empty, is_a_repository, is_a_pointer])
def test_another_user_makes_no_project_of_folders_that_are_not_that_users(
    tmp_path: Path, kind: Callable[[Path], None]
) -> None:
    folders = [tmp_path / "one", tmp_path / "two"]
    for each in folders:
        each.mkdir()
    kind(tmp_path / ".git")
    os.chown(tmp_path / ".git", 65_534, -1)
    for each in folders:
        found = find_project(str(each))
        assert (found.project_id, found.older, found.revision) == (own(each), (), Revision())
    os.chown(folders[0], 65_534, -1)  # as in a container, where root works in a user's repository
    assert project(folders[0]) == own(folders[0] if kind is is_empty else tmp_path)


@pytest.mark.promise("projects.believed")
def test_a_folder_that_git_takes_for_no_repository_is_passed_over(shop: Path) -> None:
    for number, content in enumerate(["", "no pointer\n"]):
        part = shop / f"part{number}"
        part.mkdir()
        (part / ".git").write_text(content)
        assert project(part) == own(shop)
    (shop / "empty/.git").mkdir(parents=True)
    (shop / "broken").mkdir()
    (shop / "broken/.git").symlink_to("nowhere")
    assert {project(shop / each) for each in ("empty", "broken")} == {own(shop)}


@pytest.mark.promise("projects.older-ids", "projects.believed")
def test_a_link_in_a_repository_leads_to_a_folder_that_has_no_id_of_the_repository(
    shop: Path, tmp_path: Path
) -> None:
    (tmp_path / "unpacked").mkdir()
    (shop / "link").symlink_to(tmp_path / "unpacked")
    found = find_project(str(shop / "link"))
    assert found.project_id == own(tmp_path / "unpacked")
    assert found.older == (project_of_path(str(shop / "link")),)


@pytest.mark.promise("projects.older-ids")
def test_a_folder_has_one_id_however_it_is_named_and_its_older_ones_are_known(
    shop: Path, tmp_path: Path
) -> None:
    tree = linked(shop, tmp_path / "shop-feature")
    (tree / "src").mkdir()
    (tmp_path / "link").symlink_to(tree)
    found = find_project(str(tmp_path / "link/src"))
    assert found.project_id == own(shop)
    by_hooks, by_sessions = (
        project_of_path(str(tmp_path / "link")),
        project_of_path(str(tmp_path / "link/src")),
    )
    assert set(found.older) == {own(tree), own(tree / "src"), by_hooks, by_sessions}
    assert find_project(str(shop)).older == ()


@pytest.mark.parametrize("folder", ["C:\\work\\my app", "", "not/absolute", "/nul\0here", "/" + "x" * 5_000])
def test_what_is_no_folder_here_is_a_project_by_its_name(folder: str) -> None:
    assert find_project(folder).project_id == project_of_path(folder)


@pytest.mark.promise("projects.branches")
def test_branch_and_commit_are_read_without_git(shop: Path, tmp_path: Path) -> None:
    tree = linked(shop, tmp_path / "tree", "topic/deep")
    made = commit(tree, "second.py")
    assert find_project(str(tree)).revision == Revision("topic/deep", made)
    git(shop, "pack-refs", "--all")
    assert find_project(str(tree)).revision == Revision("topic/deep", made)
    git(tree, "checkout", "-q", "--detach")
    assert find_project(str(tree)).revision == Revision("", made)
    git(tree, "checkout", "-q", "--orphan", "unborn")
    assert find_project(str(tree)).revision == Revision("unborn", "")
    for odd in (
        "ref: refs/heads/../../config",
        "ref: refs/heads/a b",
        "ref: refs/heads/.invalid",  # the format reftable
        "ref: refs/heads/" + "x" * 300,
        "\xff",
    ):
        (shop / ".git/HEAD").write_text(odd + "\n")
        assert find_project(str(shop)).revision == Revision()


@pytest.mark.promise("projects.branches")
def test_a_branch_that_names_another_has_its_commit(shop: Path) -> None:
    made = git(shop, "rev-parse", "HEAD")
    for name, target in (("alias", "main"), ("around", "back"), ("back", "around")):
        git(shop, "symbolic-ref", f"refs/heads/{name}", f"refs/heads/{target}")
    for name, expected in (("alias", made), ("around", "")):
        (shop / ".git/HEAD").write_text(f"ref: refs/heads/{name}\n")
        assert find_project(str(shop)).revision == Revision(name, expected)


@pytest.mark.promise("projects.branches")
@pytest.mark.parametrize("header", ["# pack-refs with: peeled fully-peeled sorted \n", ""])
@pytest.mark.parametrize("count", [0, 1, 200, 3_000, 70_000])
def test_a_branch_is_found_among_any_number_of_packed_ones(shop: Path, header: str, count: int) -> None:
    numbers = [f"{number:06}" for number in range(count)]
    lines = [f"{number:0>40} refs/heads/b{number}\n^{number:f>40}\n" for number in numbers]
    (shop / ".git/packed-refs").write_text(header + "".join(lines))
    for number in (*numbers[:2], *numbers[count // 3 : count // 3 + 2], *numbers[-2:], "x", "000000x", ""):
        (shop / ".git/HEAD").write_text(f"ref: refs/heads/b{number}\n")
        is_there = number in numbers and (header != "" or count < 70_000)
        expected = f"{number:0>40}" if is_there else ""
        assert find_project(str(shop)).revision == Revision(f"b{number}", expected)


@pytest.mark.promise("projects.believed")
@pytest.mark.parametrize("content", ["x" * 90_000, "\n" * 90_000, "\0" * 90_000, "^\n" * 45_000])
def test_packed_references_that_git_did_not_write_have_no_branch(shop: Path, content: str) -> None:
    (shop / ".git/packed-refs").write_text(f"# pack-refs with: sorted \n{content}")
    (shop / ".git/HEAD").write_text("ref: refs/heads/gone\n")
    assert find_project(str(shop)).revision == Revision("gone", "")
