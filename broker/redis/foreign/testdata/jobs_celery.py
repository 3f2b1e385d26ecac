# Tasks of Celery that fail until the key fixed is there: jobs_celery.py work, enqueue ID NUMBER, chain,
# retry ID, remove ID. PREFIX is the global_keyprefix, BROKER another broker, TOPIC asks for an exchange.
import os
import sys

import redis
from celery import Celery, chain, chord, group
from kombu import Exchange, Queue

url = os.environ["REDIS_URL"]
app = Celery("jobs_celery", broker=os.environ.get("BROKER") or url, backend=url)
app.conf.result_extended = True
app.conf.task_default_queue = "mails"
if os.environ.get("PREFIX"):
    app.conf.result_backend_transport_options = {"global_keyprefix": os.environ["PREFIX"]}
    if not os.environ.get("BROKER"):
        app.conf.broker_transport_options = {"global_keyprefix": os.environ["PREFIX"]}
if os.environ.get("TOPIC"):
    exchange = Exchange("media", type="topic")
    app.conf.task_queues = [Queue("mails", exchange, routing_key="media.#"), Queue("spare", exchange, routing_key="audio.#")]
    app.conf.task_default_exchange, app.conf.task_default_exchange_type = "media", "topic"
    app.conf.task_default_routing_key = "media.#"
connection = redis.Redis.from_url(url)


@app.task(name="mail")
def mail(n, ignored=None):
    if not connection.get("fixed"):
        raise ValueError("boom %s" % n)
    connection.rpush("done", n)


@app.task(name="after")
def after(ignored=None):
    connection.rpush("done", "after")


@app.task(name="mother")
def mother():
    after.delay()
    return mail.run("mother")


def enqueue():
    mail.apply_async((int(sys.argv[3]),), task_id=sys.argv[2])


def steps():
    chain(mail.si("first").set(task_id="first"), after.si().set(task_id="rest"), after.si().set(task_id="rest2"))()
    chain(after.si(), mail.si("step").set(task_id="step"), after.si().set(task_id="last"))()
    chord([mail.si("member").set(task_id="member"), after.si()])(after.s().set(task_id="body"))
    group(mail.si("part").set(task_id="part"), after.si())()
    mail.apply_async(("linked",), task_id="linked", link=after.si())
    mother.apply_async((), task_id="mother")


def retry():
    meta = app.AsyncResult(sys.argv[2]).backend.get_task_meta(sys.argv[2])
    app.send_task(meta["name"], meta["args"], meta["kwargs"], task_id=sys.argv[2])
    app.AsyncResult(sys.argv[2]).forget()


def work():
    app.worker_main(["worker", "-P", "solo", "--without-mingle", "--without-gossip"])


acts = {"enqueue": enqueue, "chain": steps, "retry": retry, "work": work, "remove": lambda: app.AsyncResult(sys.argv[2]).forget()}
acts[sys.argv[1]]()
