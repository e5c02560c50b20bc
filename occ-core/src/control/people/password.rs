//! Passwords: argon2id, bounded in how many are hashed at once.

use std::{ops::RangeInclusive, sync::Arc, time::Duration};

use argon2::{Algorithm, Argon2, Params, PasswordHasher as _, PasswordVerifier as _, Version};
use tokio::{sync::Semaphore, time::timeout};

use crate::{
    admission::{DetailCode, Refusal},
    control::Answer,
    reason::ApiCode,
    secret_value::SecretValue,
    store::PasswordHash,
};

/// Memory of one hash, in KiB; with [`PASSES`] and [`LANES`] what OWASP recommends. A stored hash carries its own.
const MEMORY_KIB: u32 = 19_456;
const PASSES: u32 = 2;
const LANES: u32 = 1;
/// How long a password is, in characters. Long ones beat odd ones: nothing else is asked of it.
const CHARACTERS: RangeInclusive<usize> = 12..=256;
/// How many are hashed at once: each takes a processor and the memory above.
const AT_ONCE: usize = 4;
/// How long one may wait for its turn.
const PATIENCE: Duration = Duration::from_secs(10);

/// Hashes and verifies. The work is done where it blocks nobody.
#[derive(Debug)]
pub(super) struct Passwords(Arc<Semaphore>);

impl Default for Passwords {
    fn default() -> Self {
        Self(Arc::new(Semaphore::new(AT_ONCE)))
    }
}

fn hasher() -> Argon2<'static> {
    let params = Params::new(MEMORY_KIB, PASSES, LANES, None).expect("the parameters are valid");
    Argon2::new(Algorithm::Argon2id, Version::V0x13, params)
}

/// Belongs to no password: for an account that is not there or has none, so that its answer takes as long.
fn nobodys() -> String {
    let (salt, output) = ("A".repeat(22), "A".repeat(43));
    format!("$argon2id$v=19$m={MEMORY_KIB},t={PASSES},p={LANES}${salt}${output}")
}

/// 400 unless it may be a password; `path` is where it stands in the request.
pub(super) fn check_new(password: &SecretValue, path: &str) -> Answer<()> {
    let invalid = || Refusal::invalid("A password must have 12 to 256 characters.");
    let Some(text) = password.expose_str() else {
        return Err(invalid().at(path, DetailCode::InvalidFormat));
    };
    match text.chars().count() {
        count if count > *CHARACTERS.end() => Err(invalid().at(path, DetailCode::TooLong)),
        count if count < *CHARACTERS.start() || text.contains('\0') => {
            Err(invalid().at(path, DetailCode::InvalidValue))
        }
        _ => Ok(()),
    }
}

impl Passwords {
    /// The hash of a new password.
    pub(super) async fn hash(&self, password: SecretValue) -> Answer<PasswordHash> {
        let salt = crate::randomness::secret_bytes();
        let hash = move || {
            let hashed: Result<argon2::PasswordHash, _> =
                hasher().hash_password_with_salt(password.expose(), &salt[..16]);
            hashed.map(|hash| PasswordHash::new(hash.to_string())).ok()
        };
        self.blocking(hash).await?.ok_or_else(|| {
            tracing::error!("a password could not be hashed");
            Refusal::new(ApiCode::InternalError)
        })
    }

    /// Whether it is the password of this hash. Without a hash it takes as long and is false.
    pub(super) async fn verify(&self, password: SecretValue, stored: Option<PasswordHash>) -> Answer<bool> {
        self.blocking(move || {
            let known = stored.is_some();
            let stored = stored.unwrap_or_else(|| PasswordHash::new(nobodys()));
            let same = hasher().verify_password(password.expose(), stored.as_str()).is_ok();
            known && same
        })
        .await
    }

    async fn blocking<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Answer<T> {
        let busy = || Refusal::new(ApiCode::SignInRateLimited).retry_after(PATIENCE);
        let turn = timeout(PATIENCE, Arc::clone(&self.0).acquire_owned());
        let turn = turn.await.map_err(|_| busy())?.map_err(|_| busy())?;
        let done = tokio::task::spawn_blocking(move || {
            // Held for as long as the work takes, also when whoever asked is gone.
            let _turn = turn;
            work()
        });
        done.await.map_err(|_| Refusal::new(ApiCode::InternalError))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn value(text: &str) -> SecretValue {
        SecretValue::from(text.to_owned())
    }

    #[tokio::test]
    async fn a_hash_is_of_its_password_alone_and_salted() {
        let passwords = Passwords::default();
        let hash = passwords.hash(value("correct horse battery")).await.unwrap();
        let phc = hash.as_str();
        assert!(phc.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{phc}");
        assert_ne!(passwords.hash(value("correct horse battery")).await.unwrap(), hash);
        for (password, stored, same) in [
            ("correct horse battery", Some(hash.clone()), true),
            ("correct horse batterY", Some(hash.clone()), false),
            ("", Some(hash.clone()), false),
            ("correct horse battery", None, false),
            (
                "correct horse battery",
                Some(PasswordHash::new("nonsense".to_owned())),
                false,
            ),
        ] {
            assert_eq!(passwords.verify(value(password), stored).await, Ok(same), "{password}");
        }
    }

    #[test]
    fn nobodys_hash_costs_what_a_real_one_does() {
        let nobodys = nobodys();
        let hash = argon2::PasswordHash::new(&nobodys).unwrap();
        let params = Params::try_from(&hash).unwrap();
        assert_eq!(
            (params.m_cost(), params.t_cost(), params.p_cost()),
            (MEMORY_KIB, PASSES, LANES)
        );
        assert!(hash.salt.is_some() && hash.hash.is_some());
    }

    #[test]
    fn a_password_is_long_and_anything_else() {
        for (password, code) in [
            ("elevencharс".to_owned(), Some(DetailCode::InvalidValue)),
            ("é".repeat(12), None),
            ("x".repeat(256), None),
            ("x".repeat(257), Some(DetailCode::TooLong)),
            ("twelve\0chars".to_owned(), Some(DetailCode::InvalidValue)),
        ] {
            let checked = check_new(&value(&password), "/password");
            let found = checked.err().map(|refusal| refusal.details()[0].code);
            assert_eq!(found, code, "{password:?}");
        }
    }
}
