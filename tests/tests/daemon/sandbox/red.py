# Tries to do harm from a floor on which commands only read: to change something, to read what is private, to send, and to
# get out. Each line that it prints ends with `done` or with what refused it.
import ctypes, fcntl, os, platform, shutil, socket, struct, sys
daemon, port, pid, home = sys.argv[1], int(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
work = os.getcwd()
libc = ctypes.CDLL(None, use_errno=True)
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
X86 = platform.machine() == "x86_64"

def tell(name, act):
    try:
        act()
        print(name, "done")
    except OSError as error:
        print(name, error.strerror or error)

def call(number, *arguments):
    if libc.syscall(number, *arguments) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

def write(path, how="w"):
    with open(path, how) as file:
        file.write("x")

def read(path):
    with open(path) as file:
        print(file.read())

# Changes.
tell("new file", lambda: write("new"))
tell("append", lambda: write("kept.txt", "a"))
tell("overwrite", lambda: write("kept.txt", "r+"))
tell("truncate", lambda: os.truncate("kept.txt", 0))
tell("truncate on opening", lambda: os.close(os.open("kept.txt", os.O_RDONLY | os.O_TRUNC)))
tell("remove", lambda: os.remove("kept.txt"))
tell("rename", lambda: os.rename("kept.txt", "other.txt"))
tell("exchange", lambda: call(316 if X86 else 276, -100, b"kept.txt", -100, b"red.py", 2))
tell("hard link", lambda: os.link("kept.txt", "linked"))
tell("soft link", lambda: os.symlink("kept.txt", "linked"))
tell("folder", lambda: os.mkdir("made"))
tell("remove folder", lambda: shutil.rmtree("folder"))
tell("mode", lambda: os.chmod("kept.txt", 0o600))
tell("owner", lambda: os.chown("kept.txt", os.getuid(), os.getgid()))
tell("times", lambda: os.utime("kept.txt", (1, 1)))
tell("attribute", lambda: os.setxattr("kept.txt", "user.x", b"x"))
tell("pipe", lambda: os.mkfifo("pipe"))
tell("device", lambda: os.mknod("device", 0o600 | 0o020000, os.makedev(1, 3)))
tell("unnamed file", lambda: os.open(".", os.O_TMPFILE | os.O_RDWR))
tell("file of the home folder", lambda: write(home + "/.bashrc"))
tell("file of /tmp", lambda: write("/tmp/toold-red-%d" % os.getpid()))
tell("file of /var/tmp", lambda: write("/var/tmp/toold-red-%d" % os.getpid()))
tell("through /proc/self/root", lambda: write("/proc/self/root" + work + "/new"))
tell("through /proc/self/cwd", lambda: write("/proc/self/cwd/new"))
tell("its own image", lambda: write("/proc/self/exe", "r+b"))
tell("a setting of the kernel", lambda: write("/proc/sys/kernel/hostname"))
tell("a disk", lambda: os.open((["/dev/" + n for n in os.listdir("/sys/block")] or ["/dev/none"])[0], os.O_RDWR))
def other_rights():
    # Setting the bit, making a file with it, and making one without a name.
    ways = [lambda: os.chmod("red.py", 0o4755), lambda: os.close(os.open("rights", os.O_CREAT | os.O_WRONLY, 0o4755)),
            lambda: os.close(os.open(".", os.O_TMPFILE | os.O_WRONLY, 0o4755)),
            lambda: call(452, -100, b"red.py", 0o4755, 0),
            lambda: call(437, -100, b"rights", ctypes.create_string_buffer(struct.pack("=QQQ", 0o101, 0o4755, 0)), 24)]
    for way in ways:
        try:
            way()
        except OSError:
            continue
        return
    raise OSError(1, "refused in all ways")

tell("rights of its owner", other_rights)
for name in ["loop-control", "userfaultfd", "kvm", "btrfs-control", "fuse", "net/tun", "mem", "kmsg", "tty0", "vcs"]:
    tell("device " + name, lambda: os.open("/dev/" + name, os.O_RDONLY))
for name in os.listdir("/sys/block"):
    tell("disk " + name, lambda: os.open("/dev/" + name, os.O_RDONLY))
tell("badness", lambda: write("/proc/%d/oom_score_adj" % pid))
tell("the daemon's badness", lambda: write("/proc/%d/oom_score_adj" % os.getppid()))

# Private things.
tell("secret", lambda: read(".env"))
tell("deep secret", lambda: read("deep/er/.env.local"))
tell("secret through /proc", lambda: read("/proc/self/cwd/.env"))
tell("secret by descriptor of the folder", lambda: os.open(".env", os.O_RDONLY, dir_fd=os.open(".", os.O_RDONLY)))
tell("secret by O_PATH", lambda: read("/proc/self/fd/%d" % os.open(".env", os.O_PATH)))
tell("file of the home folder", lambda: read(home + "/note"))
tell("key", lambda: read(home + "/.ssh/id_ed25519"))
for name in [".config/git/credentials", ".gitconfig", ".cargo/config.toml", ".npmrc", ".composer/auth.json"]:
    tell("token in " + name, lambda: read(home + "/" + name))
tell("home folder", lambda: print(os.listdir(home)))
tell("another project", lambda: read(os.path.dirname(work) + "/other/code.txt"))
tell("the daemon's state", lambda: print(os.listdir(os.path.dirname(work) + "/state")))
tell("the configuration", lambda: print(os.listdir(os.path.dirname(work) + "/config")))
for name in ["environ", "mem", "maps", "auxv", "stack", "syscall"]:
    tell("its " + name, lambda: read("/proc/%d/%s" % (pid, name)))
for name in ["fd/0", "fd/1", "exe"]:
    tell("its " + name, lambda: print(os.readlink("/proc/%d/%s" % (pid, name))))
for name in ["cwd", "root", "map_files"]:
    tell("its " + name, lambda: print(os.listdir("/proc/%d/%s" % (pid, name))))
tell("its descriptor", lambda: call(438, os.pidfd_open(pid), 0, 0))
def memory(number):
    text = ctypes.create_string_buffer(8)
    here = ctypes.create_string_buffer(struct.pack("=QQ", ctypes.addressof(text), 8))
    there = ctypes.create_string_buffer(struct.pack("=QQ", 0x400000, 8))
    call(number, pid, here, 1, there, 1, 0)

tell("memory of another", lambda: memory(310 if X86 else 270))
tell("change of another's memory", lambda: memory(311 if X86 else 271))
tell("comparison with another", lambda: call(312 if X86 else 272, pid, os.getpid(), 0, 0, 0))
tell("input of the terminal", lambda: fcntl.ioctl(0, 0x5412, b"x"))
tell("trace", lambda: call(101 if X86 else 117, 0x4206, pid, 0, 0))
tell("handle", lambda: call(304 if X86 else 265, -100, ctypes.create_string_buffer(struct.pack("=IiQ", 8, 1, 2)), 0))
tell("kernel log", lambda: read("/dev/kmsg"))

# The network, and other programs.
def connect(family, kind, address, protocol=0):
    socket.socket(family, kind, protocol).connect(address)

tell("TCP", lambda: connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port)))
tell("TCP 6", lambda: connect(socket.AF_INET6, socket.SOCK_STREAM, ("::1", port)))
tell("UDP", lambda: connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port)))
tell("raw", lambda: socket.socket(socket.AF_INET, socket.SOCK_RAW, 1))
tell("packets", lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0))
tell("virtual machine sockets", lambda: socket.socket(40, socket.SOCK_STREAM))
tell("ciphers of the kernel", lambda: socket.socket(38, socket.SOCK_SEQPACKET))
tell("the daemon", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, daemon))
tell("an abstract socket", lambda: connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0toold-red"))
tell("pair of datagrams", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
tell("pair of raw sockets", lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_RAW))
tell("raw Unix socket", lambda: socket.socket(socket.AF_UNIX, socket.SOCK_RAW))
tell("listener", lambda: socket.socketpair()[0].listen())
tell("bound pair", lambda: socket.socketpair()[0].bind("\0toold-red-bound"))
for protocol in [2, 9, 11, 12, 15, 16]:
    tell("netlink %d" % protocol, lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol))

