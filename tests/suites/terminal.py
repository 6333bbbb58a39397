"""Runs a program on a terminal of its own: terminal.py COLUMNS OUT COMMAND..., 0: a terminal that does not know its
size. What it shows goes to OUT as it is; the status is the command's. With SIGNAL_AT=TEXT in the environment the
command gets a SIGINT when that text has appeared."""
import fcntl
import os
import pty
import signal
import struct
import sys
import termios

columns, out, command = int(sys.argv[1]), sys.argv[2], sys.argv[3:]
until = os.environ.pop("SIGNAL_AT", "").encode()
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    os.execvp(command[0], command)
seen = b""
while True:
    try:
        some = os.read(terminal, 65536)
    except OSError:  # the other side is closed
        break
    if not some:
        break
    seen += some
    if until and until in seen:
        os.kill(pid, signal.SIGINT)
        until = b""
with open(out, "wb") as file:
    file.write(seen)
status = os.waitpid(pid, 0)[1]
sys.exit(os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status))
