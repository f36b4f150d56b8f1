# SPDX-License-Identifier: Apache-2.0
"""Stores that somebody made to do harm: the tool neither follows, hangs, crashes, nor passes escapes on."""
import os
import socket
import stat
import unittest

import xxhash

import tool
from tool import DAMAGE, IO, NOT_FOUND, ToolTest, run

MANIFEST = "node-0/manifest-000001-0000000003-000000"
SEGMENT = "node-0/segment-000001-0000000003-000000"
CLOSED = "node-0/closed-000001-0000000003"
TEMPORARY = "node-0/manifest-000001-0000000003-000000.tmp"
EXITS = range(7)


def plant_link(path):
    path.symlink_to("/etc/passwd")


def plant_link_to_itself(path):
    path.symlink_to(path.name)


def plant_directory(path):
    path.mkdir()


def plant_socket(path):
    directory = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as endpoint:
        endpoint.bind(f"/proc/self/fd/{directory}/{path.name}")
    os.close(directory)


def plant_device(path):
    os.mknod(path, stat.S_IFCHR | 0o600, os.makedev(1, 5))  # endless zeros


def plant_huge(path):
    with open(path, "wb") as file:
        file.write(b"BELAYMAN" if "manifest" in path.name else b"BELAYSEG")
        file.truncate(1 << 38)


# What everybody may plant, and what only root may.
PLANTS = [plant_link, plant_link_to_itself, plant_directory, os.mkfifo, plant_socket]
PLANTS += [plant_device] if os.getuid() == 0 else []


def seal(data):
    """A manifest with the checksum that its bytes should have."""
    data[-16:] = xxhash.xxh3_128(bytes(data[:-16])).intdigest().to_bytes(16, "little")
    return data


class PlantedThings(ToolTest):
    def each_command(self, store, allowed):
        for command in tool.COMMANDS:
            for json in [], ["--json"]:
                done = run(*tool.arguments_of(command), *json, store=store, cwd=self.place, timeout=10)
                self.assertIn(done.returncode, allowed, (command, done.stderr))
                self.assertNotIn(b"root:", done.stdout + done.stderr)
        done = run("check", "--repair", store=store, timeout=10)
        self.assertIn(done.returncode, allowed, done.stderr)

    def planted(self, plant, name):
        """A store with this thing in the place of that file, if there was one."""
        store = self.copy(name=f"{plant.__name__}-{name.replace('/', '-')}-{len(os.listdir(self.place))}")
        if (store / name).exists():
            (store / name).unlink()
        plant(store / name)
        return store

    def test_links_pipes_sockets_devices_and_directories_are_neither_followed_nor_waited_for(self):
        for plant in [*PLANTS, plant_huge]:
            for name in MANIFEST, SEGMENT, "node-0/settled", "node-0/run-000001", CLOSED, "node-0/lock", TEMPORARY:
                if plant is plant_huge and name not in (MANIFEST, SEGMENT):
                    continue
                with self.subTest(plant=plant.__name__, name=name):
                    self.each_command(self.planted(plant, name), EXITS)
                    if name in (MANIFEST, SEGMENT):
                        store = self.planted(plant, name)
                        found = self.run_json("check", store=store, exit_code=DAMAGE)
                        self.assertIn(name.split("/")[1], {f["file"] for f in found["flaws"]})
                        self.assertEqual(self.run_json("check", "--repair", store=store)["flaws"], [])

    def test_a_quarantine_that_is_no_directory_takes_nothing(self):
        outside = self.place / "outside"
        outside.mkdir()

        def plant_way_out(path):
            path.symlink_to(outside)
        for plant in [plant_way_out, *PLANTS]:
            if plant is plant_directory:
                continue
            with self.subTest(plant=plant.__name__):
                store = self.planted(plant, "node-0/quarantine")
                (store / MANIFEST).write_bytes(b"damaged")
                self.assertIn("quarantine", self.error_of("check", "--repair", store=store, exit_code=DAMAGE))
                self.assertTrue((store / MANIFEST).exists())
                self.assertEqual(list(outside.iterdir()), [])

    def test_what_is_named_like_a_node_but_no_directory_is_told_and_not_entered(self):
        for plant in PLANTS:
            if plant is plant_directory:
                continue
            with self.subTest(plant=plant.__name__):
                store = self.planted(plant, "node-evil")
                self.each_command(store, EXITS)
                found = self.run_json("check", store=store, exit_code=DAMAGE)
                self.assertEqual([f["file"] for f in found["flaws"]], ["node-evil"])
                self.assertEqual({v["state"] for v in found["versions"]}, {"whole"})

    def test_a_store_that_is_a_link_is_followed_and_one_that_is_no_directory_is_refused(self):
        (self.place / "link").symlink_to(self.copy())
        self.run_ok("check", store=self.place / "link")
        for plant in PLANTS:
            if plant is plant_directory:
                continue
            path = self.place / plant.__name__
            plant(path)
            for command in tool.COMMANDS:
                done = run(*tool.arguments_of(command), store=path, cwd=self.place, timeout=10)
                self.assertIn(done.returncode, (NOT_FOUND, IO), (plant.__name__, command, done.stderr))
                self.assertIn(plant.__name__.encode(), done.stderr)

    def test_nodes_that_are_links_are_not_followed(self):
        store = self.copy()
        (store / "node-evil").symlink_to("/etc")
        found = self.run_json("list", store=store, exit_code=DAMAGE)
        self.assertIn("node-evil", {f["file"] for f in found["flaws"]})
        self.assertEqual({v["state"] for v in found["versions"]}, {"whole"})

    def test_names_with_escapes_are_shown_harmlessly(self):
        store = self.copy()
        (store / "node-\x1b[31mred\nline").mkdir()
        (store / "node-\x1b[31mred\nline" / "run-000001").write_bytes(b"BELAYRUN\x07\x1b[2J")
        os.mkdir(os.fsencode(store) + b"/node-\xff\xfe")
        open(os.fsencode(store) + b"/node-\xff\xfe/run-000001", "wb").close()
        for command in tool.COMMANDS:
            done = run(*tool.arguments_of(command), store=store, cwd=self.place)
            self.assertNotIn(b"\x1b", done.stdout + done.stderr, command)
            self.assertNotIn(b"\xff", done.stdout + done.stderr, command)
            self.assertNotIn(b"\nline", done.stdout + done.stderr, command)
        self.run_json("check", store=store, exit_code=DAMAGE)

    @unittest.skipUnless(os.getuid() == 0, "needs to become another user")
    def test_a_file_that_may_not_be_read_is_told_and_stays(self):
        store = self.copy()
        self.place.chmod(0o755)
        for path in [store, *store.rglob("*")]:
            path.chmod(0o777 if path.is_dir() else 0o666)
        (store / MANIFEST).chmod(0)
        found = self.run_json("check", store=store, exit_code=IO, user=65534)
        self.assertIn("Permission denied", found["flaws"][0]["reason"])
        self.run_json("check", "--repair", store=store, exit_code=IO, user=65534)
        self.assertTrue((store / MANIFEST).exists())


