/**
 * One connected socket: bytes in, bytes out. It hides what differs between Node and Bun and knows no frame.
 *
 * A channel calls `owner.received(bytes, length)` with a buffer that is only lent, `owner.drained()` when what it
 * had to keep back is written, and `owner.ended(error)` once.
 */
import fs from 'node:fs';
import net from 'node:net';
import { fromRoot } from './isolate.mjs';

/** Node's own, whatever tools put in its place later. */
const { writeSync } = fs;

/** One read takes at most this much: a few hundred small requests, or one piece of a body with its head. */
const READ_BYTES = 131_072;

/**
 * @param {number} descriptor a connected stream socket
 * @param {{received(bytes: Uint8Array, length: number): void, drained(): void, ended(error?: Error): void}} owner
 */
export function openChannel(descriptor, owner) {
  return process.versions.bun ? openBunChannel(descriptor, owner) : new NodeChannel(descriptor, owner);
}

class NodeChannel {
  #descriptor;
  #socket;
  #blocked = false;
  #open = true;

  constructor(descriptor, owner) {
    this.#descriptor = descriptor;
    const finish = (error) => {
      if (!this.#open) return;
      this.#open = false;
      owner.ended(error);
    };
    this.#socket = new net.Socket({
      fd: descriptor,
      readable: true,
      writable: true,
      onread: {
        buffer: Buffer.allocUnsafeSlow(READ_BYTES),
        callback: (length, buffer) => {
          owner.received(buffer, length);
          return true;
        },
      },
    });
    this.#socket.on('end', finish);
    this.#socket.on('error', finish);
    this.#socket.on('close', () => finish());
    // Called in the context of whoever wrote last, and what follows is nobody's in particular.
    this.resume = () => fromRoot(() => {
      this.#blocked = false;
      if (this.#open) owner.drained();
    });
  }

  /**
   * Writes the first `length` bytes. True: all are written and the buffer is free again. False: the channel keeps
   * the buffer and says `drained` when it is through.
   */
  write(buffer, length) {
    if (!this.#open) return true;
    // The descriptor does not block: a write to it says at once whether the buffer is free again. The stream's own
    // write costs the same (bench/lane.mjs), but tells that only in a callback, and is an async resource each time.
    // Where the kernel does not take everything, the stream waits for it.
    let written = 0;
    if (!this.#blocked) {
      try {
        written = writeSync(this.#descriptor, buffer, 0, length);
      } catch (error) {
        if (error.code !== 'EAGAIN') {
          this.#socket.destroy(error);
          return true;
        }
      }
      if (written === length) return true;
    }
    this.#blocked = true;
    this.#socket.write(buffer.subarray(written, length), this.resume);
    return false;
  }

  /** Whether the channel alone keeps the process alive. */
  hold(isHeld) {
    if (isHeld) this.#socket.ref();
    else this.#socket.unref();
  }

  close() {
    this.#open = false;
    this.#socket.destroy();
  }
}

async function openBunChannel(descriptor, owner) {
  /* global Bun */
  let rest = null;
  let open = true;
  const finish = (error) => {
    if (!open) return;
    open = false;
    owner.ended(error);
  };
  const socket = await Bun.connect({
    fd: descriptor,
    socket: {
      binaryType: 'buffer',
      data(_, bytes) {
        owner.received(bytes, bytes.length);
      },
      drain() {
        if (rest === null) return;
        const written = Math.max(0, socket.write(rest));
        if (written < rest.length) {
          rest = rest.subarray(written);
          return;
        }
        rest = null;
        if (open) owner.drained();
      },
      end: () => finish(),
      close: () => finish(),
      error: (_, error) => finish(error),
    },
  });
  return {
    write(buffer, length) {
      if (!open) return true;
      const written = Math.max(0, socket.write(buffer.subarray(0, length)));
      if (written === length) return true;
      rest = buffer.subarray(written, length);
      return false;
    },
    hold(isHeld) {
      if (isHeld) socket.ref();
      else socket.unref();
    },
    close() {
      open = false;
      socket.end();
    },
  };
}
