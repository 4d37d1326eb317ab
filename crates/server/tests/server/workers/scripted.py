#!/usr/bin/env python3
"""A worker of docs/worker-protocol.md that does what its file says: its first word is a behaviour.

Started in place of a JavaScript runtime: `scripted.py WORKER.MJS FILE`. It keeps the protocol except where the
behaviour is to break it.
"""

import os
import select
import socket
import struct
import sys
import threading
import time

HELLO, READY, FAILED, PING, PONG, DRAIN, RETIRE = 1, 2, 3, 4, 5, 6, 7
REQUEST, RESPONSE, INFORMATIONAL, FILE, DATA, TRAILERS, RESET, CREDIT = range(0x10, 0x18)
END = 1
UNKNOWN = 0xFFFFFFFFFFFFFFFF


def frame(kind, payload=b"", slot=0, generation=0, end=False):
    return struct.pack("<IBBHI", len(payload), kind, END if end else 0, slot, generation) + payload


def response(slot, generation, body=b"", status=200, fields=b"", length=UNKNOWN, end=True):
    payload = struct.pack("<HHIQ", status, 0, len(fields), length) + fields + body
    return frame(RESPONSE, payload, slot, generation, end)


class Lane:
    def __init__(self, descriptor):
        self.socket = socket.socket(fileno=descriptor)
        self.socket.setblocking(True)
        self.unread = b""

    def frames(self):
        """What has arrived, as (kind, end, slot, generation, payload); None at the end."""
        received = self.socket.recv(1 << 20)
        if not received:
            return None
        self.unread += received
        found = []
        while len(self.unread) >= 12:
            length, kind, flags, slot, generation = struct.unpack_from("<IBBHI", self.unread)
            if len(self.unread) < 12 + length:
                break
            found.append((kind, flags & END, slot, generation, self.unread[12 : 12 + length]))
            self.unread = self.unread[12 + length :]
        return found

    def send(self, data):
        self.socket.sendall(data)


