"""The guests of the lab: builds their disk, boots them in QEMU, and runs jobs in them.

Everything is kept in one folder, `target/lab`. The disk is built once for each list of packages and modules.
"""

import ctypes
import hashlib
import mmap
import os
import platform
import shutil
import subprocess
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent / "guest"
TOOLS = ["qemu-system-x86_64", "mmdebstrap", "mke2fs", "cpio", "depmod", "modprobe"]
PACKAGES = ["qemu-system-x86", "mmdebstrap", "e2fsprogs", "cpio", "kmod", "busybox-static"]
# Longest time until a guest is up, s. Two guests need 12-17 s on an idle machine with two cores, and 57 s at load 10.
BOOT_LIMIT = int(os.environ.get("ROPEWALK_LAB_BOOT", "120"))
# Guests, ToR and NICs have one niceness, also where the lab itself is started with `nice`: 10, the default of `nice`.
NICE = ["nice", "-n", str(max(0, 10 - os.nice(0)))]
# Longest time until a server listens, s. Our choice: no server here takes as long, even where guests boot for two minutes.
READY_LIMIT = 90

# Runs a server, and tells the host as soon as it listens: by TCP on a port on which nobody listened before, or by the connection
# manager of RDMA. A process takes long to start here and keeps the server from its own start, so nearly everything in the loop is
# built into the shell, and the loop soon slows down.
SERVE = """
seen=" "
look() {
    for file in /proc/net/tcp /proc/net/tcp6; do
        while read -r _ local _ state _; do
            if [ "$state" = 0A ]; then
                case $seen in *" $local "*) ;; *) seen="$seen$local "; new=1 ;; esac
            fi
        done < $file
    done
}
look
timeout LIMIT env WORDS &
server=$!
(
    new= round=0
    while [ -z "$new" ]; do
        if [ $round -lt 10 ]; then sleep 0.2; else sleep 1; fi
        look
        round=$((round + 1))
        if [ $((round % 5)) = 0 ]; then
            case $(rdma resource show cm_id 2>/dev/null) in *" state LISTEN "*) new=1 ;; esac
        fi
    done
    : > /shared/ready
    while [ ! -e /shared/gone ]; do sleep 0.5; done
    kill $server 2>/dev/null
) &
watcher=$!
wait $server
code=$?
kill $watcher 2>/dev/null
exit $code
"""


class LeftOut(Exception):
    """The lab cannot run here, for the reason given."""


def counter_rate():
    """The rate of the processor's time stamp counter in kHz, which an emulated processor has, too; `None` if it has none."""
    if platform.machine() != "x86_64":
        return None
    # rdtsc; shl rdx, 32; or rax, rdx; ret
    code = bytes([0x0F, 0x31, 0x48, 0xC1, 0xE2, 0x20, 0x48, 0x09, 0xD0, 0xC3])
    try:
        page = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    except OSError:
        return None
    page.write(code)
    read = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(ctypes.c_char.from_buffer(page)))

    def both():
        """Clock and counter of one instant: those of the quickest of some readings."""
        readings = []
        for _ in range(100):
            before, count, after = time.monotonic_ns(), read(), time.monotonic_ns()
            readings.append((after - before, before, count))
        return min(readings)[1:]

    (time_before, before), _, (time_after, after) = both(), time.sleep(0.3), both()
    return (after - before) / (time_after - time_before) * 1e6


def words(name):
    """The words of a list in the folder `guest`, without comments."""
    lines = (HERE / name).read_text().splitlines()
    return [line.strip() for line in lines if line.strip() and not line.startswith("#")]


def quietly(command, reason, log, **options):
    """Runs a command; its output goes to the log."""
    with open(log, "a") as out:
        try:
            subprocess.run(command, stdout=out, stderr=subprocess.STDOUT, check=True, **options)
        except (OSError, subprocess.SubprocessError) as error:
            raise LeftOut(f"{reason} ({log} says why)") from error


def tools(folder):
    """Installs QEMU and the tools that build a guest, where this is root on a Debian and some are missing."""
    busybox = shutil.which("busybox")
    missing = [tool for tool in TOOLS if not shutil.which(tool)] + ([] if busybox else ["busybox"])
    if not missing:
        return
    if os.geteuid() != 0 or not shutil.which("apt-get"):
        raise LeftOut(f"{', '.join(missing)} not installed, and only root can install them")
    log = folder / "apt.log"
    environment = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    for step in (["update", "-qq"], ["install", "-qq", "-y", "--no-install-recommends", *PACKAGES]):
        quietly(["apt-get", *step], f"apt-get cannot install {', '.join(missing)}", log, env=environment, timeout=300)


