"""Functions run by several threads at once."""

from __future__ import annotations

import threading


def together(call, n, patience=120.0):
    """Run a function in n threads; it gets the number of its thread."""
    failed = []

    def guarded(me):
        try:
            call(me)
        except BaseException as error:  # raised below, where a test sees it
            failed.append(error)

    threads = [threading.Thread(target=guarded, args=(me,)) for me in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(patience)
        assert not thread.is_alive()
    if failed:
        raise failed[0]
