# Leaves a process without parent, session and environment that waits for the file `go`, and then makes files that run code
# later.
import os, sys
if os.fork():
    os._exit(0)
os.setsid()
if os.fork():
    os._exit(0)
for descriptor in range(3):
    os.close(descriptor)
with open("pid", "w") as file:
    file.write(str(os.getpid()))
os.rename("pid", "left")
# No shell: one that is stopped while it starts `sleep` cannot be seen to be stopped.
then = """
import os, time
while not os.path.exists("go"):
    time.sleep(0.01)
for name in (".envrc", ".git/commondir"):
    try:
        with open(name, "w") as file:
            file.write("evil\\n")
    except OSError:
        pass
"""
os.execve(sys.executable, ["python3", "-c", then], {})
