"""Ports for the stores of tests: python3 ports.py prints one."""

import random
import socket


def free_port():
    """None of those that the system gives to sockets without one, as ranks open many of these."""
    while True:
        port = random.randrange(20000, 32000)
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
                return port
            except OSError:
                pass  # in use


if __name__ == "__main__":
    print(free_port())
