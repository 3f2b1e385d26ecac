"""Work on messages of Nixie in Python, without other packages.

    import nixie

    @nixie.job
    def charge(message):
        order = message.json()
        ...

    nixie.run()

Run it with "nixie work QUEUE --persistent -- python3 worker.py". A handler(event, context) in
app.py runs with "-- python3 -m nixie app.handler".

What a job returns is its result; None is none. An exception fails the attempt, with its stack
trace. While run() runs, standard output is standard error, so print() is safe. Under "nixie map"
a job runs in the worktree of its item.
"""
import base64
import importlib
import json
import os
import sys
import traceback
from datetime import datetime, timezone


class Verdict(Exception):
    """Ends an attempt with an outcome, after in seconds, and other fields of a verdict."""
    def __init__(self, message="", after=None, **fields):
        super().__init__(message)
        self.fields = dict(fields, outcome=self.outcome, message=message)
        if after is not None:
            self.fields["retry_after"] = after


Retry = type("Retry", (Verdict,), {"outcome": "retry"})  # again, after some seconds at least
Release = type("Release", (Verdict,), {"outcome": "release"})  # given back: it was no attempt
Bury = type("Bury", (Verdict,), {"outcome": "bury"})  # it can never succeed: a dead letter
Discard = type("Discard", (Verdict,), {"outcome": "discard"})  # dropped, and counted


class Message:
    """A message. It has the fields of its line; body is text, or bytes if it is no text."""
    def __init__(self, fields, send):
        self.__dict__.update(fields)
        if self.body is None:
            self.body = base64.b64decode(self.body_base64)
        self._send, self._then = send, []

    def json(self):
        return json.loads(self.body)

    def progress(self, *steps):
        """Saves steps that are done, and extends the lease."""
        self._send({"id": self.id, "progress": True, "steps": list(steps)})

    def then(self, queue, body="", **fields):
        """Enqueues a message together with the success of this one."""
        data = {"body_base64": base64.b64encode(body).decode()} if isinstance(body, bytes) else {"body": body}
        self._then.append(dict(data, queue=queue, **fields))


_jobs = {}  # by type


def job(handle=None, *, type=""):
    """Registers a function for messages of a type; without one, for those of all other types."""
    if handle is None:
        return lambda handle: job(handle, type=type)
    _jobs[type] = handle
    return handle


def run():
    """Works until there are no more messages."""
    out = os.fdopen(os.dup(1), "w", 1, encoding="utf-8", newline="\n")  # it flushes each line
    lines = os.fdopen(os.dup(0), encoding="utf-8", newline="\n")
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)  # programs that a job starts read no messages

    def send(answer):
        out.write(json.dumps(answer) + "\n")

    send({"ready": True})
    for line in lines:
        message = Message(json.loads(line), send)
        try:
            if message.folder:
                os.chdir(message.folder)
            handle = _jobs.get(message.type) or _jobs.get("")
            if handle is None:
                raise Bury("no job for messages of type " + repr(message.type), reason="unknown-type")
            result = handle(message)
            answer = dict({"then": message._then} if message._then else {}, result=result)
        except Verdict as verdict:
            answer = verdict.fields
        except Exception as error:
            text = "".join(traceback.format_exception_only(error)).strip()
            answer = {"outcome": "retry", "message": text, "stack_trace": traceback.format_exc()}
        sys.stdout.flush()
        send(dict(answer, id=message.id))


class Context:
    """The second argument of a handler(event, context)."""
    def __init__(self, message):
        self.aws_request_id, self.function_name, self.deadline = message.id, message.queue, message.deadline

    def get_remaining_time_in_millis(self):
        end = datetime.fromisoformat((self.deadline or "9999-01-01T00:00:00Z")[:19] + "+00:00")
        return max(0, int(1000 * (end - datetime.now(timezone.utc)).total_seconds()))


if __name__ == "__main__":
    sys.path.insert(0, os.getcwd())
    module, _, function = sys.argv[1].rpartition(".")
    handler = getattr(importlib.import_module(module), function)
    job(lambda message: handler(message.json(), Context(message)))
    run()
