# Jobs of RQ that fail until the key fixed is there: jobs_rq.py work, enqueue ID NUMBER, chain ID NUMBER,
# limited ID NUMBER, retry ID, remove ID.
import os
import sys

import redis
from rq import Queue, RateLimit, Retry, SimpleWorker
from rq.job import Job

import jobs_rq

connection = redis.Redis.from_url(os.environ["REDIS_URL"])


def mail(n):
    if not connection.get("fixed"):
        raise ValueError("boom %d" % n)
    connection.rpush("done", n)


def after():
    connection.rpush("done", "after")


if __name__ == "__main__":
    queue = Queue("mails", connection=connection)
    act, args = sys.argv[1], sys.argv[2:]
    if act == "enqueue":
        queue.enqueue(jobs_rq.mail, int(args[1]), job_id=args[0], retry=Retry(max=1))
    elif act == "chain":
        queue.enqueue(jobs_rq.after, depends_on=queue.enqueue(jobs_rq.mail, int(args[1]), job_id=args[0]))
    elif act == "limited":
        queue.enqueue(jobs_rq.mail, int(args[1]), job_id=args[0], rate_limit=RateLimit("smtp", 1))
    elif act == "retry":
        Job.fetch(args[0], connection=connection).requeue()
    elif act == "remove":
        Job.fetch(args[0], connection=connection).delete()
    else:
        SimpleWorker([queue], connection=connection).work()
