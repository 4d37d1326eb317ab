"""Gunicorn as its documentation advises: twice as many workers as cores, and one more."""

import multiprocessing
import os

bind = "127.0.0.1:" + os.environ.get("PORT", "5000")
workers = 2 * multiprocessing.cpu_count() + 1
