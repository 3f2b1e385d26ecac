# A job of RQ that fails until the key fixed is there.
import os
import sys

import redis
from rq import Queue, Retry, SimpleWorker

import jobs_rq

connection = redis.Redis.from_url(os.environ["REDIS_URL"])


def mail(n):
    if not connection.get("fixed"):
        raise ValueError("boom %d" % n)
    connection.rpush("done", n)


if __name__ == "__main__":
    queue = Queue("mails", connection=connection)
    if sys.argv[1] == "enqueue":
        queue.enqueue(jobs_rq.mail, 7, retry=Retry(max=1))
    else:
        SimpleWorker([queue], connection=connection).work()
