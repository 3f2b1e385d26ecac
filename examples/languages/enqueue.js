// Takes orders, each in a transaction of its own with its message. Each tenth is rolled back.
const { Client } = require("pg");

const [queue, count] = [process.argv[2], Number(process.argv[3])];

async function main() {
  const db = new Client();
  await db.connect();
  await db.query("create table if not exists orders (n int)");
  for (let n = 0; n < count; n++) {
    await db.query("begin");
    await db.query("insert into orders values ($1)", [n]);
    await db.query("select * from nixie.enqueue($1, $2)", [queue, JSON.stringify({ n })]);
    await db.query(n % 10 === 9 ? "rollback" : "commit");
  }
  await db.end();
}

main();
