//! How often somebody may try to sign in: by address and by account, within bounded memory.
//!
//! Nothing is ever locked: a limit is a rate, which fills up again by itself. An address from which the account was signed in to
//! is counted apart, so that strangers who try cannot keep its person out.

use std::{
    collections::HashMap,
    hash::Hash,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::time::Instant;

use crate::{digest, resource::Email};

/// So many at once, and then one in each interval.
#[derive(Debug, Clone, Copy)]
struct Rate {
    burst: u32,
    every: Duration,
}

/// From one address, for whichever accounts.
const ADDRESS: Rate = Rate {
    burst: 20,
    every: Duration::from_secs(3),
};
/// For one account, from every address that is not known to be its person's.
const ACCOUNT: Rate = Rate {
    burst: 10,
    every: Duration::from_secs(30),
};
/// For one account, from one address that it was signed in to from.
const KNOWN: Rate = Rate {
    burst: 10,
    every: Duration::from_secs(10),
};
/// How many addresses and accounts are counted, and how many known addresses are remembered.
const MOST: usize = 16_384;

/// An address, or the network that one subscriber has.
type Network = Option<IpAddr>;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum Key {
    Address(Network),
    Account(String),
    Known(String, Network),
}

#[derive(Debug, Default)]
struct Counted {
    /// When each is as if nobody had tried.
    full_at: HashMap<Key, Instant>,
    /// Addresses that accounts were signed in to from, and when last.
    known: HashMap<(String, Network), Instant>,
}

/// The counts of one process.
#[derive(Debug, Default)]
pub(super) struct Throttle(Mutex<Counted>);

/// An attempt that was let through, and what it is counted as.
#[derive(Debug)]
pub(super) struct Attempt {
    keys: Vec<(Key, Rate)>,
    account: Option<String>,
    network: Network,
}

/// An IPv6 subscriber has at least a /64 to choose addresses from.
fn network(address: Option<IpAddr>) -> Network {
    address.map(|address| match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        v4 @ IpAddr::V4(_) => v4,
    })
}

impl Counted {
    /// Takes one; otherwise how long until there is one.
    fn take(&mut self, key: &Key, rate: Rate, now: Instant) -> Result<(), Duration> {
        let full_at = self.full_at.get(key).copied().unwrap_or(now).max(now);
        let most = rate.every * (rate.burst - 1);
        let owed = full_at - now;
        if let Some(wait) = owed.checked_sub(most).filter(|wait| !wait.is_zero()) {
            return Err(wait);
        }
        room(&mut self.full_at, key, |full_at| *full_at <= now);
        self.full_at.insert(key.clone(), full_at + rate.every);
        Ok(())
    }
}

/// Room for one more: first what is `over` goes, then the oldest.
fn room<K: Hash + Eq + Clone>(table: &mut HashMap<K, Instant>, key: &K, over: impl Fn(&Instant) -> bool) {
    if table.len() < MOST || table.contains_key(key) {
        return;
    }
    table.retain(|_, at| !over(at));
    if table.len() >= MOST {
        let oldest = table.iter().min_by_key(|(_, at)| **at).map(|(key, _)| key.clone());
        if let Some(oldest) = oldest {
            table.remove(&oldest);
        }
    }
}

impl Throttle {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts an attempt, for an account when a password is guessed at; otherwise how long to wait.
    pub(super) fn pass(&self, account: Option<&Email>, address: Option<IpAddr>) -> Result<Attempt, Duration> {
        let (now, network) = (Instant::now(), network(address));
        let account = account.map(|email| digest::hex(email.as_str().as_bytes()));
        let mut counted = self.lock();
        let mut keys = vec![(Key::Address(network), ADDRESS)];
        if let Some(account) = &account {
            let known = counted.known.contains_key(&(account.clone(), network));
            keys.push(if known {
                (Key::Known(account.clone(), network), KNOWN)
            } else {
                (Key::Account(account.clone()), ACCOUNT)
            });
        }
        for (key, rate) in &keys {
            counted.take(key, *rate, now)?;
        }
        Ok(Attempt { keys, account, network })
    }