class HostileManifests(ToolTest):
    def with_manifest(self, change):
        store = self.copy()
        data = bytearray((store / MANIFEST).read_bytes())
        change(data)
        (store / MANIFEST).write_bytes(seal(data))
        return store

    def test_regions_named_like_paths_stay_inside(self):
        def rename(data):
            at = data.index(b"growing")
            data[at:at + 7] = b"../../x"
        store = self.with_manifest(rename)
        inner = self.place / "a" / "b"
        inner.mkdir(parents=True)
        self.run_ok("extract", 3, "../../x", "--rank", 0, store=store, cwd=inner)
        self.assertEqual([p.name for p in inner.iterdir()], ["_._.._x-rank0.npy"])
        self.assertEqual({p.name for p in self.place.iterdir()}, {"store", "a"})

    def test_control_characters_in_names_are_damage(self):
        def rename(data):
            at = data.index(b"growing")
            data[at:at + 7] = b"\x1b[31m\x07x"
        store = self.with_manifest(rename)
        done = run("list", store=store)
        self.assertEqual(done.returncode, DAMAGE)
        self.assertNotIn(b"\x1b", done.stdout + done.stderr)

    def test_every_number_of_a_header_may_be_absurd(self):
        for offset, size in [(12, 4), (48, 8), (56, 8), (64, 4), (68, 4), (72, 8), (80, 8), (88, 8), (96, 8),
                             (104, 8), (224, 8), (232, 4), (236, 4), (240, 1), (241, 1)]:
            for value in b"\xff", b"\x00", b"\x7f":
                def change(data):
                    data[offset:offset + size] = value * size
                with self.subTest(offset=offset, value=value):
                    store = self.with_manifest(change)
                    for command in tool.COMMANDS:
                        if command == "prune":
                            continue
                        done = run(*tool.arguments_of(command), store=store, cwd=self.place, timeout=10)
                        self.assertIn(done.returncode, EXITS, (command, done.stderr))
                    tool.shutil.rmtree(store)

    def test_shapes_and_sizes_of_regions_may_be_absurd(self):
        def find(data):
            name = data.index(b"f64", 256)
            return name - 16 - 16  # the fixed part lies before two extents
        for at, size in [(8, 4), (12, 1), (16, 8), (24, 8)]:
            for value in b"\xff", b"\x01":
                def change(data):
                    start = find(data) + at
                    data[start:start + size] = (value * size if size != 1 else b"\x0d")
                with self.subTest(at=at, value=value):
                    store = self.with_manifest(change)
                    for arguments in (["show", "3"], ["diff", "2", "3"],
                                      ["extract", "3", "f64", "--rank", "0", "-o", "-"]):
                        done = run(*arguments, store=store, cwd=self.place, timeout=10)
                        self.assertIn(done.returncode, EXITS, (arguments, done.stderr))
                    tool.shutil.rmtree(store)


if __name__ == "__main__":
    unittest.main()
