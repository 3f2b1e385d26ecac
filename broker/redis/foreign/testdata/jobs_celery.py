# A task of Celery that fails until the key fixed is there.
import os
import sys

import redis
from celery import Celery

app = Celery("jobs_celery", broker=os.environ["REDIS_URL"], backend=os.environ["REDIS_URL"])
app.conf.result_extended = True
app.conf.task_default_queue = "mails"
connection = redis.Redis.from_url(os.environ["REDIS_URL"])


@app.task(name="mail")
def mail(n):
    if not connection.get("fixed"):
        raise ValueError("boom %d" % n)
    connection.rpush("done", n)


if sys.argv[1] == "enqueue":
    mail.delay(7)
else:
    app.worker_main(["worker", "-P", "solo", "--without-mingle", "--without-gossip"])
