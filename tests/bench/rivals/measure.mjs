// What every rival does: chains of durable steps at full speed, then single jobs that meet an idle worker, then nothing.
//
// The plan comes as JSON in the first argument, DATABASE_URL from the environment; one JSON object is printed.

import pg from "pg";

const plan = JSON.parse(process.argv[2]);

const percentile = (sorted, p) => sorted[Math.max(0, Math.ceil((sorted.length * p) / 100) - 1)] ?? 0;

async function committed(client) {
  // The statistics of other sessions are there a moment after they end their transactions.
  await client.query("SELECT pg_stat_clear_snapshot()");
  const { rows } = await client.query(
    "SELECT xact_commit::float8 AS n FROM pg_stat_database WHERE datname = current_database()",
  );
  return rows[0].n;
}

/// `start(handler)` starts a worker that calls `handler(payload)` for each job and returns `{ add(payload), stop() }`.
export async function measure(name, start) {
  let arrived = () => {};
  let done = () => {};
  let queue;
  queue = await start(async ({ step, sent }) => {
    if (sent !== undefined) return arrived(performance.now());
    if (step < plan.steps) await queue.add({ step: step + 1 });
    else done();
  });

  let left = plan.chains;
  const all = new Promise((resolve) => {
    done = () => --left === 0 && resolve();
  });
  const begun = performance.now();
  let next = 0;
  const caller = async () => {
    while (next++ < plan.chains) await queue.add({ step: 1 });
  };
  await Promise.all(Array.from({ length: plan.callers }, caller));
  await all;
  const seconds = (performance.now() - begun) / 1000;

  const taken = [];
  for (let sample = 0; sample < plan.samples; sample++) {
    const claimed = new Promise((resolve) => (arrived = resolve));
    await queue.add({ sent: sample });
    const answered = performance.now();
    taken.push(Math.max(0, (await claimed) - answered));
  }
  taken.sort((a, b) => a - b);

  const client = new pg.Client(process.env.DATABASE_URL);
  await client.connect();
  await new Promise((resolve) => setTimeout(resolve, 2000));
  const before = await committed(client);
  await new Promise((resolve) => setTimeout(resolve, plan.idleSeconds * 1000));
  const idle = ((await committed(client)) - before - 1) / plan.idleSeconds;
  await client.end();
  await queue.stop();

  console.log(
    JSON.stringify({
      name,
      chainsPerSecond: plan.chains / seconds,
      p50Ms: percentile(taken, 50),
      p99Ms: percentile(taken, 99),
      idleTransactionsPerSecond: Math.max(0, idle),
    }),
  );
}

export { plan };
