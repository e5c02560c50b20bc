//! What is asked of the database while a statement of the same kind is under way goes together in the next one.
//!
//! A statement costs the server far more than the rows that it is about: its plan is set up, its log is flushed, processes are woken. Nobody
//! waits in order to be joined: who comes alone goes at once and alone, and the more come at once, the less each costs.

use std::{
    collections::{HashSet, VecDeque},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use sqlx::{Row as _, postgres::PgRow};
use tokio::sync::oneshot;

use super::fault::Fault;

/// At most so many go in one, so that none grows long.
const MOST: usize = 64;

/// Questions of one kind, and their answers.
pub(super) struct Together<Q, A>(Arc<Mutex<Queue<Q, A>>>);

struct Queue<Q, A> {
    under_way: bool,
    waiting: VecDeque<Waiting<Q, A>>,
}

struct Waiting<Q, A> {
    question: Q,
    told: oneshot::Sender<Told<Q, A>>,
}

/// What becomes of one who waits.
enum Told<Q, A> {
    Answered(A),
    /// It is its turn to ask, for itself and for those that wait with it.
    Asks(Q, Turn<Q, A>),
}

/// A turn at once, or what will be told.
type Entered<Q, A> = Result<(Q, Turn<Q, A>), oneshot::Receiver<Told<Q, A>>>;

/// The right to have a statement under way. Whoever drops it, at the end or on the way, passes it on.
struct Turn<Q, A>(Option<Arc<Mutex<Queue<Q, A>>>>);

impl<Q, A> Default for Together<Q, A> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(Queue {
            under_way: false,
            waiting: VecDeque::new(),
        })))
    }
}

fn lock<Q, A>(queue: &Mutex<Queue<Q, A>>) -> MutexGuard<'_, Queue<Q, A>> {
    queue.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<Q, A> Together<Q, A> {
    /// The answer to a question. `all` answers many in their order, this one among them. `None` when it had no answer, or when whoever asked for
    /// this one too went away; what was asked may then have happened, or not.
    pub(super) async fn ask<F>(&self, question: Q, all: impl FnOnce(Vec<Q>) -> F) -> Option<A>
    where
        F: Future<Output = Vec<A>>,
    {
        let (question, turn) = match self.enter(question) {
            Ok(entered) => entered,
            Err(told) => match told.await.ok()? {
                Told::Answered(answer) => return Some(answer),
                Told::Asks(question, turn) => (question, turn),
            },
        };
        let mut questions = vec![question];
        let mut waiting = Vec::new();
        {
            let mut queue = lock(&self.0);
            let others = queue.waiting.len().min(MOST - 1);
            for other in queue.waiting.drain(..others) {
                // Who went away is not asked for.
                if !other.told.is_closed() {
                    questions.push(other.question);
                    waiting.push(other.told);
                }
            }
        }
        let mut answers = all(questions).await.into_iter();
        drop(turn);
        let own = answers.next();
        for (told, answer) in waiting.into_iter().zip(answers) {
            let _ = told.send(Told::Answered(answer));
        }
        own
    }

    /// Takes a turn, or a place among those that wait.
    fn enter(&self, question: Q) -> Entered<Q, A> {
        let mut queue = lock(&self.0);
        if !queue.under_way {
            queue.under_way = true;
            return Ok((question, Turn(Some(Arc::clone(&self.0)))));
        }
        let (told, tell) = oneshot::channel();
        queue.waiting.push_back(Waiting { question, told });
        Err(tell)
    }
}

/// Which of so many changes were committed. When the statement was refused nothing of any happened: each is tried alone, and one of them finds
/// out why.
pub(super) fn committed(numbers: Result<Vec<PgRow>, Fault>, count: usize) -> Vec<Result<bool, Fault>> {
    let numbers = numbers.and_then(|rows| {
        let numbers = rows.iter().map(|row| row.try_get(0));
        Ok(numbers.collect::<Result<HashSet<i32>, _>>()?)
    });
    match numbers {
        Ok(numbers) => (0..).take(count).map(|number| Ok(numbers.contains(&number))).collect(),
        Err(Fault::Refused(_)) => vec![Ok(false); count],
        Err(fault) => vec![Err(fault); count],
    }
}

