//! What a control plane keeps and has done: every row of its database, and the effects at its drivers.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
    sync::Arc,
};

use occ_test_support::drivers::{Call, IssuingAccounts, MediatingGateway, NullCompute};
use sqlx::{Connection as _, SqliteConnection};

/// Where it is recorded that something was refused.
pub const RECORDS: &[&str] = &["audit", "audit_seals"];

/// Where something can happen besides the database.
pub struct Effects {
    pub compute: Arc<NullCompute>,
    pub gateway: Arc<MediatingGateway>,
    pub issuer: Arc<IssuingAccounts>,
}

impl Effects {
    /// How much happened so far; looks at what runs are none.
    fn so_far(&self) -> (usize, usize, usize) {
        let looks = |call: &Call| {
            matches!(
                call,
                Call::Endpoint(_) | Call::Diagnose(_) | Call::Logs(_) | Call::CredentialsExist(_)
            )
        };
        let done = self.compute.calls().iter().filter(|call| !looks(call)).count();
        (done, self.gateway.sources(), self.issuer.ever())
    }
}

/// Every row, by table.
type Rows = BTreeMap<String, Vec<String>>;

/// The last look.
pub struct Kept {
    /// A connection of its own, which sees what others commit.
    database: SqliteConnection,
    commits: i64,
    rows: Rows,
    effects: Effects,
    happened: (usize, usize, usize),
}

impl Kept {
    pub async fn of(path: &Path, effects: Effects) -> Self {
        let url = format!("sqlite:{}?mode=ro", path.display());
        let mut database = SqliteConnection::connect(&url).await.expect("a connection");
        Self {
            commits: commits(&mut database).await,
            rows: rows(&mut database).await,
            database,
            happened: effects.so_far(),
            effects,
        }
    }

    /// Which tables are not as they were at the last look, and `drivers` if something was done there.
    pub async fn moved(&mut self) -> BTreeSet<String> {
        let mut moved = BTreeSet::new();
        let happened = self.effects.so_far();
        if happened != self.happened {
            self.happened = happened;
            moved.insert("drivers".to_owned());
        }
        // As long as nobody committed anything, the rows are what they were.
        let commits = commits(&mut self.database).await;
        if commits != self.commits {
            self.commits = commits;
            let rows = rows(&mut self.database).await;
            let before = std::mem::replace(&mut self.rows, rows);
            moved.extend(
                before
                    .iter()
                    .filter(|(table, was)| self.rows[*table] != **was)
                    .map(|(table, _)| table.clone()),
            );
        }
        moved
    }
}

/// A number that is another one once another connection has committed a change.
async fn commits(database: &mut SqliteConnection) -> i64 {
    let number = sqlx::query_scalar("PRAGMA data_version").fetch_one(database).await;
    number.expect("a number")
}

async fn rows(database: &mut SqliteConnection) -> Rows {
    let columns = "SELECT t.name, group_concat('quote(\"' || c.name || '\")', ' || '','' || ')
        FROM sqlite_schema t, pragma_table_info(t.name) c
        WHERE t.type = 'table' AND t.name NOT LIKE 'sqlite_%' GROUP BY t.name";
    let tables: Vec<(String, String)> = sqlx::query_as(columns).fetch_all(&mut *database).await.expect("tables");
    let mut all = Rows::new();
    for (table, columns) in tables {
        let query = sqlx::AssertSqlSafe(format!("SELECT {columns} FROM \"{table}\" ORDER BY 1"));
        let rows = sqlx::query_scalar(query).fetch_all(&mut *database).await;
        all.insert(table, rows.expect("rows"));
    }
    assert!(all.values().any(|rows| !rows.is_empty()));
    all
}
