# A process outside of the sandbox, with memory and a message queue that others could reach. It tells their names, and
# takes them away when its input ends.
import ctypes, os, sys
libc = ctypes.CDLL(None, use_errno=True)
memory = libc.shmget(0, 64, 0o1600)
queue = b"/toold-test-%d" % os.getpid()
opened = libc.mq_open(queue, os.O_RDWR | os.O_CREAT, 0o600, None)
if memory < 0 or opened < 0:
    sys.exit(os.strerror(ctypes.get_errno()))
print(os.getpid(), memory, queue.decode(), flush=True)
sys.stdin.read()
libc.mq_unlink(queue)
sys.exit(0 if libc.shmctl(memory, 0, None) == 0 else "the memory is gone")
