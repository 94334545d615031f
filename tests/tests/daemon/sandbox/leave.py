# Leaves a process without parent, session and environment that waits for the file `go`, and then makes files that run code
# later. With an argument, in further namespaces.
import ctypes, os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
if len(sys.argv) > 1 and ctypes.CDLL(None).unshare(0x10000000 | 0x20000):
    os._exit(1)
for descriptor in range(3):
    os.close(descriptor)
with open("pid", "w") as file:
    file.write(str(os.getpid()))
os.rename("pid", "left")
os.execve("/bin/sh", ["sh", "-c", "until [ -e go ]; do sleep 0.01; done; echo evil > .envrc; echo evil > .git/commondir"], {})
