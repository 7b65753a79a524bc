"""Collects garbage on a thread of its own, because older Pythons crash where they do it.

Before 3.12, CPython may begin a collection while it changes a context variable. The collection closes the coroutine of
a cut call, LiteLLM resets a context variable in it, and the interrupted change goes on with freed memory: a
segmentation fault (https://github.com/python/cpython/issues/148891). A thread has a context of its own.
"""

import gc
import sys
import threading
import time

INTERVAL_SECONDS = 1


def collect():
    """Collects every INTERVAL_SECONDS."""
    while True:
        time.sleep(INTERVAL_SECONDS)
        gc.collect()


def collect_on_a_thread():
    """Moves collection to a thread, where Python needs that."""
    if sys.version_info < (3, 12):
        gc.disable()
        threading.Thread(target=collect, name="garbage", daemon=True).start()