    /// The attempt was right: it does not count, and its address is known from now on.
    pub(super) fn right(&self, attempt: Attempt) {
        let now = Instant::now();
        let mut counted = self.lock();
        for (key, rate) in attempt.keys {
            if let Some(full_at) = counted.full_at.get_mut(&key) {
                *full_at = full_at.checked_sub(rate.every).unwrap_or(now);
            }
        }
        if let Some(account) = attempt.account {
            let known = (account, attempt.network);
            room(&mut counted.known, &known, |_| false);
            counted.known.insert(known, now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn email(text: &str) -> Email {
        text.parse().unwrap()
    }

    fn address(last: u16) -> IpAddr {
        Ipv6Addr::new(0x2001, 0xdb8, 0, last, 0, 0, 0, 1).into()
    }

    #[tokio::test(start_paused = true)]
    async fn an_account_is_limited_over_all_addresses_and_never_for_long() {
        let (throttle, ada) = (Throttle::default(), email("ada@example.com"));
        for tries in 0..10 {
            assert!(throttle.pass(Some(&ada), Some(address(tries))).is_ok(), "{tries}");
        }
        let wait = throttle.pass(Some(&ada), Some(address(99))).unwrap_err();
        assert_eq!(wait, ACCOUNT.every);
        assert!(
            throttle
                .pass(Some(&email("eve@example.com")), Some(address(99)))
                .is_ok()
        );
        tokio::time::advance(wait).await;
        assert!(throttle.pass(Some(&ada), Some(address(99))).is_ok());
        assert!(throttle.pass(Some(&ada), Some(address(99))).is_err());
    }

    #[tokio::test(start_paused = true)]
    async fn strangers_who_try_do_not_keep_the_person_out() {
        let (throttle, ada) = (Throttle::default(), email("ada@example.com"));
        throttle.right(throttle.pass(Some(&ada), Some(address(1))).unwrap());
        for tries in 100..130 {
            let _ = throttle.pass(Some(&ada), Some(address(tries)));
        }
        assert!(throttle.pass(Some(&ada), Some(address(130))).is_err());
        assert!(
            throttle.pass(Some(&ada), Some(address(1))).is_ok(),
            "her own address is known"
        );
        assert!(
            throttle.pass(None, Some(address(130))).is_ok(),
            "a code is not guessed at"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_is_limited_over_all_accounts() {
        let throttle = Throttle::default();
        for tries in 0..20 {
            let account = email(&format!("{tries}@example.com"));
            assert!(throttle.pass(Some(&account), Some(address(1))).is_ok(), "{tries}");
        }
        assert!(throttle.pass(Some(&email("x@example.com")), Some(address(1))).is_err());
        // Another address of the same network is the same; another network is not.
        let neighbour = Some(Ipv6Addr::new(0x2001, 0xdb8, 0, 1, 9, 9, 9, 9).into());
        assert!(throttle.pass(None, neighbour).is_err());
        assert!(throttle.pass(None, Some(address(2))).is_ok());
    }

    #[tokio::test(start_paused = true)]
    async fn who_is_right_is_not_limited() {
        let (throttle, ada) = (Throttle::default(), email("ada@example.com"));
        for _ in 0..200 {
            throttle.right(throttle.pass(Some(&ada), Some(address(1))).unwrap());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn memory_is_bounded() {
        let throttle = Throttle::default();
        for account in 0..MOST + 100 {
            let account = email(&format!("{account}@example.com"));
            let from = IpAddr::from([10, 0, 0, 1]);
            // The address is at its limit long before: count by account alone.
            let key = Key::Account(digest::hex(account.as_str().as_bytes()));
            let _ = throttle.lock().take(&key, ACCOUNT, Instant::now());
            let attempt = Attempt {
                keys: Vec::new(),
                account: Some(account.to_string()),
                network: Some(from),
            };
            throttle.right(attempt);
        }
        let counted = throttle.lock();
        assert!(counted.full_at.len() <= MOST && counted.known.len() <= MOST);
    }
}