def change_link():
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as route:
        body = struct.pack("=BxHiII", 0, 0, 1, 0, 1)
        route.send(struct.pack("=IHHII", 16 + len(body), 16, 5, 1, 0) + body)
        error = struct.unpack_from("=i", route.recv(4096), 16)[0]
        if error:
            raise OSError(-error, os.strerror(-error))

tell("change of an interface", change_link)
tell("rings", lambda: call(425, 8, ctypes.create_string_buffer(120)))
tell("signal", lambda: os.kill(pid, 15))
tell("signal to a thread", lambda: call(234 if X86 else 131, pid, pid, 15))
tell("signal by descriptor", lambda: call(424, os.pidfd_open(pid), 15, 0, 0))
tell("scheduling", lambda: os.sched_setaffinity(pid, os.sched_getaffinity(0)))
tell("priority", lambda: os.setpriority(os.PRIO_PROCESS, pid, os.getpriority(os.PRIO_PROCESS, pid)))
tell("limits", lambda: call(302 if X86 else 261, pid, 4, 0, ctypes.create_string_buffer(16)))
tell("keys", lambda: call(250 if X86 else 219, 0, -4, 0))
tell("bpf", lambda: call(321 if X86 else 280, 0, ctypes.create_string_buffer(64), 64))
tell("page faults", lambda: call(323 if X86 else 282, 0))
tell("performance of all", lambda: call(298 if X86 else 241, ctypes.create_string_buffer(128), -1, 0, -1, 0))

