//! The protocol of claim, lease, fence, pointer, supersession and stop, checked over every interleaving of two workers, two versions and
//! a stop, with crashes and with commits that arrive late. Each broken variant of it must be caught.

use stateright::{Checker as _, Model, Property};

/// What is left out or turned round.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Variant {
    Sound,
    /// A commit is not compared with the live claim.
    NoFence,
    /// The route switches before the pointer moves.
    ActivateBeforeCommit,
    /// The predecessor is removed before the route switches.
    RetireBeforeActivate,
    /// A claim ends by the clock of whoever wants it.
    LocalExpiry,
}

/// The work of the Agent's lane: its two deployments and its stop.
type Item = usize;
const STOP: Item = 2;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Work {
    Absent,
    Queued,
    Claimed(u8),
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Stage {
    Prepare,
    Publish,
    Activate,
    Retire,
    Complete,
    /// A commit is under way.
    Waits,
}

/// What a commit writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Commit {
    /// The pointer, if it still names what was read and the Agent should run.
    Pointer { from: Option<Item>, to: Item },
    /// The end of the work; of a stop, with the pointer cleared.
    End { item: Item },
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Pass {
    item: Item,
    token: u8,
    stage: Stage,
    read: Option<Item>,
}

// What was seen to go wrong is remembered, each for itself.
#[allow(clippy::struct_excessive_bools)]
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct State {
    work: [Work; 3],
    tokens: u8,
    stops_wanted: bool,
    pointer: Option<Item>,
    selected: [bool; 2],
    running: [bool; 2],
    route: Option<Item>,
    served: bool,
    workers: [Option<Pass>; 2],
    /// Commits that were sent: by which worker, under which token. A dead worker's may still arrive.
    sent: Vec<(Option<usize>, u8, Commit)>,
    crashes: u8,
    back: bool,
    rewritten: bool,
    early: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Act {
    Admit,
    AskToStop,
    Claim(usize, Item),
    Step(usize),
    Arrive(usize),
    /// The worker dies, or its own deadline passes and it gives up.
    Die(usize),
    /// The database ends the claim.
    Lapse(Item),
}

struct Protocol(Variant);

impl State {
    fn wanted(&self) -> bool {
        !self.stops_wanted
    }

    fn serves(&self) -> bool {
        self.route.is_some_and(|version| self.running[version])
    }

    fn stop(&mut self, version: Item) {
        self.running[version] = false;
        if self.route == Some(version) {
            self.route = None;
        }
    }

    fn send(&mut self, worker: usize, token: u8, commit: Commit) {
        self.sent.push((Some(worker), token, commit));
        self.sent.sort_unstable();
    }
}

impl Protocol {
    /// How many claims there are at most. A broken variant shows itself early.
    fn claims(&self) -> u8 {
        if self.0 == Variant::Sound { 6 } else { 3 }
    }

    /// The worker's next effect or commit.
    fn step(&self, state: &mut State, worker: usize) {
        let Some(mut pass) = state.workers[worker].clone() else {
            return;
        };
        let item = pass.item;
        let end = Commit::End { item };
        if item == STOP {
            // Whoever came later wins: a stop that a deployment overtook does nothing.
            if state.stops_wanted {
                (0..2).for_each(|version| state.stop(version));
            }
            pass.stage = Stage::Waits;
            state.send(worker, pass.token, end);
        } else if !state.wanted() {
            state.stop(item);
            pass.stage = Stage::Waits;
            state.send(worker, pass.token, end);
        } else if pass.read.is_some_and(|active| active > item) {
            pass.stage = Stage::Waits;
            state.send(worker, pass.token, end);
        } else {
            self.deploy(state, worker, &mut pass);
        }
        state.workers[worker] = Some(pass);
    }

    fn deploy(&self, state: &mut State, worker: usize, pass: &mut Pass) {
        let item = pass.item;
        let activate = |state: &mut State| {
            state.early |= !state.selected[item];
            state.running[item] = true;
            state.route = Some(item);
            state.served = true;
        };
        let retire = |state: &mut State| (0..item).for_each(|version| state.stop(version));
        match pass.stage {
            Stage::Prepare => {
                state.running[item] = true;
                if self.0 == Variant::ActivateBeforeCommit {
                    activate(state);
                }
                pass.stage = if pass.read == Some(item) {
                    Stage::Activate
                } else {
                    Stage::Publish
                };
            }
            Stage::Publish => {
                let (from, to) = (pass.read, item);
                state.send(worker, pass.token, Commit::Pointer { from, to });
                pass.stage = Stage::Waits;
            }
            Stage::Activate => {
                if self.0 == Variant::RetireBeforeActivate {
                    retire(state);
                    pass.stage = Stage::Retire;
                } else {
                    activate(state);
                    pass.stage = Stage::Retire;
                }
            }
            Stage::Retire => {
                if self.0 == Variant::RetireBeforeActivate {
                    activate(state);
                } else {
                    retire(state);
                }
                pass.stage = Stage::Complete;
            }
            Stage::Complete => {
                state.send(worker, pass.token, Commit::End { item });
                pass.stage = Stage::Waits;
            }
            Stage::Waits => {}
        }
    }

    fn arrive(&self, state: &mut State, at: usize) {
        let (sender, token, commit) = state.sent.remove(at);
        let item = match commit {
            Commit::Pointer { to, .. } => to,
            Commit::End { item } => item,
        };
        let held = state.work[item] == Work::Claimed(token) || self.0 == Variant::NoFence;
        let pass = sender.and_then(|worker| state.workers[worker].clone().map(|pass| (worker, pass)));
        let goes_on = match commit {
            _ if !held => None,
            Commit::Pointer { from, to } => {
                let compared = state.pointer == from || self.0 == Variant::NoFence;
                (compared && state.wanted()).then(|| {
                    state.back |= state.pointer.is_some_and(|active| active > to);
                    state.pointer = Some(to);
                    state.selected[to] = true;
                    Stage::Activate
                })
            }
            Commit::End { item } => {
                state.rewritten |= state.work[item] == Work::Done;
                if item == STOP && state.stops_wanted {
                    state.pointer = None;
                }
                state.work[item] = Work::Done;
                None
            }
        };
        let Some((worker, mut pass)) = pass.filter(|(_, pass)| pass.token == token) else {
            return;
        };
        state.workers[worker] = goes_on.map(|stage| {
            pass.stage = stage;
            pass.read = state.pointer;
            pass
        });
        // A pointer that did not move: the pass ends, and the work is tried again.
        if goes_on.is_none() && state.work[item] == Work::Claimed(token) {
            state.work[item] = Work::Queued;
        }
    }
}

impl Model for Protocol {
    type State = State;
    type Action = Act;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            work: [Work::Absent; 3],
            tokens: 0,
            stops_wanted: false,
            pointer: None,
            selected: [false; 2],
            running: [false; 2],
            route: None,
            served: false,
            workers: [None, None],
            sent: Vec::new(),
            crashes: 0,
            back: false,
            rewritten: false,
            early: false,
        }]
    }

    fn actions(&self, state: &State, actions: &mut Vec<Act>) {
        if state.work[1] == Work::Absent {
            actions.push(Act::Admit);
        }
        if state.work[STOP] == Work::Absent && state.work[0] != Work::Absent {
            actions.push(Act::AskToStop);
        }
        let free = !state.work.iter().any(|work| matches!(work, Work::Claimed(_)));
        for (worker, pass) in state.workers.iter().enumerate() {
            match pass {
                None if free && state.tokens < self.claims() => {
                    let queued = (0..3).filter(|item| state.work[*item] == Work::Queued);
                    actions.extend(queued.map(|item| Act::Claim(worker, item)));
                }
                None => {}
                Some(pass) => {
                    if pass.stage != Stage::Waits {
                        actions.push(Act::Step(worker));
                    }
                    if state.crashes < 2 {
                        actions.push(Act::Die(worker));
                    }
                }
            }
        }
        actions.extend((0..state.sent.len()).map(Act::Arrive));
        for item in 0..3 {
            if let Work::Claimed(token) = state.work[item] {
                // A worker's own deadline never lies after the database's: it has given up by then.
                let lives = state.workers.iter().flatten().any(|pass| pass.token == token);
                if !lives || (self.0 == Variant::LocalExpiry && state.tokens < 4) {
                    actions.push(Act::Lapse(item));
                }
            }
        }
    }

    fn next_state(&self, last: &State, action: Act) -> Option<State> {
        let mut state = last.clone();
        match action {
            Act::Admit => {
                let next = usize::from(state.work[0] != Work::Absent);
                state.work[next] = Work::Queued;
                state.stops_wanted = false;
            }
            Act::AskToStop => {
                state.work[STOP] = Work::Queued;
                state.stops_wanted = true;
            }
            Act::Claim(worker, item) => {
                state.tokens += 1;
                state.work[item] = Work::Claimed(state.tokens);
                state.workers[worker] = Some(Pass {
                    item,
                    token: state.tokens,
                    stage: Stage::Prepare,
                    read: state.pointer,
                });
            }
            Act::Step(worker) => self.step(&mut state, worker),
            Act::Arrive(at) => self.arrive(&mut state, at),
            Act::Die(worker) => {
                state.crashes += 1;
                state.workers[worker] = None;
                for (sender, ..) in &mut state.sent {
                    if *sender == Some(worker) {
                        *sender = None;
                    }
                }
                state.sent.sort_unstable();
            }
            Act::Lapse(item) => state.work[item] = Work::Queued,
        }
        Some(state)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("one Agent never runs twice", |_, state: &State| {
                state.workers.iter().flatten().count() <= 1
            }),
            Property::always("older work never replaces a newer version", |_, state: &State| {
                !state.back
            }),
            Property::always("no result is rewritten", |_, state: &State| !state.rewritten),
            Property::always("nothing is activated before it is selected", |_, state: &State| {
                !state.early
            }),
            Property::always(
                "what served serves until it is replaced or stopped",
                |_, state: &State| !state.served || state.work[STOP] != Work::Absent || state.serves(),
            ),
            Property::always("a stop that was not overtaken leaves nothing", |_, state: &State| {
                let over = state.work[STOP] == Work::Done && state.stops_wanted;
                let quiet = state.workers.iter().all(Option::is_none);
                !(over && quiet) || (state.running == [false; 2] && state.pointer.is_none())
            }),
            Property::sometimes("both versions are deployed and the work is done", |_, state: &State| {
                state.work[0] == Work::Done && state.work[1] == Work::Done && state.pointer == Some(1) && state.serves()
            }),
            Property::sometimes("a stopped Agent comes to rest", |_, state: &State| {
                state.work == [Work::Done; 3] && state.stops_wanted && state.pointer.is_none()
            }),
        ]
    }
}

