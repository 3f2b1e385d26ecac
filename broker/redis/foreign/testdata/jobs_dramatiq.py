# Messages of Dramatiq that fail until the key fixed is there: jobs_dramatiq.py work, enqueue ID NUMBER,
# chain ID NUMBER, retry ID, remove ID. PREFIX is the namespace.
import os
import signal
import sys

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker
from dramatiq.message import Message

namespace = os.environ.get("PREFIX") or "dramatiq"
broker = RedisBroker(url=os.environ["REDIS_URL"], namespace=namespace)
dramatiq.set_broker(broker)
connection = redis.Redis.from_url(os.environ["REDIS_URL"])


@dramatiq.actor(queue_name="mails", max_retries=1, min_backoff=1, max_backoff=1)
def mail(n):
    if not connection.get("fixed"):
        raise ValueError("boom %d" % n)
    connection.rpush("done", n)


@dramatiq.actor(queue_name="mails")
def after():
    connection.rpush("done", "after")


def take(message_id):
    dead = namespace + ":mails.XQ"
    for entry in connection.zrange(dead, 0, -1):
        data = connection.hget(dead + ".msgs", entry)
        if Message.decode(data).message_id == message_id:
            connection.zrem(dead, entry)
            connection.hdel(dead + ".msgs", entry)
            return Message.decode(data)


def message(n):
    return mail.message(n).copy(message_id=sys.argv[2])


def retry():
    dead = take(sys.argv[2])
    for name in ("retries", "traceback", "requeue_timestamp"):
        dead.options.pop(name, None)
    broker.do_enqueue("mails", dead.options["redis_message_id"], dead.encode())


def work():
    dramatiq.Worker(broker, worker_threads=1).start()
    signal.pause()


acts = {
    "enqueue": lambda: broker.enqueue(message(int(sys.argv[3]))),
    "chain": lambda: dramatiq.pipeline([message(int(sys.argv[3])), after.message_with_options(pipe_ignore=True)]).run(),
    "retry": retry,
    "remove": lambda: take(sys.argv[2]),
    "work": work,
}
acts[sys.argv[1]]()
