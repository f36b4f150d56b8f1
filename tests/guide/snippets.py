# SPDX-License-Identifier: Apache-2.0
"""Compiles and runs what a Markdown page shows, so that pages cannot drift away from the code.

Every fenced block in one of these languages is checked, in the order of the page:

    ```cpp, ```c    compiled against an installed Belay, with warnings as errors; with MPI's compiler if it
                    includes <belay/mpi.hpp> or <belay/mpi.h>
    ```sh           run by bash, and must succeed; the installed tool and the examples are on the PATH, pkg-config
                    finds Belay
    ```cmake        configured and built as CMakeLists.txt, if it has a project() in it
    ```toml, ```ini given to a small program as BELAY_CONFIG, which must accept it

Blocks in other languages, or in none, are left alone. All blocks of a page run in one new directory, so that a block
can use what blocks before it left there.

Comments that readers do not see say more about the block that follows. Several may stand before one block:

    <!-- test: skip REASON -->            the block is not checked
    <!-- test: from examples/x.c -->      the block stands word for word in that file of the repository (which the
                                          build compiles); nothing else is checked
    <!-- test: with path/x.cpp as y.cpp -->   that file of the repository is copied into the page's directory
    <!-- test: save NAME -->              the block is stored under that name in the page's directory
    <!-- test: run -->                    a program in C or C++ is also run, and must succeed
    <!-- test: fails -->                  the block must fail: not compile, or exit with an error
    <!-- test: output -->                 the block, of any language, is what the block before it printed
    <!-- test: like -->                   the same, but numbers, times and sizes may be others, and a line of three
                                          points stands for any lines
    <!-- test: set NAME=VALUE -->         in the environment of this block and those after it
    <!-- test: top                        code that the reader does not need to see, before the block
    CODE -->
    <!-- test: inside                     the block is a part of main(), after this code, which may be nothing
    CODE -->

A block that defines main() is a whole program. Fragments of C and C++ without `inside` are compiled as they are, after
`top` and an #include of Belay's header.
"""
import dataclasses
import os
import pathlib
import re
import shutil
import subprocess

