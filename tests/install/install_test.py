#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The installed package: what is in it, that it can be moved, and that outside projects can use it."""
import os
import re
import unittest

from prefix import BUILD, CC, CMAKE, CXX, HERE, MPIEXEC, SOURCE, InstalledTest, environment, run

C99 = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
CXX20 = ["-std=c++20", "-Wall", "-Wextra", "-Werror"]
# MPI's old interface for C++ does not compile without warnings.
MPICXX20 = [*CXX20, "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX"]
# Headers that may not come along with ours.
FOREIGN = re.compile(r"/(fmt|toml\+\+|openssl|nlohmann|CLI)/|/xxh|/CLI11")
MPI_HEADERS = {"mpi.h", "mpi.hpp"}


class Package(InstalledTest):

    def test_everything_that_a_user_needs_is_there(self):
        for name in ["bin/belay", "include/belay/belay.hpp", "include/belay/belay.h",
                     "lib*/**/libbelay.so", "lib*/**/libbelay.a", "lib*/**/BelayConfig.cmake",
                     "lib*/**/BelayConfigVersion.cmake", "lib*/**/belay.pc", "share/doc/*/LICENSE",
                     "share/doc/*/README.md", "share/doc/*/guide/install.md",
                     "share/doc/*/examples/quickstart.c"]:
            self.assertEqual(len(list(self.prefix.glob(name))), 1, name)
        for name in ["include/belay/mpi.hpp", "include/belay/mpi.h", "lib*/**/libbelay_mpi.so",
                     "lib*/**/belay-mpi.pc"]:
            self.assertEqual(len(list(self.prefix.glob(name))), 1 if MPIEXEC else 0, name)

    def test_no_file_names_a_directory_of_the_machine_that_built_it(self):
        for path in self.prefix.rglob("*"):
            if not path.is_file():
                continue
            content = path.read_bytes()
            for place in [SOURCE, BUILD, self.original]:
                self.assertNotIn(os.fsencode(place), content, f"{path} names {place}")

    def test_the_tool_runs_from_where_it_was_moved_to(self):
        version = run(self.prefix / "bin" / "belay", "version")
        config = next(self.prefix.rglob("BelayConfigVersion.cmake")).read_text()
        self.assertIn(re.search(r'PACKAGE_VERSION "([\d.]+)"', config).group(1), version)

    def test_shared_libraries_show_the_interface_and_nothing_else(self):
        for library in ["libbelay.so", "libbelay_mpi.so"] if MPIEXEC else ["libbelay.so"]:
            symbols = run("nm", "--dynamic", "--demangle", "--defined-only", self.libraries / library)
            shown = {line.split(maxsplit=2)[2].split("@@")[0] for line in symbols.splitlines()}
            # Arguments differ between MPIs, and which tables are there between levels of optimisation.
            shown = {re.sub(r"\(.*", "", name) for name in shown} - {"BELAY_0.1"}
            tables = {name for name in shown if re.match("(typeinfo|typeinfo name|vtable) for ", name)}
            for table in tables:
                self.assertRegex(table, r"for belay::(RegionAccess|detail::SerializerAccess)$")
            expected = (HERE / f"{library}.txt").read_text().splitlines()
            self.assertEqual(sorted(shown - tables), [name for name in expected if not name.startswith("#")])

    def test_what_the_header_for_c_declares_is_what_is_shown(self):
        header = (self.prefix / "include" / "belay" / "belay.h").read_text()
        declared = set(re.findall(r"^BELAY_API [\w* ]*?\b(belay_\w+)\(", header, re.MULTILINE))
        listed = {name for name in (HERE / "libbelay.so.txt").read_text().split()
                  if name.startswith("belay_")}
        self.assertEqual(declared, listed)


class Headers(InstalledTest):

    def compile(self, compiler, flags, header, what="-fsyntax-only"):
        name = header.name
        language = "c" if compiler in (CC, "mpicc") else "c++"
        source = self.scratch / f"include.{language}"
        source.write_text(f"#include <belay/{name}>\n#include <belay/{name}>\nint main(void) {{ return 0; }}\n")
        return run(compiler, *flags, "-x", language, what, "-I", self.prefix / "include", source)

    def test_each_compiles_alone_without_warnings(self):
        for header in sorted((self.prefix / "include" / "belay").iterdir()):
            cc, cxx = ("mpicc", "mpicxx") if header.name in MPI_HEADERS else (CC, CXX)
            self.compile(cxx, MPICXX20, header)
            if header.suffix == ".h":
                self.compile(cc, C99, header)
                self.compile(cxx, ["-pedantic", *MPICXX20, "-std=c++11"], header)

    def test_none_brings_along_what_the_library_is_made_with(self):
        for name in ["belay.hpp", "belay.h"]:
            compiler, flags = (CXX, CXX20) if name.endswith("hpp") else (CC, C99)
            read = self.compile(compiler, flags, self.prefix / "include" / "belay" / name, "-M")
            self.assertIn(f"belay/{name}", read)
            self.assertIsNone(FOREIGN.search(read), read)
            self.assertNotIn("/mpi.h", read)
        if MPIEXEC:
            read = self.compile("mpicxx", MPICXX20, self.prefix / "include" / "belay" / "mpi.hpp", "-M")
            self.assertIsNone(FOREIGN.search(read), read)