def disk(folder, full=False):
    """Builds the guests' disk, kernel and first RAM disk, unless they are there. Returns their folder.

    The full guest has all clients of `make lab-full`.
    """
    packages = words("packages") + (words("packages-full") if full else [])
    recipe = "\n".join(path.read_text() for path in sorted(HERE.iterdir()) if path.is_file()) + " ".join(packages)
    recipe += Path(__file__).read_text().split("def disk(")[1].split("\ndef ")[0]
    made = folder / ("guest-" + hashlib.sha256(recipe.encode()).hexdigest()[:12])
    if made.is_dir():
        return made
    log, part = folder / "guest.log", folder / "guest.part"
    shutil.rmtree(part, ignore_errors=True)
    root = part / "root"
    root.mkdir(parents=True)
    archive = folder / ("root-" + hashlib.sha256(" ".join(packages).encode()).hexdigest()[:12] + ".tar")
    if not archive.exists():
        mirror = [os.environ["ROPEWALK_LAB_MIRROR"]] if "ROPEWALK_LAB_MIRROR" in os.environ else []
        partial = archive.with_suffix(".part.tar")
        without = [f"--dpkgopt=path-exclude=/usr/share/{name}/*" for name in ("doc", "man", "locale")]
        command = ["mmdebstrap", "--variant=minbase", "--include=" + ",".join(packages)]
        command += ['--aptopt=APT::Install-Recommends "0"', *without, "bookworm", str(partial), *mirror]
        quietly(["nice", *command], "the guest's packages cannot be installed", log, timeout=600)
        partial.rename(archive)
    # Kernel modules are most of the archive; the guest needs a few dozen of them.
    quietly(["tar", "-C", root, "-xf", archive, "--exclude=./dev/*", "--exclude=./boot/initrd*"], "tar fails", log)
    modules = root / "lib/modules"
    (release,) = [path.name for path in modules.iterdir()]

    def files(names):
        """Module files with all that they depend on, in the order of loading."""
        found = []
        for name in names:
            command = ["modprobe", "-d", root, "-S", release, "--show-depends", name]
            shown = subprocess.run(command, capture_output=True, text=True).stdout
            found += [Path(line.split()[1]) for line in shown.splitlines() if line.startswith("insmod")]
        return list(dict.fromkeys(found))

    wanted, first = set(files(words("modules"))), files(["virtio_pci", "virtio_blk", "ext4"])
    for path in modules.rglob("*.ko"):
        if path not in wanted:
            path.unlink()
    quietly(["depmod", "-b", root, release], "depmod fails", log)
    ram = part / "ram"
    for name in ("bin", "proc", "dev", "root", "modules"):
        (ram / name).mkdir(parents=True)
    shutil.copy(shutil.which("busybox"), ram / "bin/busybox")
    order = [f"{n:02}-{path.name}" for n, path in enumerate(first)]
    for name, path in zip(order, first):
        shutil.copy(path, ram / "modules" / name)
    (ram / "order").write_text("".join(name + "\n" for name in order))
    shutil.copy(HERE / "initrd-init", ram / "init")
    shutil.copy(HERE / "init", root / "lab-init")
    for path in HERE.glob("*.py"):
        shutil.copy(path, root / "usr/local/bin" / path.name)
        (root / "usr/local/bin" / path.name).chmod(0o755)
    for path in (ram / "init", root / "lab-init"):
        path.chmod(0o755)
    (root / "etc/hosts").write_text("127.0.0.1 localhost\n10.0.0.1 g1\n10.0.0.2 g2\n")
    (kernel,) = (root / "boot").glob("vmlinuz-*")
    shutil.move(kernel, part / "vmlinuz")
    quietly(["sh", "-c", "find . | cpio -o -H newc --quiet | gzip -1 > ../initrd.gz"], "cpio fails", log, cwd=ram)
    size = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-b", "4096", "-d", root, part / "disk.img", "3G"]
    quietly(size, "mke2fs fails", log)
    shutil.rmtree(root)
    shutil.rmtree(ram)
    part.rename(made)
    return made


