"""Takes orders, each in a transaction of its own with its message. Each tenth is rolled back."""
import json
import sys

import psycopg

queue, count = sys.argv[1], int(sys.argv[2])
with psycopg.connect() as db:
    db.execute("create table if not exists orders (n int)")
    db.commit()
    for n in range(count):
        with db.transaction():
            db.execute("insert into orders values (%s)", (n,))
            db.execute("select * from nixie.enqueue(%s, %s)", (queue, json.dumps({"n": n})))
            if n % 10 == 9:
                raise psycopg.Rollback()
