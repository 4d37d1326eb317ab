/**
 * SIGINT makes Node print where it is (`--trace-sigint`): the server interrupts a worker whose event loop is stuck, and a
 * worker gets SIGINT for nothing else. Node would give that up for an application that listens to SIGINT itself, as many
 * do to shut down. Such a listener only hears `process.kill(process.pid, 'SIGINT')`, and what is emitted.
 */

/** Must run before the application is loaded. */
export function keepInterrupts() {
  // Node's own listeners to these events install and remove handlers of signals.
  for (const event of ['newListener', 'removeListener']) {
    const listeners = process.rawListeners(event);
    process.removeAllListeners(event);
    process.on(event, function pass(type, ...rest) {
      if (type !== 'SIGINT') for (const listener of listeners) Reflect.apply(listener, this, [type, ...rest]);
    });
  }
  const { kill } = process;
  process.kill = function killOrEmit(pid, signal, ...rest) {
    const isOwn = pid === process.pid && (signal === 'SIGINT' || signal === 2);
    if (!isOwn || process.listenerCount('SIGINT') === 0) return Reflect.apply(kill, this, [pid, signal, ...rest]);
    process.nextTick(() => process.emit('SIGINT', 'SIGINT', 2));
    return true;
  };
}
