#!/usr/bin/env node
// Finds the program for this machine and becomes it. Where Node cannot be replaced by another program, it starts
// it as a child, passes signals on, and ends as it ended. Nothing is downloaded and nothing runs at installation.
'use strict';

const { spawn } = require('node:child_process');
const { constants } = require('node:os');

const platform = `${process.platform}-${process.arch}`;
const name = `onehop-bin-${platform}`;

function find() {
  const known = Object.keys(require('./package.json').optionalDependencies || {});
  if (!known.includes(name)) {
    const platforms = known.map((known) => known.replace('onehop-bin-', '')).join(', ');
    console.error(`onehop: there is no build for ${platform}, only for ${platforms}.`);
    return undefined;
  }
  try {
    return require.resolve(`${name}/bin/onehop`);
  } catch {
    console.error(
      `onehop: the package ${name}, which holds the program, is not installed. Install onehop-bin again without ` +
        '--omit=optional (--no-optional), on the kind of machine that it is to run on.',
    );
    return undefined;
  }
}

/** As a child of this process. */
function start(program, words) {
  const child = spawn(program, words, { stdio: 'inherit' });
  // A terminal's Ctrl-C goes to both of us; the child decides when it ends, and a repeated one is no second wish of
  // the person's: onehop counts those within a moment as one.
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP', 'SIGQUIT', 'SIGUSR1', 'SIGUSR2']) {
    process.on(signal, () => child.kill(signal));
  }
  child.on('error', (error) => {
    console.error(`onehop: cannot start ${program}: ${error.message}`);
    process.exitCode = 1;
  });
  child.on('exit', (code, signal) => {
    process.exitCode = signal ? 128 + constants.signals[signal] : code;
  });
}

const program = find();
const words = process.argv.slice(2);
if (program === undefined) {
  process.exitCode = 1;
} else if (typeof process.execve === 'function') {
  process.execve(program, [program, ...words], process.env);
} else {
  start(program, words);
}
