//! Callers who meet at one Agent: whatever they do at once ends as if one of them had come first, and nothing waits for ever.

use std::{
    collections::BTreeSet,
    fmt::Debug,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use occ_core::{
    iam::{AccessBinding, PolicyReader as _, Subject},
    resource::PrincipalId,
    store::{Change, Store, Write},
    work::{Policy, Target},
    worker::Worker,
};
use occ_test_support::drivers::World;
use reqwest::{Method, RequestBuilder};
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::served::{Seen, Served, key_of};

/// How often each pair meets: enough that the two overlap in several ways.
const MEETINGS: usize = 4;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Move {
    Create,
    Deploy,
    Stop,
    Delete,
    Update,
}

const MOVES: [Move; 5] = [Move::Create, Move::Deploy, Move::Stop, Move::Delete, Move::Update];

/// How two moves meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Order {
    FirstFirst,
    SecondFirst,
    AtOnce,
}

/// All that the two callers, and everybody after them, can see. Ids and times are left out.
#[derive(PartialEq, Eq, Debug)]
struct Outcome {
    answers: [String; 2],
    agent: String,
    revisions: Vec<Value>,
    work: Vec<&'static str>,
    audit: Vec<(String, PrincipalId)>,
}

struct Arena {
    served: Served,
    other: String,
    number: AtomicU32,
}

impl Arena {
    /// With two administrators.
    async fn over(store: Arc<dyn Store>) -> Self {
        let served = Served::over(World::builder().store(store).build().await).await;
        let world = &served.world;
        let grants = world.store.grants(&world.admin.principal).await.expect("a policy");
        let other: PrincipalId = "prn_bea".parse().expect("an id");
        let change = Change::new()
            .write(Write::Principal(other.clone(), "Bea".to_owned()))
            .write(Write::AccessBinding(AccessBinding {
                id: "binding_bea".to_owned(),
                namespace_id: None,
                subject: Subject::Identity(other.clone()),
                role_id: grants.roles[0].id.clone(),
                resource: None,
            }));
        world.store.commit(change).await.expect("a second administrator");
        let other = key_of(world, &other).await;
        Self {
            served,
            other,
            number: AtomicU32::new(0),
        }
    }

    fn request(&self, caller: usize, case: &Case, what: Move) -> RequestBuilder {
        let key = [&self.served.key, &self.other][caller];
        let agents = format!("http://{}{}", self.served.address, self.served.agents());
        let agent = format!("{agents}/{}", case.agent);
        let configuration = json!({ "configurationId": case.configuration });
        let http = &self.served.http;
        let request = match what {
            Move::Create => {
                let mut body = configuration;
                body["name"] = json!(format!("{}-new", case.name));
                http.post(agents).json(&body)
            }
            Move::Deploy => http.post(format!("{agent}/deploy")),
            Move::Stop => http.post(format!("{agent}/stop")),
            Move::Delete => http.delete(agent),
            Move::Update => {
                let mut body = configuration;
                body["harnessAuth"] = Value::Null;
                http.patch(agent).json(&body)
            }
        };
        request.header("x-api-key", key)
    }

    /// A case on an Agent of its own: never deployed, or deployed once.
    async fn case(&self, deployed: bool) -> Case {
        let name = format!("agent-{}", self.number.fetch_add(1, Ordering::Relaxed));
        let agent = self.served.world.deployable(&name).await;
        let case = Case {
            name,
            agent: agent.id.to_string(),
            configuration: agent.configuration_id.to_string(),
        };
        if deployed {
            let seen = answer(self.request(0, &case, Move::Deploy)).await;
            assert_eq!(seen.status.as_u16(), 202, "{}", seen.body);
        }
        case
    }

    async fn outcome(&self, deployed: bool, moves: [Move; 2], order: Order) -> Outcome {
        let case = self.case(deployed).await;
        let world = &self.served.world;
        world.store.take_work();
        world.store.take_audit();
        let [first, second] = [0, 1].map(|caller| self.request(caller, &case, moves[caller]));
        let seen = match order {
            Order::FirstFirst => {
                let first = answer(first).await;
                [first, answer(second).await]
            }
            Order::SecondFirst => {
                let second = answer(second).await;
                [answer(first).await, second]
            }
            Order::AtOnce => at_once([first, second]).await,
        };
        let path = format!("{}/{}", self.served.agents(), case.agent);
        let agent = self.served.send(Method::GET, &path).await;
        let revisions = self.served.send(Method::GET, &format!("{path}/revisions")).await;
        let revisions = revisions.data().as_array().expect("a list").iter();
        let mut work: Vec<_> = world.store.take_work().iter().map(|work| kind(&work.target)).collect();
        work.sort_unstable();
        // Who had to look again may have begun more than once.
        let audit = world.store.take_audit().into_iter();
        let audit = audit.filter(|event| !event.details.contains_key("phase"));
        let mut audit: Vec<_> = audit.map(|event| (event.action, event.actor)).collect();
        audit.sort();
        Outcome {
            answers: seen.map(|seen| said(&seen)),
            agent: said(&agent),
            revisions: revisions.map(|revision| revision["revision"].clone()).collect(),
            work,
            audit,
        }
    }
}

struct Case {
    name: String,
    agent: String,
    configuration: String,
}

