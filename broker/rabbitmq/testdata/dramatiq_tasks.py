# Messages of Dramatiq in RabbitMQ, whose actor fails until the file FIXED is there:
# dramatiq_tasks.py enqueue | work. AMQP_URL names the server, DONE the file to which actors write.
import os
import signal
import sys

import dramatiq
from dramatiq.brokers.rabbitmq import RabbitmqBroker

broker = RabbitmqBroker(url=os.environ["AMQP_URL"])
dramatiq.set_broker(broker)


def done(text):
    with open(os.environ["DONE"], "a") as f:
        f.write(text + "\n")


@dramatiq.actor(queue_name="mails", max_retries=1, min_backoff=1, max_backoff=1)
def mail(n):
    if not os.path.exists(os.environ["FIXED"]):
        raise ValueError("boom %d" % n)
    done("mail %d" % n)


@dramatiq.actor(queue_name="mails")
def after():
    done("after")


def work():
    dramatiq.Worker(broker, worker_threads=1).start()
    signal.pause()


acts = {"enqueue": lambda: dramatiq.pipeline([mail.message(7), after.message_with_options(pipe_ignore=True)]).run(), "work": work}
acts[sys.argv[1]]()
