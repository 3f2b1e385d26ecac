// Jobs of BullMQ or Bull that fail until the key fixed is there. jobs.js bullmq|bull work, enqueue ID
// NUMBER, chain ID NUMBER, retry ID, remove ID. PREFIX is that of the keys.
const { URL } = require("node:url");
const [, , system, act, id, number] = process.argv;
const at = new URL(process.env.REDIS_URL);
const connection = { host: at.hostname, port: Number(at.port), db: Number(at.pathname.slice(1)) };
const prefix = process.env.PREFIX || "bull";

async function run(client, job) {
  if (job.name === "after") return client.rpush("done", "after");
  if (!(await client.get("fixed"))) throw new TypeError("boom " + job.data.n);
  await client.rpush("done", job.data.n);
}

async function bullmq() {
  const { Queue, Worker, FlowProducer } = require("bullmq");
  const Redis = require("ioredis");
  if (act === "work") return new Worker("mails", (job) => run(client, job), { connection, prefix, client: (client = new Redis(connection)) });
  if (act === "chain") {
    const flow = new FlowProducer({ connection, prefix });
    const child = { name: "mail", queueName: "mails", data: { n: Number(number) }, opts: { jobId: id } };
    await flow.add({ name: "after", queueName: "mails", children: [child] });
    return flow.close();
  }
  return of(new Queue("mails", { connection, prefix }));
}
let client;

async function bull() {
  const Queue = require("bull");
  const queue = new Queue("mails", { redis: connection, prefix });
  if (act === "work") return queue.process("*", (job) => run(queue.client, job));
  return of(queue);
}

async function of(queue) {
  if (act === "enqueue") await queue.add("mail", { n: Number(number) }, { attempts: 2, jobId: id });
  if (act === "retry") await (await queue.getJob(id)).retry();
  if (act === "remove") await (await queue.getJob(id)).remove();
  await queue.close();
}

system === "bull" ? bull() : bullmq();