impl<Q: Clone, T> Together<Q, Result<T, Fault>> {
    /// Asks for what may be asked for twice. When what another one asks for cannot be read, this one is asked for alone.
    pub(super) async fn read<F>(&self, question: &Q, all: impl Fn(Vec<Q>) -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<Vec<T>, Fault>>,
    {
        let together = self.ask(question.clone(), async |questions: Vec<Q>| {
            let count = questions.len();
            match all(questions).await {
                Ok(answers) => answers.into_iter().map(Ok).collect(),
                Err(Fault::Corrupt(_) | Fault::Refused(_)) if count > 1 => Vec::new(),
                Err(fault) => std::iter::repeat_with(|| Err(fault.clone())).take(count).collect(),
            }
        });
        if let Some(answer) = together.await {
            return answer;
        }
        let alone = all(vec![question.clone()]).await?;
        alone.into_iter().next().ok_or(Fault::Corrupt("row"))
    }
}

impl<Q, A> Drop for Turn<Q, A> {
    fn drop(&mut self) {
        let Some(queue) = self.0.take() else { return };
        loop {
            let next = {
                let mut queue = lock(&queue);
                let next = queue.waiting.pop_front();
                queue.under_way = next.is_some();
                next
            };
            let Some(Waiting { question, told }) = next else { return };
            match told.send(Told::Asks(question, Self(Some(Arc::clone(&queue))))) {
                Ok(()) => return,
                // It went away, and the turn is still this one.
                Err(Told::Asks(_, mut turn)) => turn.0 = None,
                Err(Told::Answered(_)) => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::task::{Context, Poll, Waker};

    use tokio::sync::Semaphore;

    use super::*;

    /// Answers each with how many were asked at once, when it is let.
    async fn counted(gate: &Semaphore, questions: Vec<u32>) -> Vec<(u32, usize)> {
        gate.acquire().await.expect("an open gate").forget();
        let count = questions.len();
        questions.into_iter().map(|question| (question, count)).collect()
    }

    fn poll<T>(future: std::pin::Pin<&mut impl Future<Output = T>>) -> Poll<T> {
        future.poll(&mut Context::from_waker(Waker::noop()))
    }

    #[test]
    fn who_comes_alone_goes_alone_and_who_comes_meanwhile_goes_together() {
        let (together, gate) = (Together::default(), Semaphore::new(0));
        let ask = |question| Box::pin(together.ask(question, |all| counted(&gate, all)));
        let mut asked = [1, 2, 3, 4].map(ask);
        for asked in &mut asked {
            assert!(poll(asked.as_mut()).is_pending());
        }
        gate.add_permits(1);
        assert_eq!(poll(asked[0].as_mut()), Poll::Ready(Some((1, 1))));
        // The second has the turn now, and asks for those behind it.
        for asked in &mut asked[1..] {
            assert!(poll(asked.as_mut()).is_pending());
        }
        gate.add_permits(1);
        for (asked, question) in asked[1..].iter_mut().zip(2..) {
            assert_eq!(poll(asked.as_mut()), Poll::Ready(Some((question, 3))));
        }
        assert!(!lock(&together.0).under_way);
    }

    #[test]
    fn no_statement_grows_beyond_its_limit() {
        let (together, gate) = (Together::default(), Semaphore::new(0));
        let ask = |question| Box::pin(together.ask(question, |all| counted(&gate, all)));
        let mut asked: Vec<_> = (0..u32::try_from(MOST + 2).expect("small")).map(ask).collect();
        let mut counts = Vec::new();
        // They come while the first is under way, and then it is let.
        for permits in [0, 3, 0, 0] {
            gate.add_permits(permits);
            asked.retain_mut(|asked| match poll(asked.as_mut()) {
                Poll::Ready(answer) => {
                    counts.push(answer.expect("an answer").1);
                    false
                }
                Poll::Pending => true,
            });
        }
        assert!(asked.is_empty());
        counts.sort_unstable();
        assert_eq!((counts[0], counts[1], counts[2], counts[MOST + 1]), (1, 1, MOST, MOST));
    }

    #[test]
    fn who_goes_away_takes_nobody_along() {
        let (together, gate) = (Together::default(), Semaphore::new(0));
        let ask = |question| Some(Box::pin(together.ask(question, |all| counted(&gate, all))));
        let mut asked: Vec<_> = (0..6).map(ask).collect();
        for asked in asked.iter_mut().flatten() {
            assert!(poll(asked.as_mut()).is_pending());
        }
        // One that waits, one that is asking, and the one whose turn it is then and who does not know yet.
        asked[3] = None;
        asked[0] = None;
        asked[1] = None;
        for asked in asked.iter_mut().flatten() {
            assert!(poll(asked.as_mut()).is_pending());
        }
        gate.add_permits(1);
        for number in [2, 4, 5] {
            let answer = poll(asked[number].as_mut().expect("it waits").as_mut());
            assert_eq!(answer, Poll::Ready(Some((u32::try_from(number).expect("small"), 3))));
        }
        assert!(!lock(&together.0).under_way);
    }

    #[test]
    fn who_was_asked_for_by_one_that_went_away_is_told_so() {
        let (together, gate) = (Together::default(), Semaphore::new(0));
        let ask = |question| Box::pin(together.ask(question, |all| counted(&gate, all)));
        let [mut first, mut second, mut third] = [1, 2, 3].map(ask);
        for asked in [&mut first, &mut second, &mut third] {
            assert!(poll(asked.as_mut()).is_pending());
        }
        gate.add_permits(1);
        assert!(poll(first.as_mut()).is_ready());
        assert!(poll(second.as_mut()).is_pending(), "it asks for the third too");
        drop(second);
        assert_eq!(poll(third.as_mut()), Poll::Ready(None));
        assert!(!lock(&together.0).under_way);
    }
}