# Out of the namespaces, or into more of them.
tell("another's mounts", lambda: call(308 if X86 else 268, os.open("/proc/%d/ns/mnt" % pid, os.O_RDONLY), 0))
tell("mount", lambda: call(165 if X86 else 40, b"none", b"/tmp", b"tmpfs", 0, 0))
tell("remount", lambda: call(165 if X86 else 40, b"none", work.encode(), b"none", 32 | 4096, 0))
tell("unmount", lambda: call(166 if X86 else 39, work.encode(), 2))
tell("copy of a tree", lambda: call(428, -100, b"/", 1))
tell("another root", lambda: os.chroot("/tmp"))
tell("new file system", lambda: call(430, b"tmpfs", 0))
tell("attributes of mounts", lambda: call(442, -100, b"/", 0x8000, ctypes.create_string_buffer(32), 32))
tell("copy of a tree with attributes", lambda: call(467, -100, b"/", 1, 0, 0))
tell("group of processes", lambda: os.mkdir("/sys/fs/cgroup/toold-red"))
tell("process of a group", lambda: write("/sys/fs/cgroup/cgroup.procs"))
tell("mapping of users", lambda: write("/proc/%d/uid_map" % pid))
if X86:
    # The same calls under the numbers of another ABI.
    tell("mount by x32", lambda: call(0x40000000 | 165, b"none", b"/tmp", b"tmpfs", 0, 0))
    tell("socket by x32", lambda: call(0x40000000 | 41, 16, 3, 16))

def nested():
    child = os.fork()
    if child == 0:
        libc.unshare(0x10000000 | 0x20000)
        status = 0
        for act in [lambda: write(work + "/nested"), lambda: read(work + "/.env"), lambda: read(home + "/note"),
                    lambda: call(165 if X86 else 40, b"none", work.encode(), b"tmpfs", 0, 0)]:
            try:
                act()
                status = 1
            except OSError:
                pass
        os._exit(status)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0:
        raise OSError(1, "refused in nested namespaces too")

def in_memory():
    file = os.memfd_create("red")
    with open("/bin/sh", "rb") as shell:
        os.write(file, shell.read())
    child = os.fork()
    if child == 0:
        try:
            os.execve(file, ["sh", "-c", "echo x > from-memory || cat .env"], os.environ)
        finally:
            os._exit(1)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) != 0:
        raise OSError(1, "refused to a program in memory too")

def new_user(number, *arguments):
    child = libc.syscall(number, *arguments)
    if child < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    if child == 0 and number != (272 if X86 else 97):
        os._exit(0)

tell("user namespace by clone", lambda: new_user(56 if X86 else 220, 0x10000000 | 17, 0, 0, 0, 0))
clone = ctypes.create_string_buffer(struct.pack("=8Q", 0x10000000, 0, 0, 0, 17, 0, 0, 0))
tell("user namespace by clone3", lambda: new_user(435, clone, 64))
tell("nested namespaces", nested)
tell("user namespace", lambda: new_user(272 if X86 else 97, 0x10000000))
tell("a program in memory", in_memory)
print("all was tried")