class Guests:
    """Guests 1 and 2, whose network cards are unix datagram sockets `vm1.sock` and `vm2.sock` in the run's folder.

    The frames of guest N go to the socket `nicN.sock`, and come from there.
    """

    def __init__(self, made, folder, numbers=(1, 2), mtu=1500, deadline=float("inf")):
        self.folder, self.made, self.mtu = folder, made, mtu
        self.jobs = dict.fromkeys(numbers, 0)
        # Instant at which the lab's time is over.
        self.deadline = deadline
        started = time.monotonic()
        self.processes = {n: self.boot(n) for n in numbers}
        try:
            for n, process in self.processes.items():
                while not (folder / f"up.{n}").exists():
                    if time.monotonic() - started > BOOT_LIMIT:
                        raise LeftOut(f"guest {n} was not up after {BOOT_LIMIT} s")
                    if process.poll() is not None:
                        raise LeftOut(f"QEMU ended while guest {n} booted ({folder}/console.{n} says why)")
                    time.sleep(0.1)
        except LeftOut:
            self.halt(0)
            raise
        self.boot_time = time.monotonic() - started

    def boot(self, n):
        at = self.folder
        off = "csum guest_csum gso guest_tso4 guest_tso6 guest_ecn guest_ufo".split()
        network = f"dgram,id=net,local.type=unix,local.path={at}/vm{n}.sock,remote.type=unix,remote.path={at}/nic{n}.sock"
        card = f"virtio-net-pci,netdev=net,mac=52:54:00:00:00:0{n},romfile=," + ",".join(f"{name}=off" for name in off)
        command = [*NICE, "qemu-system-x86_64", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "512", "-smp", "1"]
        command += ["-nographic", "-no-reboot", "-nodefaults", "-serial", "stdio"]
        command += ["-kernel", f"{self.made}/vmlinuz", "-initrd", f"{self.made}/initrd.gz"]
        # On a busy machine, the emulated timer is too late for the kernel's check of it, and the kernel panics. The kernel also
        # measures the rates of the processor's counter and of its timer wrongly there, and its clock then runs up to six times
        # too fast. So it is told the one, and does without the other; the rate of the old timer chip is fixed.
        words = "console=ttyS0 quiet panic=-1 mitigations=off no_timer_check nolapic_timer "
        words += f"tsc=reliable tsc_early_khz={rate:.0f}" if (rate := counter_rate()) else "tsc=unstable clocksource=acpi_pm"
        command += ["-append", f"{words} guest={n} mtu={self.mtu}"]
        command += ["-drive", f"file={self.made}/disk.img,if=virtio,format=raw,snapshot=on"]
        command += ["-virtfs", f"local,path={at},mount_tag=shared,security_model=none"]
        command += ["-device", "virtio-rng-pci", "-netdev", network, "-device", card]
        console = open(at / f"console.{n}", "w")
        return subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=console, stderr=subprocess.STDOUT)

    def start(self, n, script, limit):
        """Starts a job in guest N."""
        self.jobs[n] += 1
        at = self.folder / f"g{n}.{self.jobs[n]}"
        at.with_name(at.name + ".sh").write_text("ulimit -l unlimited\n" + script + "\n")
        part = at.with_name(at.name + ".part")
        part.write_text(str(limit))
        part.rename(at.with_name(at.name + ".go"))
        return n, at, limit

    def wait(self, job):
        """Waits for a job; returns its exit code and what it printed. Leaves the test out where the lab's time ends first."""
        n, at, limit = job
        code, out = at.with_name(at.name + ".rc"), at.with_name(at.name + ".out")
        # The guest ends a job at its limit; a guest that hangs does not.
        deadline = time.monotonic() + limit + 60
        while not code.exists() and time.monotonic() < min(deadline, self.deadline) and self.processes[n].poll() is None:
            time.sleep(0.05)
        text = out.read_text(errors="replace") if out.exists() else ""
        if not code.exists() and time.monotonic() >= self.deadline:
            raise LeftOut("the lab's time is over")
        return (int(code.read_text()) if code.exists() else 255), text

    def drift(self):
        """The largest deviation of a guest's clock from that of this machine since its boot, as a share of the time between.

        Limits and retransmission timers run by the guests' clocks.
        """
        worst = 0
        for n in self.jobs:
            up = self.folder / f"up.{n}"
            _, text = self.wait(self.start(n, "cut -d ' ' -f 1 /proc/uptime", 60))
            passed = float(text or "nan") - float(up.read_text())
            worst = max(worst, abs(passed / (time.time() - up.stat().st_mtime) - 1))
        return worst

    def serve(self, words, limit):
        """Starts a server in guest 1; returns its job when the server listens."""
        ready, gone = self.folder / "ready", self.folder / "gone"
        for file in (ready, gone):
            file.unlink(missing_ok=True)
        job = self.start(1, SERVE.replace("LIMIT", str(limit)).replace("WORDS", words), limit + 10)
        code = job[1].with_name(job[1].name + ".rc")
        deadline = min(time.monotonic() + READY_LIMIT, self.deadline)
        while not ready.exists() and not code.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        return job

    def dismiss(self, job):
        """Ends a server whose client has failed; returns its exit code and what it printed."""
        (self.folder / "gone").touch()
        return self.wait(job)

    def pair(self, server, client, limit=300):
        """Runs a server in guest 1 and its client in guest 2; returns (exit code, text) of the client and of the server.

        The limit tells a program that hangs from one that is slow because the machine is busy.
        """
        serving = self.serve(server, limit)
        answer = self.wait(self.start(2, client, limit))
        return answer, (self.dismiss if answer[0] else self.wait)(serving)

    def halt(self, patience=15):
        """Switches the guests off."""
        (self.folder / "halt").touch()
        deadline = time.monotonic() + patience
        for process in self.processes.values():
            try:
                process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                process.terminate()
                process.wait()
