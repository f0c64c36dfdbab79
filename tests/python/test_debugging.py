"""The commands of the chapter on debugging: each prints what the chapter says.

In the outputs, `...` stands for any text. The plugin is the accelerator, and `libnext.so` is the accelerator with a wrong exponential
function.
"""

import os
import pathlib
import re
import subprocess
import sys

import plugins

ROOT = pathlib.Path(__file__).parents[2]
CHAPTER = (ROOT / "docs/debugging.md").read_text()
PROGRAM = re.search(r"```python\n(.*?)```", CHAPTER, re.DOTALL)[1]
BLOCKS = re.findall(r"```console\n(.*?)```", CHAPTER, re.DOTALL)


def commands():
    """The commands of the chapter in their order, with their outputs."""
    for block in BLOCKS:
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, output = part.partition("\n")
            yield command, output


def pattern(output):
    """The regular expression of an output. A line of dots stands for any lines, also for none."""
    lines = [".*" if line == "..." else re.escape(line).replace(r"\.\.\.", "[^\n]*") + "\n" for line in output.splitlines()]
    return re.compile("".join(lines), re.DOTALL)


def test_commands_print_what_the_chapter_says(tmp_path):
    examples = pathlib.Path(plugins.library("TEST_RECORDER")).parent
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "libaccelerator_pjrt.so").symlink_to(plugins.library("TEST_ACCELERATOR"))
    (tmp_path / "libnext.so").symlink_to(examples / "libfault_proxy.so")
    (tmp_path / "bin").mkdir()
    # Cargo finds its subcommand beside the recorder.
    for name, program in {"cargo": plugins.library("TEST_CARGO_PJRT"), "python": sys.executable}.items():
        script = tmp_path / "bin" / name
        script.write_text(f'#!/bin/sh\nexec "{program}" "$@"\n')
        script.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": f"{tmp_path}/bin:{os.environ['PATH']}",
        "PJRT_RECORDER": plugins.library("TEST_RECORDER"),
        "FAULT_PROXY_INNER": plugins.library("TEST_ACCELERATOR"),
        "FAULT_PROXY": "PJRT_Client_Compile rewrite exponential_off",
    }
    exports, count = "", 0
    for command, output in commands():
        if command.startswith("export "):
            exports += command + "\n"
            continue
        result = subprocess.run(
            ["bash", "-c", exports + command],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120,
        )
        assert pattern(output).fullmatch(result.stdout), f"$ {command}\n{result.stdout}\nexpected:\n{output}"
        count += 1
    assert count > 10
