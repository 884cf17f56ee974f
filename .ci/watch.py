"""Runs a command and shows how far it is: .ci/watch.py WHAT USUALLY COMMAND...

Lines such as ninja's, "[12/345] ...", tell how far it is. All others are shown if the command fails.
"""

import re
import subprocess
import sys
from pathlib import Path

from rich.console import Console

COUNT = re.compile(r"\s*\[(\d+)/(\d+)\]")


def main() -> None:
    """Exits as the command does."""
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from benchmarks.steps import step

    what, usually, *command = sys.argv[1:]
    output = []
    try:
        with step(Console(), what, usually) as update:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            assert process.stdout is not None
            for line in process.stdout:
                if count := COUNT.match(line):
                    update(int(count[1]), int(count[2]))
                else:
                    output.append(line)
            if process.wait() != 0:
                raise subprocess.CalledProcessError(process.returncode, command)
    except subprocess.CalledProcessError as error:
        sys.stdout.writelines(output)
        sys.exit(error.returncode)


if __name__ == "__main__":
    main()