class OutsideProjects(InstalledTest):

    def configure(self, prefix, *settings, source=HERE / "outside", fails=False):
        build = self.folder(f"build-{len(list(self.scratch.iterdir()))}")
        said = run(CMAKE, "-S", source, "-B", build, "-G", os.environ["GENERATOR"],
                   f"-DCMAKE_PREFIX_PATH={prefix}", f"-DCMAKE_C_COMPILER={CC}",
                   f"-DCMAKE_CXX_COMPILER={CXX}", *settings, fails=fails)
        return said if fails else build

    def build_and_run(self, prefix, *settings):
        build = self.configure(prefix, *settings)
        run(CMAKE, "--build", build, "--parallel", 2)
        for program in ["solo_cpp", "solo_c"]:
            self.check_counts_starts(build / program)
        for program in ["ranks_cpp", "ranks_c"]:
            self.check_counts_starts_on_ranks(build / program)
        return build

    @unittest.skipUnless(MPIEXEC, "no MPI")
    def test_cmake_finds_the_shared_libraries(self):
        build = self.build_and_run(self.prefix)
        self.assertIn("libbelay.so.", run("readelf", "--dynamic", build / "solo_c"))

    @unittest.skipUnless(MPIEXEC, "no MPI")
    def test_cmake_finds_the_static_libraries_and_what_they_need(self):
        build = self.build_and_run(self.prefix, "-DBelay_USE_STATIC_LIBS=ON")
        for program in ["solo_cpp", "ranks_c"]:
            self.assertNotIn("libbelay", run("readelf", "--dynamic", build / program))

    def test_a_package_of_static_libraries_only_says_that_it_needs_cplusplus(self):
        source = self.folder("only_c")
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(OnlyC LANGUAGES C)\nfind_package(Belay REQUIRED)\n"
            f"add_executable(solo {HERE}/outside/solo.c)\ntarget_link_libraries(solo PRIVATE Belay::belay)\n")
        said = self.configure(self.without_shared_libraries(), source=source, fails=True)
        self.assertIn("add CXX to the", said)
        build = self.configure(self.prefix, source=source)
        run(CMAKE, "--build", build)
        self.check_counts_starts(build / "solo")

    def test_without_mpi_the_package_is_found_but_not_its_component(self):
        no_mpi = "-DCMAKE_DISABLE_FIND_PACKAGE_MPI=ON"
        said = self.configure(self.prefix, no_mpi, fails=True)
        self.assertRegex(said, r"component mpi:\s+MPI\s+for\s+C\s+is\s+not\s+found")
        source = self.folder("no_mpi")
        (source / "CMakeLists.txt").write_text(
            "cmake_minimum_required(VERSION 3.16)\nproject(NoMpi LANGUAGES CXX)\nfind_package(Belay REQUIRED)\n"
            "if(TARGET Belay::mpi OR NOT TARGET Belay::belay)\n  message(FATAL_ERROR wrong)\nendif()\n"
            "find_package(Belay 0.2 QUIET)\n"
            "if(Belay_FOUND)\n  message(FATAL_ERROR \"0.1 passes for 0.2\")\nendif()\n")
        self.configure(self.prefix, no_mpi, source=source)


class PkgConfig(InstalledTest):

    def flags(self, package, *more, prefix=None):
        files = next((prefix or self.prefix).rglob("belay.pc")).parent
        return run("pkg-config", "--cflags", "--libs", *more, package,
                   env=environment(PKG_CONFIG_PATH=str(files))).split()

    def build(self, compiler, flags, source, linked):
        program = self.scratch / f"{source.replace('.', '_')}-{len(list(self.scratch.iterdir()))}"
        run(compiler, *flags, HERE / "outside" / source, *linked, "-o", program)
        return program

    def test_programs_of_one_process(self):
        env = environment(LD_LIBRARY_PATH=str(self.libraries))
        linked = self.flags("belay")
        self.check_counts_starts(self.build(CXX, CXX20, "solo.cpp", linked), env)
        self.check_counts_starts(self.build(CC, C99, "solo.c", linked), env)

    @unittest.skipUnless(MPIEXEC, "no MPI")
    def test_programs_of_many_ranks(self):
        env = environment(LD_LIBRARY_PATH=str(self.libraries))
        linked = self.flags("belay-mpi")
        self.check_counts_starts_on_ranks(self.build("mpicxx", MPICXX20, "ranks.cpp", linked), env)
        self.check_counts_starts_on_ranks(self.build("mpicc", C99, "ranks.c", linked), env)

    def test_static_linking(self):
        prefix = self.without_shared_libraries()
        self.check_counts_starts(
            self.build(CC, C99, "solo.c", self.flags("belay", "--static", prefix=prefix)))
        if MPIEXEC:
            self.check_counts_starts_on_ranks(
                self.build("mpicc", C99, "ranks.c", self.flags("belay-mpi", "--static", prefix=prefix)))


if __name__ == "__main__":
    unittest.main()