class Worker:
    def __init__(self, behaviour, argument):
        self.behaviour = behaviour
        self.argument = argument
        first, last = map(int, os.environ["ONEHOP_LANES"].split("-"))
        self.control = Lane(first)
        self.lanes = [Lane(number) for number in range(first + 1, last + 1)]
        self.bodies = {}
        self.begun = 0
        self.draining = False

    def run(self):
        while True:
            lanes = [self.control, *self.lanes]
            ready, _, _ = select.select([lane.socket for lane in lanes], [], [])
            for lane in lanes:
                if lane.socket not in ready:
                    continue
                frames = lane.frames()
                if frames is None:
                    os._exit(0)
                for received in frames:
                    if lane is self.control:
                        self.on_control(*received)
                    else:
                        self.on_data(lane, *received)

    def on_control(self, kind, end, slot, generation, payload):
        if kind == HELLO:
            if self.behaviour == "never_ready":
                return
            if self.behaviour == "garbage_handshake":
                self.control.send(b"Debugger listening on ws://127.0.0.1\n")
                return
            if self.behaviour == "fails":
                self.control.send(frame(FAILED, b"SyntaxError: Unexpected token\n    at server.mjs:3:1"))
                os._exit(1)
            text = b"scripted\n1.0\n0\n"
            transport = 0
            if self.behaviour.startswith("http"):
                listen(self.behaviour, self.argument)
                transport = 7 if self.behaviour == "http_unknown" else 1
            if self.behaviour.startswith("server_"):
                transport = 2
            self.control.send(frame(READY, struct.pack("<HHI", 1, transport, len(text)) + text))
        elif kind == PING:
            if self.behaviour == "mute" and self.begun:
                return
            token = payload[:8]
            delay = int(self.argument) * 1000 if self.behaviour == "late_loop" else 0
            self.control.send(frame(PONG, token + struct.pack("<IIQQQ", delay, 0, self.begun, 1 << 20, 8 << 20)))
        elif kind == RETIRE:
            os._exit(0)

    def on_data(self, lane, kind, end, slot, generation, payload):
        if kind == REQUEST:
            self.begun += 1
            (head_length,) = struct.unpack_from("<I", payload, 40)
            head, body = payload[44 : 44 + head_length], payload[44 + head_length :]
            self.bodies[lane, slot] = body
            self.method, self.facts = payload[0], payload[1]
            if end or self.behaviour not in ("echo_body", "trailers_back"):
                self.answer(lane, slot, generation, payload, head)
        elif kind == TRAILERS and self.behaviour == "trailers_back":
            lane.send(response(slot, generation, b"%d|" % len(self.bodies[lane, slot]) + payload))
        elif kind == DATA and self.behaviour == "upgrades":
            lane.send(frame(DATA, payload.upper(), slot, generation, bool(end)))
        elif self.behaviour.startswith("tunnel_"):
            self.on_tunnel(lane, kind, end, slot, generation, payload)
        elif kind in (DATA, TRAILERS) and self.behaviour in ("echo_body", "trailers_back"):
            if kind == DATA:
                self.bodies[lane, slot] = self.bodies.get((lane, slot), b"") + payload
                if payload:
                    credit = struct.pack("<I", len(payload))
                    lane.send(frame(CREDIT, credit, slot, generation) + frame(CREDIT, credit, 0xFFFF, 0))
            if end:
                lane.send(response(slot, generation, str(len(self.bodies[lane, slot])).encode()))

    def on_tunnel(self, lane, kind, end, slot, generation, payload):
        """Keeps what the client says; how it ends stands behind that in the file that is the argument."""
        if kind == DATA:
            self.bodies[lane, slot] += payload
        if kind == DATA and end and self.behaviour == "tunnel_last":
            lane.send(frame(DATA, b"last ", slot, generation))
            lane.send(frame(DATA, b"words", slot, generation, True))
        if end or kind == RESET:
            how = "reset %d" % struct.unpack("<I", payload) if kind == RESET else "end"
            with open(self.argument + ".new", "wb") as file:
                file.write(self.bodies[lane, slot] + b"|" + how.encode())
            os.rename(self.argument + ".new", self.argument)

    def answer(self, lane, slot, generation, payload, head):
        records = head.split(b"\n")
        target = records[0].decode("latin-1")
        request_id = payload[24:32][::-1].hex()
        behave = getattr(self, "do_" + self.behaviour, self.do_answer)
        behave(lane, slot, generation, target, request_id, records)

    def do_answer(self, lane, slot, generation, target, request_id, records):
        fields = b"\xd6text/plain\nX-Own-Case: yes\n"
        lane.send(response(slot, generation, f"{os.getpid()} {target}".encode(), fields=fields))

    def do_echo_body(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, str(len(self.bodies[lane, slot])).encode()))

    def do_trailers_back(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, b"%d|none" % len(self.bodies[lane, slot])))

    def do_facts(self, lane, slot, generation, target, request_id, records):
        lane.send(response(slot, generation, b"%d\n" % self.facts + b"\n".join(records)))

    def do_odd_head(self, lane, slot, generation, *_):
        fields = b"x-oDD-!#$%&'*+.^_`|~:1\nSet-Cookie:a=1\nSet-Cookie:b=2\nsEt-cOOkie:c=3\nX-Latin:caf\xe9 \x80\xff\n"
        fields += b"X-Empty:\nX-Tab:a\tb\ncontent-type:text/plain\nETag:W/\"x\"\n"
        fields += b"".join(b"X-Fill-%d:%s\n" % (number, b"v" * 400) for number in range(150))
        lane.send(response(slot, generation, b"body", fields=fields))

    def do_many_fields(self, lane, slot, generation, *_):
        fields = b"".join(b"Set-Cookie:c%d=%d\n" % (number, number) for number in range(200))
        lane.send(response(slot, generation, b"body", fields=fields))

    def do_conditional(self, lane, slot, generation, target, request_id, records):
        asked = b"\n".join(records[1:]).lower()
        body = b"a page of text. " * 200
        fields = b'ETag:"x"\nAccept-Ranges:bytes\n'
        if b'"x"' in asked:
            lane.send(response(slot, generation, status=304, fields=fields))
            return
        fields += b"Content-Type:text/html; charset=utf-8\n"
        is_head = self.method == 2
        lane.send(response(slot, generation, b"" if is_head else body, fields=fields, length=len(body)))

    def do_informs(self, lane, slot, generation, *_):
        lane.send(frame(INFORMATIONAL, struct.pack("<HHI", 102, 0, 0), slot, generation))
        link = b"Link:</a.css>; rel=preload\nLink:</b.css>; rel=preload\n"
        lane.send(frame(INFORMATIONAL, struct.pack("<HHI", 103, 0, len(link)) + link, slot, generation))
        lane.send(response(slot, generation, b"final"))

    def do_upgrades(self, lane, slot, generation, *_):
        fields = b"Upgrade:echo\nX-Own:yes\nSet-Cookie:a=b\nSet-Cookie:c=d\n"
        lane.send(response(slot, generation, status=101, fields=fields, end=False))

    def do_tunnel_last(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, status=101, fields=b"Upgrade:echo\n", end=False))

    def do_tunnel_bye(self, lane, slot, generation, *_):
        self.do_tunnel_last(lane, slot, generation)
        lane.send(frame(DATA, b"bye", slot, generation, True))

    def do_tunnel_reset(self, lane, slot, generation, *_):
        self.do_tunnel_bye(lane, slot, generation)
        lane.send(frame(RESET, struct.pack("<I", 3), slot, generation))

    def do_announced_trailers(self, lane, slot, generation, *_):
        fields = b"Trailer:Checksum, X-Odd\n"
        lane.send(response(slot, generation, b"body", fields=fields, end=False))
        lane.send(frame(TRAILERS, b"Checksum:abc\nx-oDD:caf\xe9\n", slot, generation, True))

    def do_show_head(self, lane, slot, generation, target, request_id, records):
        lane.send(response(slot, generation, b"\n".join(records), fields=b"\xd6text/plain\n"))

    def do_sessions(self, lane, slot, generation, target, *_):
        if target.endswith("/die"):
            os._exit(7)
        body = str(os.getpid())
        if target.endswith("/begin"):
            body = '0{"sid":"%d-%d","upgrades":["websocket"]}' % (os.getpid(), self.begun)
        if self.begun % 2:
            lane.send(response(slot, generation, body.encode()))
        else:
            lane.send(response(slot, generation, end=False) + frame(DATA, body.encode(), slot, generation, True))

    def do_garbage(self, lane, *_):
        lane.send(b"HTTP/1.1 200 OK\r\n\r\n" * 4)

    def do_huge_frame(self, lane, slot, generation, *_):
        lane.send(struct.pack("<IBBHI", 0xFFFFFFFF, RESPONSE, END, slot, generation))

    def do_answers_twice(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, b"one") + response(slot, generation, b"two"))

    def do_two_heads(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, end=False) + response(slot, generation, b"two"))

    def do_gone_slot(self, lane, slot, generation, *_):
        lane.send(response(slot + 77, 5, b"nobody asked"))

    def do_data_first(self, lane, slot, generation, *_):
        lane.send(frame(DATA, b"early", slot, generation))

    def do_too_much_data(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, end=False))
        for _ in range(256):
            lane.send(frame(DATA, b"x" * 65536, slot, generation))

    def do_never(self, *_):
        pass

    def do_late(self, lane, slot, generation, target, *_):
        if "slow" in target:
            time.sleep(float(self.argument))
        lane.send(response(slot, generation, target.encode()))

    def do_closes_lane(self, lane, *_):
        lane.socket.close()
        time.sleep(60)

    def do_dies(self, lane, slot, generation, target, *_):
        if "die" in target:
            sys.stderr.write("the handler is about to die\n")
            sys.stderr.flush()
            os._exit(7)
        self.do_answer(lane, slot, generation, target, "", [])

    def do_dies_in_the_middle(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, b"half of", length=100, end=False))
        # The first half has to be on its way before the end is seen.
        time.sleep(0.2)
        os._exit(7)

    def do_more_than_promised(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, b"12", length=5, end=False))
        lane.send(frame(DATA, b"3456789", slot, generation, True))

    def do_less_than_promised(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, b"12", length=5, end=False) + frame(DATA, b"", slot, generation, True))

    def do_bad_field(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, b"x", fields=b"bad name: x\n"))

    def do_splits_field(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, b"x", fields=b"a: b\r\rSet-Cookie: c=d\n"))

    def do_own_framing(self, lane, slot, generation, *_):
        fields = b"Transfer-Encoding: chunked\nConnection: keep-alive, close\nKeep-Alive: timeout=9\nContent-Length: 7\n"
        lane.send(response(slot, generation, b"body", fields=fields))

    def do_hints(self, lane, slot, generation, *_):
        link = b"Link: </app.css>; rel=preload\n"
        lane.send(frame(INFORMATIONAL, struct.pack("<HHI", 103, 0, len(link)) + link, slot, generation))
        lane.send(response(slot, generation, b"after hints"))

    def do_trailers(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, b"part ", end=False) + frame(DATA, b"two", slot, generation))
        lane.send(frame(TRAILERS, b"Checksum: abc\n", slot, generation, True))

    def do_refuses(self, lane, slot, generation, target, *rest):
        marker = self.argument
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return self.do_answer(lane, slot, generation, target, *rest)
        lane.send(frame(RESET, struct.pack("<I", 4), slot, generation))

    def do_handler_fails(self, lane, slot, generation, *_):
        lane.send(frame(RESET, struct.pack("<I", 3), slot, generation))

    def do_hangs_up(self, lane, slot, generation, target, *_):
        if target.endswith("/head"):
            lane.send(response(slot, generation, b"half of", length=100, end=False))
        if target.endswith("/asks"):
            lane.send(frame(INFORMATIONAL, struct.pack("<HHI", 100, 0, 0), slot, generation))
        if target.endswith("/answer"):
            return self.do_answer(lane, slot, generation, target, "", [])
        lane.send(frame(RESET, struct.pack("<I", 7), slot, generation))

    def gather(self, lane, slot, generation, target):
        """Answers all when as many wait as the behaviour's argument says."""
        waiting = self.__dict__.setdefault("waiting", [])
        waiting.append((lane, slot, generation))
        if len(waiting) == int(self.argument):
            for lane, slot, generation in waiting:
                lane.send(response(slot, generation, b"all are here"))
            waiting.clear()

    def do_server_gathers(self, lane, slot, generation, target, *_):
        self.gather(lane, slot, generation, target)

    def do_handler_gathers(self, lane, slot, generation, target, *_):
        self.gather(lane, slot, generation, target)

    def do_unasked_upgrade(self, lane, slot, generation, *_):
        lane.send(response(slot, generation, status=101, fields=b"Upgrade: websocket\n", end=False))

    def do_sends_file(self, lane, slot, generation, target, *_):
        path = target.split("path=")[1].encode()
        head = struct.pack("<HHIQ", 200, 0, 0, UNKNOWN)
        payload = head + struct.pack("<QQI", 0, UNKNOWN, len(path)) + path
        lane.send(frame(FILE, payload, slot, generation, True))

    def do_names_file(self, lane, slot, generation, target, *_):
        field = target.split("field=")[1].replace("=", ": ")
        lane.send(response(slot, generation, fields=field.encode() + b"\n"))


