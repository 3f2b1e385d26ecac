// A job of BullMQ or Bull that fails until the key fixed is there: jobs.js bullmq|bull enqueue|work.
const { URL } = require("node:url");
const [, , system, act] = process.argv;
const at = new URL(process.env.REDIS_URL);
const connection = { host: at.hostname, port: Number(at.port), db: Number(at.pathname.slice(1)) };

async function run(client, job) {
  if (!(await client.get("fixed"))) throw new TypeError("boom " + job.data.n);
  await client.rpush("done", job.data.n);
}

async function bullmq() {
  const { Queue, Worker } = require("bullmq");
  if (act === "enqueue") {
    const queue = new Queue("mails", { connection });
    await queue.add("mail", { n: 7 }, { attempts: 2 });
    return queue.close();
  }
  const Redis = require("ioredis");
  const client = new Redis(connection);
  new Worker("mails", (job) => run(client, job), { connection });
}

async function bull() {
  const Queue = require("bull");
  const queue = new Queue("mails", { redis: connection });
  if (act === "enqueue") {
    await queue.add("mail", { n: 7 }, { attempts: 2 });
    return queue.close();
  }
  queue.process("mail", (job) => run(queue.client, job));
}

system === "bull" ? bull() : bullmq();
