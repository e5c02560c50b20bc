// pg-boss with its shortest poll and batches of jobs.

import { PgBoss } from "pg-boss";
import { measure, plan } from "./measure.mjs";

await measure("pg-boss", async (handler) => {
  const boss = new PgBoss({ connectionString: process.env.DATABASE_URL, max: plan.concurrency + 4 });
  await boss.start();
  await boss.createQueue("step");
  const options = { batchSize: plan.concurrency * 4, pollingIntervalSeconds: 0.5 };
  await boss.work("step", options, (jobs) => Promise.all(jobs.map((job) => handler(job.data))));
  return { add: (payload) => boss.send("step", payload), stop: () => boss.stop() };
});
process.exit(0);