fn broken(variant: Variant) -> Vec<&'static str> {
    let checker = Protocol(variant).checker().threads(2).spawn_bfs().join();
    let mut names: Vec<_> = Protocol(variant)
        .properties()
        .iter()
        .filter(|property| property.expectation == stateright::Expectation::Always)
        .map(|property| property.name)
        .filter(|name| checker.discovery(name).is_some())
        .collect();
    names.sort_unstable();
    names
}

#[test]
fn the_protocol_keeps_its_rules_in_every_interleaving() {
    let checker = Protocol(Variant::Sound).checker().threads(2).spawn_bfs().join();
    checker.assert_properties();
    assert!(checker.unique_state_count() > 1000, "{}", checker.unique_state_count());
}

#[test]
fn without_the_fence_a_late_commit_is_caught() {
    let broken = broken(Variant::NoFence);
    assert!(
        broken.contains(&"no result is rewritten") || broken.contains(&"older work never replaces a newer version"),
        "{broken:?}"
    );
}

#[test]
fn activation_before_the_commit_is_caught() {
    assert!(broken(Variant::ActivateBeforeCommit).contains(&"nothing is activated before it is selected"));
}

#[test]
fn retirement_before_the_activation_is_caught() {
    assert!(broken(Variant::RetireBeforeActivate).contains(&"what served serves until it is replaced or stopped"));
}

#[test]
fn expiry_by_a_local_clock_is_caught() {
    assert!(broken(Variant::LocalExpiry).contains(&"one Agent never runs twice"));
}