fn kind(target: &Target) -> &'static str {
    match target {
        Target::AgentStopped { .. } => "stop",
        Target::AgentDeleted { .. } => "delete",
        Target::Revision { .. } => "deploy",
        _ => "other",
    }
}

/// Never a 500, whatever is asked.
async fn answer(request: RequestBuilder) -> Seen {
    let seen = Seen::of(request.send().await.expect("an answer")).await;
    assert_ne!(seen.status.as_u16(), 500, "{}", seen.body);
    seen
}

async fn at_once<const N: usize>(requests: [RequestBuilder; N]) -> [Seen; N] {
    let start = Arc::new(Barrier::new(N));
    let racing = requests.map(|request| {
        let start = Arc::clone(&start);
        tokio::spawn(async move {
            start.wait().await;
            answer(request).await
        })
    });
    let mut seen = Vec::with_capacity(N);
    for one in racing {
        seen.push(one.await.expect("an answer"));
    }
    seen.try_into().unwrap_or_else(|_| unreachable!("as many as were sent"))
}

/// The answer without what is another one each time.
fn said(seen: &Seen) -> String {
    let kept = [
        "revision",
        "desiredRuntimeState",
        "status",
        "harnessAuth",
        "code",
        "message",
    ];
    let body = seen.body.get("data").or(seen.body.get("error")).unwrap_or(&Value::Null);
    let parts = kept.iter().filter_map(|name| match &body[*name] {
        Value::Null => None,
        Value::Object(_) => Some(format!(" {name}")),
        value => Some(format!(" {name}={value}")),
    });
    format!("{}{}", seen.status.as_u16(), parts.collect::<String>())
}

/// Every two moves at once, on an Agent that was never deployed and on one that was: the result is one of the two serial ones.
pub async fn in_pairs(store: Arc<dyn Store>) {
    let arena = Arena::over(store).await;
    for deployed in [false, true] {
        for (at, first) in MOVES.into_iter().enumerate() {
            for second in MOVES.into_iter().skip(at) {
                let moves = [first, second];
                let serial = [
                    arena.outcome(deployed, moves, Order::FirstFirst).await,
                    arena.outcome(deployed, moves, Order::SecondFirst).await,
                ];
                for _ in 0..MEETINGS {
                    let raced = arena.outcome(deployed, moves, Order::AtOnce).await;
                    assert!(
                        serial.contains(&raced),
                        "{moves:?}, deployed: {deployed}\n{raced:#?}\nis neither of\n{serial:#?}"
                    );
                }
            }
        }
    }
}

/// Everybody does everything to one Agent while a worker drives it. Afterwards it can be deleted, and everything that was admitted
/// ends.
pub async fn all_at_once(store: Arc<dyn Store>) {
    let arena = Arena::over(store).await;
    let world = &arena.served.world;
    let worker = Worker::new(
        Arc::clone(&world.store) as _,
        Arc::clone(&world.drivers),
        Policy::default(),
    )
    .start();
    for round in 0..3 {
        let case = arena.case(round > 0).await;
        let last = if round == 2 { Move::Delete } else { Move::Deploy };
        let moves = [
            Move::Deploy,
            Move::Stop,
            Move::Update,
            Move::Deploy,
            Move::Stop,
            Move::Deploy,
            Move::Update,
            last,
        ];
        let mut caller = 0;
        let seen = at_once(moves.map(|what| {
            caller += 1;
            arena.request(caller % 2, &case, what)
        }))
        .await;
        let statuses: BTreeSet<_> = seen.iter().map(|seen| seen.status.as_u16()).collect();
        let mut possible = BTreeSet::from([200, 202, 409]);
        // The worker may be done with a deletion before the last of them is heard.
        possible.extend((last == Move::Delete).then_some(404));
        assert!(statuses.is_subset(&possible), "{statuses:?}");
        let numbers = revisions(&arena, &case).await;
        let expected: Vec<_> = (1..=numbers.len() as u64).collect();
        assert_eq!(numbers, expected, "numbered without gaps");
        let deleted = answer(arena.request(0, &case, Move::Delete)).await;
        assert!(possible.contains(&deleted.status.as_u16()), "{}", deleted.body);
        assert_ne!(deleted.status.as_u16(), 409, "{}", deleted.body);
        let path = format!("{}/{}", arena.served.agents(), case.agent);
        gone(&arena.served, &path).await;
    }
    let left = world.store.queue_depth().await.expect("a read");
    assert_eq!(
        (left.queued, left.claimed),
        (0, 0),
        "everything that was admitted has ended"
    );
    worker.shutdown().await;
}

async fn revisions(arena: &Arena, case: &Case) -> Vec<u64> {
    let path = format!("{}/{}/revisions", arena.served.agents(), case.agent);
    let seen = arena.served.send(Method::GET, &path).await;
    let list = seen.data().as_array().into_iter().flatten();
    list.filter_map(|revision| revision["revision"].as_u64()).collect()
}

async fn gone(served: &Served, path: &str) {
    for _ in 0..1200 {
        if served.send(Method::GET, path).await.status.as_u16() == 404 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("the Agent is still there after a minute");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_callers_at_one_agent_end_as_if_one_had_come_first() {
    in_pairs(crate::served::store().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_callers_at_one_agent_leave_nothing_unfinished() {
    all_at_once(crate::served::store().await).await;
}