FENCE = re.compile(r"^(\s*)(```+|~~~+)\s*(\S*).*$")
COMMENT = re.compile(r"^\s*<!--\s*test:\s*(.*)$")
VERBS = {"skip", "from", "with", "save", "run", "fails", "output", "like", "set", "top", "inside"}
NUMBER = re.compile(r"\b(?:[0-9a-f]{32}|\d[\w.:/-]*)(?: (?:[KMGT]?i?B|[num]?s|m)\b)?")
FLAGS = ["-Wall", "-Wextra", "-Werror", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
ACCEPTS_CONFIG = """#include <belay/belay.hpp>
#include <cstdio>
int main() {
  belay::Options options;
  bool warned = false;
  options.on_log = [&](belay::LogLevel, std::string_view text) { warned = true; std::printf("%s\\n", text.data()); };
  auto session = belay::open(options);
  if (!session) std::printf("%s\\n", session.error().message().c_str());
  return session && !warned ? 0 : 1;
}
"""
SECONDS = 120


class Wrong(Exception):
    """A block that is not what the page says, or a comment that is not understood."""


@dataclasses.dataclass
class Block:
    line: int
    language: str
    text: str
    directives: dict


def read_comment(lines, at, said):
    """The directive that begins in line `at`, and the line after it."""
    body = said
    while "-->" not in body:
        at += 1
        if at >= len(lines):
            raise Wrong("a comment does not end")
        body += "\n" + lines[at]
    body = body.split("-->")[0]
    verb, _, argument = body.partition("\n") if "\n" in body else body.strip().partition(" ")
    verb = verb.strip()
    if verb not in VERBS:
        raise Wrong(f"'{verb}' is not one of {', '.join(sorted(VERBS))}")
    return verb, argument.strip("\n") if verb in ("top", "inside") else argument.strip(), at + 1


def blocks_of(page):
    """The fenced blocks of a page, each with the directives before it."""
    lines = page.read_text(encoding="utf-8").splitlines()
    found, directives, at = [], {}, 0
    while at < len(lines):
        if comment := COMMENT.match(lines[at]):
            try:
                verb, argument, after = read_comment(lines, at, comment.group(1))
            except Wrong as wrong:
                raise Wrong(f"line {at + 1}: {wrong}") from None
            directives.setdefault(verb, []).append(argument)
            at = after
        elif fence := FENCE.match(lines[at]):
            indent, mark, language = fence.groups()
            end = at + 1
            while end < len(lines) and lines[end].strip() != mark:
                end += 1
            text = "\n".join(line.removeprefix(indent) for line in lines[at + 1:end]) + "\n"
            found.append(Block(at + 1, language.lower(), text, directives))
            directives, at = {}, end + 1
        else:
            at += 1
    if directives:
        raise Wrong(f"comments at the end belong to no block: {', '.join(directives)}")
    return found


def words_of(text):
    """The lines of a text without its numbers, which differ from run to run, and without the blanks that align them."""
    return [" ".join(NUMBER.sub("#", line).split()) for line in text.splitlines()]


def alike(shown, printed):
    lines = [r"(.*\n)*" if line == "..." else re.escape(line) + r"\n" for line in words_of(shown)]
    return re.fullmatch("".join(lines), "\n".join(words_of(printed)) + "\n") is not None


class Checker:
    """Checks the blocks of one page. `prefix`: where Belay is installed; `place`: an empty directory."""

    def __init__(self, repository, prefix, place, programs=None):
        self.repository, self.prefix, self.place = repository, prefix, place
        self.printed = ""
        libraries = next(prefix.rglob("libbelay.so")).parent
        self.libraries = libraries
        path = [prefix / "bin", *([programs] if programs else []), os.environ["PATH"]]
        kept = {k: v for k, v in os.environ.items() if not k.startswith("BELAY_")}
        self.environment = {**kept, "PATH": ":".join(map(str, path)), "LD_LIBRARY_PATH": str(libraries),
                            "PKG_CONFIG_PATH": str(libraries / "pkgconfig"), "CMAKE_PREFIX_PATH": str(prefix),
                            "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                            "OMPI_MCA_rmaps_base_oversubscribe": "1"}
        self.checks = {"cpp": self.check_program, "c": self.check_program, "sh": self.check_script,
                       "cmake": self.check_cmake, "toml": self.check_config, "ini": self.check_config}

    def check_page(self, page):
        """How many blocks were checked. Throws Wrong with page and line of the first that is not right."""
        checked = 0
        name = page.name
        try:
            blocks = blocks_of(page)
        except Wrong as wrong:
            raise Wrong(f"{name}: {wrong}") from None
        for block in blocks:
            try:
                checked += self.check(block)
            except Wrong as wrong:
                raise Wrong(f"{name}:{block.line}: {wrong}") from None
        return checked

    def check(self, block):
        """1 if the block was checked, 0 if it was left alone."""
        told = block.directives
        if "skip" in told:
            if not told["skip"][0]:
                raise Wrong("skip without a reason")
            return 0
        for pair in told.get("set", []):
            name, _, value = pair.partition("=")
            self.environment[name] = value
        for copy in told.get("with", []):
            source, _, name = copy.partition(" as ")
            shutil.copy(self.repository / source.strip(), self.place / (name.strip() or pathlib.Path(source).name))
        for name in told.get("save", []):
            (self.place / name).write_text(block.text, encoding="utf-8")
        if "output" in told:
            if block.text != self.printed:
                raise Wrong(f"the block before it printed:\n{self.printed}")
        elif "like" in told:
            if not alike(block.text, self.printed):
                raise Wrong(f"the block before it printed something else:\n{self.printed}")
        elif "from" in told:
            text = (self.repository / told["from"][0]).read_text(encoding="utf-8")
            if block.text.strip("\n") not in text:
                raise Wrong(f"this does not stand in {told['from'][0]}")
        elif block.language in self.checks:
            return self.check_language(block)
        elif "save" not in told:
            return 0
        return 1

    def check_language(self, block):
        try:
            done = self.checks[block.language](block)
        except Wrong:
            if "fails" in block.directives:
                return 1
            raise
        if "fails" in block.directives:
            raise Wrong("it must fail, but does not")
        return done

    def execute(self, *command, **more):
        """Keeps what the command prints; throws if it fails."""
        environment = {**self.environment, **more}
        try:
            done = subprocess.run([str(part) for part in command], cwd=self.place, env=environment, text=True,
                                  stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                  timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            raise Wrong(f"{command[0]} did not end within {SECONDS} s") from None
        self.printed = done.stdout
        if done.returncode != 0:
            raise Wrong(f"{' '.join(map(str, command))}: exit code {done.returncode}\n{done.stdout}")

    def check_program(self, block):
        told = block.directives
        source = "\n".join(told.get("top", [])) + "\n"
        header = "belay.hpp" if block.language == "cpp" else "belay.h"
        if "#include <belay/" not in source + block.text:
            source = f"#include <belay/{header}>\n" + source
        if "inside" in told:
            source += "int main(void) {\n" + "\n".join(told["inside"]) + f"\n{block.text}return 0;\n}}\n"
        else:
            source += block.text
        file = self.place / f"block-{block.line}.{block.language}"
        file.write_text(source, encoding="utf-8")
        with_mpi = re.search(r"#include <(belay/)?mpi\.h", source)
        if block.language == "cpp":
            compiler = ["mpicxx" if with_mpi else os.environ.get("CXX", "c++"), "-std=c++20"]
        else:
            compiler = ["mpicc" if with_mpi else os.environ.get("CC", "cc"), "-std=c99", "-pedantic"]
        compiler += [*FLAGS, "-Wno-unused", "-I", self.prefix / "include", file]
        if "run" not in told:
            self.execute(*compiler, "-fsyntax-only")
        else:
            program = file.with_suffix("")
            self.execute(*compiler, "-L", self.libraries, *(["-lbelay_mpi"] if with_mpi else []), "-lbelay", "-o", program)
            self.execute(program)
        return 1

    def check_script(self, block):
        self.execute("bash", "-euo", "pipefail", "-c", block.text)
        return 1

    def check_cmake(self, block):
        if "project(" not in block.text:
            return 0
        (self.place / "CMakeLists.txt").write_text(block.text, encoding="utf-8")
        build = f"build-{block.line}"
        self.execute("cmake", "-S", ".", "-B", build)
        self.execute("cmake", "--build", build)
        return 1

    def check_config(self, block):
        program = self.place / "accepts-config"
        if not program.exists():
            source = self.place / "accepts-config.cpp"
            source.write_text(ACCEPTS_CONFIG, encoding="utf-8")
            self.execute(os.environ.get("CXX", "c++"), "-std=c++20", "-I", self.prefix / "include", source,
                         "-L", self.libraries, "-lbelay", "-o", program)
        config = self.place / f"block-{block.line}.toml"
        config.write_text(block.text, encoding="utf-8")
        self.execute(program, BELAY_CONFIG=str(config), BELAY_STORE=str(self.place / f"store-{block.line}"))
        return 1
