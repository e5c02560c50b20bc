//! Stored forms that cannot be what the driver wrote (spec/contracts 9.9, malformed payloads).

use async_trait::async_trait;
use occ_core::{
    driver::{MemoryState, SecretIdentity},
    resource::BackendRef,
};

use super::{
    Damage,
    scene::{Scene, identity},
};
use crate::{canary::CREDENTIAL, records::context};

/// Spoils every record that the driver keeps through the operation's context: emptied, cut, lengthened, exchanged for something else,
/// and with one bit turned in each of many places.
#[derive(Debug, Clone, Copy, Default)]
pub struct RecordDamage;

type Spoil = fn(&[u8]) -> Vec<u8>;

const WAYS: [Spoil; 6] = [
    |_| Vec::new(),
    |bytes| bytes[..bytes.len() / 2].to_vec(),
    |bytes| bytes[..bytes.len().saturating_sub(1)].to_vec(),
    |bytes| [bytes, b"x"].concat(),
    |_| b"{}".to_vec(),
    |_| vec![0xff; 64],
];
/// In so many places, evenly apart, a bit is turned.
const PLACES: usize = 24;

fn spoilt(way: usize, bytes: &[u8]) -> Vec<u8> {
    if let Some(spoil) = WAYS.get(way) {
        return spoil(bytes);
    }
    let mut turned = bytes.to_vec();
    if let Some(byte) = turned.get_mut(bytes.len() * (way - WAYS.len()) / PLACES) {
        *byte ^= 1;
    }
    turned
}

#[async_trait]
impl Damage for RecordDamage {
    fn ways(&self) -> usize {
        WAYS.len() + PLACES
    }

    async fn spoil(&self, way: usize, records: &MemoryState, _: &SecretIdentity, _: &BackendRef) {
        let cx = context(records);
        for (driver, key, bytes) in records.dump() {
            let entry = cx.state().get(&driver, &key).await.expect("a record in memory");
            let version = entry.map(|entry| entry.version);
            let spoilt = spoilt(way, &bytes);
            cx.state()
                .put(&driver, &key, version, spoilt)
                .expect("one write a record");
        }
        records.commit(cx.state().take_staged()).expect("nobody else writes");
    }
}

pub(super) async fn a_spoilt_object_is_never_another_value(scene: &Scene) {
    let damage = scene.subject.damage().expect("the rule needs damage");
    for way in 0..damage.ways() {
        let secret = identity(scene.secret.namespace_id);
        let at = scene.try_create(&secret, CREDENTIAL).await;
        let at = at.expect("a new Secret is stored");
        damage.spoil(way, &scene.records, &secret, &at).await;
        // What was spoilt may be something that the value does not depend on.
        if let Ok(value) = scene.value(&secret, &at).await {
            assert!(
                value.expose() == CREDENTIAL.as_bytes(),
                "spoilt in way {way}, it was another value"
            );
        }
        // Whatever else is asked of it is answered, and without the value.
        let _ = scene.resolve(&secret, &at).await;
        let _ = scene.delete(&secret, &at).await;
    }
}
