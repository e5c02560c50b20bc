//! Where ids, tokens and jitter come from: the operating system, unless a simulation owns them.

use std::{cell::RefCell, fmt, marker::PhantomData};

use uuid::{Builder, Uuid};

type Source = Box<dyn FnMut() -> u64>;

thread_local! {
    static OWNED: RefCell<Option<Source>> = const { RefCell::new(None) };
}

/// While it lives, whatever is random on this thread comes from its source. A simulation that runs on one thread is then a
/// function of its seed.
#[must_use]
pub struct Owned(PhantomData<*const ()>);

impl fmt::Debug for Owned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Owned")
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        OWNED.set(None);
    }
}

/// Takes over this thread's randomness.
pub fn own(source: impl FnMut() -> u64 + 'static) -> Owned {
    OWNED.set(Some(Box::new(source)));
    Owned(PhantomData)
}

fn owned() -> Option<u64> {
    OWNED.with_borrow_mut(|source| source.as_mut().map(|next| next()))
}

/// A fresh UUID of version 4.
pub fn uuid() -> Uuid {
    let (Some(high), Some(low)) = (owned(), owned()) else {
        return Uuid::new_v4();
    };
    Builder::from_u128((u128::from(high) << 64) | u128::from(low))
        .with_version(uuid::Version::Random)
        .with_variant(uuid::Variant::RFC4122)
        .into_uuid()
}

/// Evenly spread over `[0, 1)`.
#[cfg(feature = "engine")]
#[allow(clippy::cast_precision_loss)]
pub fn unit() -> f64 {
    // The 53 bits that a double holds exactly.
    owned().map_or_else(rand::random, |bits| (bits >> 11) as f64 / (1_u64 << 53) as f64)
}

/// Evenly spread over `0..=most`.
#[cfg(feature = "engine")]
pub fn at_most(most: u64) -> u64 {
    match owned() {
        Some(bits) => most.checked_add(1).map_or(bits, |count| bits % count),
        None => rand::random_range(0..=most),
    }
}

/// Bytes that nobody can guess.
#[cfg(feature = "engine")]
pub fn secret_bytes() -> [u8; 32] {
    let mut bytes: [u8; 32] = rand::random();
    for chunk in bytes.chunks_exact_mut(8) {
        if let Some(bits) = owned() {
            chunk.copy_from_slice(&bits.to_le_bytes());
        }
    }
    bytes
}

#[cfg(all(test, feature = "engine"))]
mod tests {
    use super::*;

    fn drawn() -> (Uuid, f64, u64, [u8; 32]) {
        (uuid(), unit(), at_most(9), secret_bytes())
    }

    fn counting(from: u64) -> impl FnMut() -> u64 {
        let mut next = from;
        move || {
            next = next.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            next
        }
    }

    #[test]
    fn owned_randomness_is_a_function_of_its_source() {
        let draw = |seed| {
            let _owned = own(counting(seed));
            drawn()
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7).0, draw(8).0);
        let (id, unit, small, _) = draw(7);
        assert_eq!(id.get_version_num(), 4);
        assert!((0.0..1.0).contains(&unit) && small <= 9);
    }

    #[test]
    fn it_is_nobodys_again_afterwards() {
        drop(own(|| 1));
        assert_ne!(drawn().0, drawn().0);
    }
}
