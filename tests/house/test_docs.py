"""What documents say exists, exists."""

import re
from pathlib import Path

from softneuro import registry

ROOT = Path(__file__).parents[2]
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("benchmarks/*.md")]
LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
KERNELS = ROOT / "csrc" / "kernels"


def anchors(page: Path) -> set[str]:
    """As GitHub names headings."""
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in HEADING.findall(page.read_text())}


def test_links_lead_somewhere() -> None:
    broken, links = [], 0
    for page in PAGES:
        for target in LINK.findall(re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)):
            if "://" in target:
                continue
            links += 1
            path, _, anchor = target.partition("#")
            found = (page.parent / path).resolve() if path else page
            if not found.exists() or (anchor and anchor not in anchors(found)):
                broken.append(f"{page.relative_to(ROOT)}: {target}")
    assert links > 20
    assert not broken, "\n".join(broken)


def test_pages_on_kernels_know_all_kernels() -> None:
    pages = "\n".join(page.read_text() for page in ROOT.glob("docs/kernels/*.md"))
    folders = [folder.name for folder in KERNELS.iterdir() if folder.is_dir()]
    named = {name for names in re.findall(r"`([^`]+)`", pages) for name in names.replace(",", " ").split()}
    unknown = [folder for folder in folders if folder not in named and f"kernels/{folder}" not in named]
    assert len(folders) > 20
    assert not unknown, unknown


def test_pages_on_kernels_name_routines_that_exist() -> None:
    """As layer/algorithm."""
    routines = {(e["layer"], e["descriptor"].split("/")[-1].removesuffix("_" + e["isa"])) for e in registry()}
    layers = {layer for layer, _ in routines}
    unknown, named = [], 0
    for page in ROOT.glob("docs/kernels/*.md"):
        for name in re.findall(r"`(\w+/\w+)`", page.read_text()):
            layer, algorithm = name.split("/")
            if layer in layers:
                named += 1
                unknown += [f"{page.name}: {name}"] if (layer, algorithm) not in routines else []
    assert named > 20
    assert not unknown, "\n".join(unknown)