def listen(behaviour, argument):
    """HTTP/1.1 on the socket that the server named, each connection on a thread of its own."""
    path = os.environ["ONEHOP_HTTP_SOCKET"]
    if behaviour == "http_link":
        os.symlink(argument, path)
        return
    if behaviour == "http_nowhere":
        return
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(path)
    listener.listen(64)

    def accept():
        while True:
            connection, _ = listener.accept()
            threading.Thread(target=serve, args=(connection, path, argument), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()


def serve(connection, path, argument):
    unread = b""
    while True:
        while b"\r\n\r\n" not in unread:
            received = connection.recv(1 << 16)
            if not received:
                return
            unread += received
        head, _, unread = unread.partition(b"\r\n\r\n")
        target = head.split(b" ")[1].decode("latin-1")
        fields = ""
        if b"upgrade: echo" in head.lower():
            connection.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
            if target.endswith("/bye"):
                connection.sendall(b"bye")
                connection.shutdown(socket.SHUT_WR)
                heard = b""
                while received := connection.recv(1 << 16):
                    heard += received
                with open(argument + ".new", "wb") as file:
                    file.write(heard + b"|end")
                os.rename(argument + ".new", argument)
                return
            connection.sendall(unread)
            while received := connection.recv(1 << 16):
                connection.sendall(received.upper())
            return
        if target.endswith("/die"):
            os._exit(7)
        if target.endswith("/hold"):
            open(argument + ".begun", "w").close()
            while not os.path.exists(argument):
                time.sleep(0.01)
        if target.endswith("/swap"):
            os.unlink(path)
            os.symlink(argument, path)
            fields = "Connection: close\r\n"
        body = f"{os.getpid()} {target} {os.environ.get('ONEHOP_PROTOCOL')} {os.environ.get('ONEHOP_PORT')}"
        if target.endswith("/begin"):
            body = '0{"sid":"%d-%d"}' % (os.getpid(), id(head))
        connection.sendall(f"HTTP/1.1 200 OK\r\n{fields}Content-Length: {len(body)}\r\n\r\n{body}".encode())
        if fields:
            connection.close()
            return


def main():
    words = open(sys.argv[-1], encoding="utf-8").read().split()
    behaviour, argument = words[0], words[1] if len(words) > 1 else ""
    if behaviour == "exits_at_start":
        sys.stderr.write("Error: Cannot find module 'express'\n")
        os._exit(3)
    Worker(behaviour, argument).run()


if __name__ == "__main__":
    main()
