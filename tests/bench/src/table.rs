//! The numbers for people.

use std::fmt;

use crate::{Admissions, Latency, Report, StoreReport};

/// One line: what it is, and how each store does.
struct Row {
    what: String,
    values: Vec<String>,
}

fn row(report: &Report, what: impl Into<String>, value: impl Fn(&StoreReport) -> String) -> Row {
    Row {
        what: what.into(),
        values: report.stores.iter().map(value).collect(),
    }
}

/// A number with as many digits as mean something.
fn number(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.0}"),
        value if value >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.2}"),
    }
}

fn list(values: &[f64]) -> String {
    values.iter().map(|value| number(*value)).collect::<Vec<_>>().join(" ")
}

fn latency(latency: Latency) -> String {
    list(&[latency.p50_ms, latency.p99_ms, latency.max_ms])
}

fn rows(report: &Report) -> Vec<Row> {
    let mut rows = vec![
        row(report, "floor: one-row commits/s, before", |store| {
            number(store.floor.commits_per_second_before)
        }),
        row(report, "floor: one-row commits/s, after", |store| {
            number(store.floor.commits_per_second_after)
        }),
    ];
    let admissions = report.stores.first().map_or(0, |store| store.admissions.len());
    for at in 0..admissions {
        let callers = report.stores[0].admissions[at].callers;
        let plural = if callers == 1 { "caller" } else { "callers" };
        rows.push(row(report, format!("admissions/s, {callers} {plural}"), |store| {
            number(store.admissions[at].per_second)
        }));
        let by_hand = |value: fn(&Admissions) -> Option<f64>| {
            move |store: &StoreReport| value(&store.admissions[at]).map_or_else(|| "-".to_owned(), number)
        };
        rows.push(row(
            report,
            format!("the same rows by one statement/s, {callers} {plural}"),
            by_hand(|one| one.by_hand_per_second),
        ));
        rows.push(row(
            report,
            format!("admissions reach of that, {callers} {plural}"),
            by_hand(|one| one.of_by_hand),
        ));
    }
    rows.extend([
        row(report, "write transactions an admission", |store| {
            list(
                &store
                    .admissions
                    .iter()
                    .map(|one| one.transactions.writes_each)
                    .collect::<Vec<_>>(),
            )
        }),
        row(report, "GET of an Agent, ms: p50 p99 max", |store| {
            latency(store.answers.read)
        }),
        row(report, "deploy to 202, ms: p50 p99 max", |store| {
            latency(store.answers.deploy)
        }),
        row(report, "deployments/s", |store| number(store.deployments.per_second)),
        row(report, "write transactions a deployment", |store| {
            number(store.deployments.transactions.writes_each)
        }),
        row(report, "reads a deployment", |store| {
            number(store.deployments.transactions.reads_each)
        }),
        row(report, "202 to claim, ms: p50 p99 max", |store| {
            latency(store.claim_latency)
        }),
        row(report, "queries/s of an idle worker", |store| {
            number(store.idle.queries_per_second)
        }),
    ]);
    rows
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rows = rows(self);
        let names: Vec<&str> = self.stores.iter().map(|store| store.store.as_str()).collect();
        let first = rows.iter().map(|row| row.what.len()).max().unwrap_or(0);
        let width = |column: usize| {
            let cells = rows.iter().map(|row| row.values[column].len());
            cells.chain([names[column].len()]).max().unwrap_or(0)
        };
        write!(f, "{:first$}", "")?;
        for (column, name) in names.iter().enumerate() {
            write!(f, "  {name:>width$}", width = width(column))?;
        }
        writeln!(f)?;
        for row in &rows {
            write!(f, "{:first$}", row.what)?;
            for (column, value) in row.values.iter().enumerate() {
                write!(f, "  {value:>width$}", width = width(column))?;
            }
            writeln!(f)?;
        }
        for store in &self.stores {
            let growth = &store.growth;
            writeln!(
                f,
                "\n{}: {} Agents deployed one after the other, by {} deployments",
                store.store.as_str(),
                growth.agents,
                growth.bucket
            )?;
            writeln!(f, "  ms each     {}", list(&growth.ms_each))?;
            writeln!(f, "  writes each {}", list(&growth.writes_each))?;
            writeln!(f, "  reads each  {}", list(&growth.reads_each))?;
        }
        for rival in &self.rivals {
            writeln!(
                f,
                "\n{}: {} chains/s, start of a job {} ms, idle {} transactions/s",
                rival.name,
                number(rival.chains_per_second),
                list(&[rival.p50_ms, rival.p99_ms]),
                number(rival.idle_transactions_per_second)
            )?;
        }
        for history in &self.history {
            writeln!(
                f,
                "\n{} finished revisions: {} deployments/s, 202 to claim, ms: {}, idle {} queries/s, {} MB at most",
                history.revisions,
                number(history.deployments_per_second),
                latency(history.claim_latency),
                number(history.idle_queries_per_second),
                history.peak_memory / 1_000_000
            )?;
        }
        if let Some(pending) = &self.pending {
            writeln!(
                f,
                "\n{} revisions that wait{}: {} looks/s, {} of a core here and {} in the server; 202 to claim, ms: {}",
                pending.revisions,
                if pending.watched {
                    ""
                } else {
                    ", of a Compute that hears nothing"
                },
                number(pending.passes_per_second),
                number(pending.processor),
                number(pending.server_processor),
                latency(pending.claim_latency)
            )?;
        }
        writeln!(f, "\n{} processors", self.processors)?;
        if self.quick {
            writeln!(f, "The quick run: too few samples to mean anything.")?;
        }
        if !self.optimised {
            writeln!(
                f,
                "Built without optimisation: `cargo run --release -p occ-bench` measures what is used."
            )?;
        }
        Ok(())
    }
}
