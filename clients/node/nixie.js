// Work on messages of Nixie in Node, without other packages.
//
//   const nixie = require("./nixie");
//   nixie.work(async (message) => {
//     const order = message.json();
//   });
//
// Run it with "nixie work QUEUE --persistent -- node worker.js". What the function returns is its
// result; undefined is none. An error fails the attempt, with its stack trace. Standard output is
// standard error, so console.log is safe.
"use strict";
const fs = require("fs");
const readline = require("readline");

// Verdict ends an attempt with an outcome. Its fields are those of a verdict.
class Verdict extends Error {
  constructor(outcome, message, fields) {
    super(message);
    this.fields = { ...fields, outcome };
    if (message) this.fields.message = message;
  }
}

// after is in seconds; without it the policy chooses.
function timed(outcome, message, after, fields) {
  return new Verdict(outcome, message, after === undefined ? fields : { ...fields, retry_after: after });
}

// These are thrown: throw nixie.retry("the bank is away", 30).
const retry = (message, after, fields) => timed("retry", message, after, fields);
const release = (message, after, fields) => timed("release", message, after, fields);
const bury = (message, fields) => new Verdict("bury", message, fields);
const discard = (message, fields) => new Verdict("discard", message, fields);

function send(answer) {
  let rest = Buffer.from(JSON.stringify(answer) + "\n");
  while (rest.length > 0) {
    rest = rest.subarray(fs.writeSync(1, rest));
  }
}

// A message has the fields of its line; body is text, or a Buffer if it is no text.
class Message {
  #then = [];

  constructor(fields) {
    Object.assign(this, fields);
    if (this.body === null) this.body = Buffer.from(this.body_base64, "base64");
  }

  json() {
    return JSON.parse(this.body);
  }

  // progress saves steps that are done, and extends the lease.
  progress(...steps) {
    send({ id: this.id, progress: true, steps });
  }

  // follow enqueues a message together with the success of this one.
  follow(queue, body = "", fields = {}) {
    const what = Buffer.isBuffer(body)
      ? { body_base64: body.toString("base64") }
      : { body: typeof body === "string" ? body : JSON.stringify(body) };
    this.#then.push({ ...fields, ...what, queue });
  }

  answer(result) {
    const answer = result === undefined ? {} : { result };
    if (this.#then.length > 0) answer.then = this.#then;
    return answer;
  }
}

// work calls handle for one message after the other until there are no more.
async function work(handle) {
  Object.defineProperty(process, "stdout", { get: () => process.stderr });
  global.console = new console.Console(process.stderr);
  send({ ready: true });
  for await (const line of readline.createInterface({ input: process.stdin, crlfDelay: Infinity })) {
    const message = new Message(JSON.parse(line));
    let answer;
    try {
      if (message.folder) process.chdir(message.folder); // the worktree of an item of nixie map
      answer = message.answer(await handle(message));
    } catch (error) {
      if (error instanceof Verdict) {
        answer = error.fields;
      } else {
        answer = { outcome: "retry", message: String(error), stack_trace: String((error && error.stack) || error) };
      }
    }
    send({ ...answer, id: message.id });
  }
}

module.exports = { work, retry, release, bury, discard, Verdict };
