"""Gunicorn as its documentation advises: twice as many workers as cores, and one more."""

import os

bind = "127.0.0.1:" + os.environ.get("PORT", "5000")
workers = 2 * len(os.sched_getaffinity(0)) + 1
