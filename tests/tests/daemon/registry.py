"""A registry of npm packages at a public address that only the network namespace of the daemon has.

    registry.py make FOLDER VERSION    writes package.json and package-lock.json of a project that needs `a`
    registry.py serve READY            serves until its parent ends
"""
import base64, fcntl, gzip, hashlib, http.server, io, json, os, select, socket, struct, sys, tarfile, threading

ADDRESS, PORT = "93.184.215.14", 4873
# It has to be made in the session's folders, and not be there outside of them.
SCRIPT = "echo ran > ../../built; echo ran > ../../../outside; exit 0"


def package(version):
    """The archive of a version, always the same bytes."""
    text = json.dumps({"name": "a", "version": version, "scripts": {"install": SCRIPT}}).encode()
    tar = io.BytesIO()
    with tarfile.open(fileobj=tar, mode="w") as archive:
        info = tarfile.TarInfo("package/package.json")
        info.size = len(text)
        archive.addfile(info, io.BytesIO(text))
    return gzip.compress(tar.getvalue(), mtime=0)


def make(folder, version):
    integrity = "sha512-" + base64.b64encode(hashlib.sha512(package(version)).digest()).decode()
    needs = {"a": version}
    resolved = f"http://registry.example:{PORT}/a/-/a-{version}.tgz"
    packages = {"": {"name": "app", "version": "1.0.0", "dependencies": needs}, "node_modules/a": {
        "version": version, "resolved": resolved, "integrity": integrity, "hasInstallScript": True}}
    lock = {"name": "app", "version": "1.0.0", "lockfileVersion": 3, "requires": True, "packages": packages}
    project = {"name": "app", "version": "1.0.0", "dependencies": needs}
    for name, value in (("package.json", project), ("package-lock.json", lock)):
        with open(os.path.join(folder, name), "w") as file:
            json.dump(value, file, indent=2)


class Registry(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        name = self.path.rsplit("/", 1)[-1]
        found = name.startswith("a-") and name.endswith(".tgz")
        body = package(name[2:-4]) if found else b"{}"
        self.send_response(200 if found else 404)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    do_POST = do_GET

    def log_message(self, *_):
        pass


def serve(ready):
    # It is no process of the test's folders, in which none may be left.
    os.chdir("/")
    with socket.socket() as any_socket:
        up = lambda name: fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh14x", name, 0x41))
        up(b"lo")
        # The loopback device answers for the whole network of its address, and an address of the machine itself is no host of
        # the internet.
        address = struct.pack("HH4s8x", socket.AF_INET, 0, socket.inet_aton("93.184.215.1"))
        fcntl.ioctl(any_socket, 0x8916, struct.pack("16s16s", b"lo:1", address))
        up(b"lo:1")
    server = http.server.ThreadingHTTPServer((ADDRESS, PORT), Registry)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    parent = os.pidfd_open(os.getppid())
    open(ready, "w").close()
    select.select([parent], [], [])


{"make": make, "serve": serve}[sys.argv[1]](*sys.argv[2:])
