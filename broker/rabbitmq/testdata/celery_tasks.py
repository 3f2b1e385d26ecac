# Tasks of Celery in RabbitMQ, which reject what fails until the file FIXED is there:
# celery_tasks.py enqueue | work. AMQP_URL names the server, DONE the file to which tasks write.
import os
import sys

from celery import Celery, chain
from celery.exceptions import Reject
from kombu import Queue

app = Celery("celery_tasks", broker=os.environ["AMQP_URL"])
app.conf.task_default_queue = "tasks"
app.conf.task_queues = [Queue("tasks", queue_arguments={
    "x-queue-type": "quorum", "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "tasks.dlq"})]
app.conf.worker_detect_quorum_queues = True
app.conf.broker_transport_options = {"confirm_publish": True}


def done(text):
    with open(os.environ["DONE"], "a") as f:
        f.write(text + "\n")


@app.task(name="mail", bind=True, acks_late=True, max_retries=1)
def mail(self, n):
    if os.path.exists(os.environ["FIXED"]):
        return done("mail %d" % n)
    if self.request.retries == 0:
        raise self.retry(countdown=0)
    raise Reject("boom %d" % n, requeue=False)


@app.task(name="after")
def after():
    done("after")


def work():
    app.worker_main(["worker", "--pool=solo", "--without-gossip", "--without-mingle", "--without-heartbeat", "-l", "INFO"])


acts = {"enqueue": lambda: chain(mail.si(7), after.si())(), "work": work}
acts[sys.argv[1]]()
