"""The map's data as a Flask application, with a small pool of connections of its own."""

import math
import os
import queue
import sys
import tempfile
from contextlib import contextmanager

import pymysql
from flask import Flask, jsonify, request

POINTS_MAX = 1000
CONNECTIONS_MAX = 5
DEADLINE_S = float(os.environ.get("MAP_DEADLINE_MS", "10000")) / 1000
SOCKET = os.environ.get("MAP_SOCKET") or os.path.join(tempfile.gettempdir(), "onehop-map.sock")
PRETTY = os.environ.get("MAP_JSON") == "pretty"
# The grid of grid.mjs.
CELLS_PER_DEGREE = 2
ROW = 1000


class Pool:
    """At most so many connections, each made when it is needed first."""

    def __init__(self, most):
        # The one that came back last goes out first, so that there are no more than are needed at once.
        self.free = queue.LifoQueue()
        for _ in range(most):
            self.free.put(None)

    @contextmanager
    def connection(self):
        connection = self.free.get(timeout=DEADLINE_S / 2)
        try:
            connection = connection or connect()
            yield connection
        except BaseException:
            if connection:
                connection.close()
            connection = None
            raise
        finally:
            self.free.put(connection)


def connect():
    patience = DEADLINE_S / 2
    return pymysql.connect(
        unix_socket=SOCKET, user="map", database="map", charset="utf8mb4", autocommit=True,
        connect_timeout=math.ceil(patience), read_timeout=patience, cursorclass=pymysql.cursors.DictCursor,
    )


app = Flask(__name__, static_folder=None)
app.json.sort_keys = False
app.json.ensure_ascii = False
app.json.compact = not PRETTY
pool = Pool(CONNECTIONS_MAX)


def row(lat):
    return math.floor((min(max(lat, -90), 90) + 90) * CELLS_PER_DEGREE)


def column(lng):
    return math.floor((min(max(lng, -180), 180) + 180) * CELLS_PER_DEGREE)


def nearest_first(south, west, north, east, since, most):
    """A statement and its values: the points of a view that changed since then, the nearest to its centre first."""
    rows = range(row(south), row(north) + 1)
    cells = [each * ROW + column(lng) for each in rows for lng in (west, east)]
    lat, lng = (south + north) / 2, (west + east) / 2
    sql = f"""SELECT id, lat, lng, kind, name, note, updated FROM points
WHERE ({" OR ".join("cell BETWEEN %s AND %s" for _ in rows) or "FALSE"})
AND lat BETWEEN %s AND %s AND lng BETWEEN %s AND %s AND updated > %s
ORDER BY POW(lat - %s, 2) + POW((lng - %s) * COS(RADIANS(%s)), 2), id LIMIT %s"""
    return sql, (*cells, south, north, west, east, since, lat, lng, lat, most)


def answer(value, status=200, headers=None):
    """As Flask does it, or with the same bytes as JavaScript: `jsonify` ends with a line break."""
    if PRETTY:
        return jsonify(value), status, headers
    body = app.json.dumps(value, separators=(",", ":"))
    return app.response_class(body, status, headers, mimetype="application/json")


def number(name, missing=math.nan):
    text = request.args.get(name)
    try:
        return float(text) if text else missing
    except ValueError:
        return math.nan


@app.get("/raw_data")
def raw_data():
    south, west, north, east = (number(name) for name in ("swLat", "swLng", "neLat", "neLng"))
    since, limit = number("since", 0), number("limit", POINTS_MAX)
    if not all(map(math.isfinite, (south, west, north, east, since, limit))) or limit < 1:
        return answer({"error": "swLat, swLng, neLat and neLng are numbers, and so are since and limit"}, 400)
    most = min(math.floor(limit), POINTS_MAX)
    try:
        with pool.connection() as connection, connection.cursor() as cursor:
            cursor.execute(*nearest_first(south, west, north, east, since, most))
            return answer(cursor.fetchall())
    except (queue.Empty, pymysql.MySQLError, OSError) as error:
        print(repr(error), file=sys.stderr)
        return answer({"error": "the database does not answer"}, 503, {"Retry-After": "1"})


if __name__ == "__main__":
    app.run(host="127.0.0.1", port=int(os.environ.get("PORT", "5000")))
