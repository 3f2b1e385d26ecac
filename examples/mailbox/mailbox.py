"""Sends to and receives from a mailbox of Nixie in Redis, with an ordinary client.

    python3 mailbox.py SCRIPT HOST:PORT NAME send VALUE...
    python3 mailbox.py SCRIPT HOST:PORT NAME receive MAX

SCRIPT is the file broker/redis/mailbox.lua of the version of Nixie that made the mailbox.
"""
import json
import sys
import uuid

import redis


class Mailbox:
    def __init__(self, client, script, name):
        self.call = client.register_script(script)
        self.keys = ["nixie:{%s}:%s" % (name, part)
                     for part in ("pending", "held", "records", "counts", "holders", "wake")]

    def run(self, verb, *args):
        return self.call(keys=self.keys, args=(verb,) + args)

    def send(self, value, key=None, headers=(), delay_ms=0):
        """Returns the ID of the record, which is unique in this mailbox."""
        fields = [key, value]
        for name, text in headers:
            fields += [name.encode(), text]
        return self.run("send", delay_ms, b"1" + b"".join(map(field, fields)))[0]

    def receive(self, most=1, lease_ms=30000):
        """Yields records and the function that acknowledges each."""
        token = "%s:" % uuid.uuid4()
        answer = self.run("claim", most, lease_ms, token)
        for at in range(4, len(answer), 3):
            id, stored = answer[at], answer[at + 1]
            sent, body = stored.split(b":", 1)
            yield read(id, int(sent), body), lambda id=id: self.run("ack", id, token) == b"1"


def field(value):
    """A field is its number of bytes, a colon, and the bytes; None is -:"""
    return b"-:" if value is None else b"%d:%s" % (len(value), value)


def read(id, sent, body):
    if body[:1] != b"1":
        raise ValueError("record %r has another format" % id)
    fields, rest = [], body[1:]
    while rest:
        size, rest = rest.split(b":", 1)
        if size == b"-":
            fields.append(None)
        else:
            fields.append(rest[:int(size)])
            rest = rest[int(size):]
    return {"id": id, "sent": sent, "key": fields[0], "value": fields[1],
            "headers": list(zip(fields[2::2], fields[3::2]))}


def main(script, server, name, verb, *rest):
    host, port = server.rsplit(":", 1)
    client = redis.Redis(host=host, port=int(port))
    with open(script) as text:
        mailbox = Mailbox(client, text.read(), name)
    if verb == "send":
        for value in rest:
            print(mailbox.send(value.encode(), key=b"python", headers=[("from", b"python")]).decode())
        return
    for record, acknowledge in mailbox.receive(int(rest[0])):
        print(json.dumps(record, default=bytes.decode))
        if not acknowledge():
            print("the lease of %s has ended: another receiver gets it" % record["id"].decode(), file=sys.stderr)


if __name__ == "__main__":
    if len(sys.argv) < 6:
        sys.exit(__doc__)
    main(*sys.argv[1:])
