# A message of Dramatiq that fails until the key fixed is there.
import os
import signal
import sys

import dramatiq
import redis
from dramatiq.brokers.redis import RedisBroker

broker = RedisBroker(url=os.environ["REDIS_URL"])
dramatiq.set_broker(broker)
connection = redis.Redis.from_url(os.environ["REDIS_URL"])


@dramatiq.actor(queue_name="mails", max_retries=1, min_backoff=1, max_backoff=1)
def mail(n):
    if not connection.get("fixed"):
        raise ValueError("boom %d" % n)
    connection.rpush("done", n)


if sys.argv[1] == "enqueue":
    mail.send(7)
else:
    dramatiq.Worker(broker, worker_threads=1).start()
    signal.pause()
