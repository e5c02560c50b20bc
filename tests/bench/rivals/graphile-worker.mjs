// graphile-worker with what its documentation names for throughput: a local queue, and completions in batches.

import { Logger, run } from "graphile-worker";
import { measure, plan } from "./measure.mjs";

await measure("graphile-worker", async (handler) => {
  const runner = await run({
    connectionString: process.env.DATABASE_URL,
    noHandleSignals: true,
    // Its line for each job would cost it time.
    logger: new Logger(() => () => {}),
    taskList: { step: handler },
    preset: {
      worker: {
        concurrentJobs: plan.concurrency,
        maxPoolSize: plan.concurrency + 4,
        localQueue: { size: plan.concurrency * 4 },
        completeJobBatchDelay: 0,
      },
    },
  });
  return { add: (payload) => runner.addJob("step", payload), stop: () => runner.stop() };
});
process.exit(0);
