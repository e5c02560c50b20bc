//! What the double signs with.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use ed25519_dalek::Signer as _;
use hmac::{Hmac, KeyInit as _, Mac as _};
use p256::ecdsa::Signature;
use rsa::{BigUint, Pkcs1v15Sign, RsaPrivateKey, traits::PublicKeyParts as _};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

/// How it signs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Algorithm {
    /// Ed25519.
    EdDsa,
    /// ECDSA over P-256.
    Es256,
    /// RSA of 2048 bits, as most providers do.
    Rs256,
}

/// Two primes that everybody may know: they protect nothing. Looking for new ones takes a debug build too long.
const PRIMES: [&str; 2] = [
    "de10ce57380cb0559ada0dcf225180321f64ef6651f459dc7fd76534235494849f5115657408482bbd4a13f0ac38a1893b488b327af9f06a2b2a1166655d8543\
    f762eb042d3d549966e48ec64f410f30f443e9e0bafc7ebfbf2fddf9e33e956960f271412f504330c767af82406a7c20eb9c45fd3ae2e5566505e7949d926c6f",
    "e5333e090b75ce81b73c4faae4f87a0787ca7c1946d5cb804ab89dc30f04276e73f518739d05f8dae2192ed91d987021d4506af87815cd894833276ce9b61c3e\
    983d67e64132c7a8a0925544bdfc04016b59e13980cbf9435261a349cc212321ab30dfa12a794f77ae0b434be04ea1f9901a0b78ef451a640a6a46d7ef0fee77",
];
/// What stands before a SHA-256 digest in an RSA signature (RFC 8017, 9.2).
const SHA256_PREFIX: [u8; 19] = [
    0x30, 0x31, 0x30, 0x0d, 0x06, 0x09, 0x60, 0x86, 0x48, 0x01, 0x65, 0x03, 0x04, 0x02, 0x01, 0x05, 0x00, 0x04, 0x20,
];

/// The key of one generation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Key {
    pub algorithm: Algorithm,
    pub generation: u8,
}

pub(super) fn encoded(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// Signed with a secret that both sides know.
pub(super) fn keyed_hash(secret: &[u8], message: &[u8]) -> Vec<u8> {
    let mut mac = Hmac::<Sha256>::new_from_slice(secret).expect("a key of any length");
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

impl Key {
    fn ed(self) -> ed25519_dalek::SigningKey {
        ed25519_dalek::SigningKey::from_bytes(&[self.generation + 1; 32])
    }

    fn p256(self) -> p256::ecdsa::SigningKey {
        p256::ecdsa::SigningKey::from_slice(&[self.generation + 1; 32]).expect("a scalar of the curve")
    }

    /// The same of every generation.
    fn rsa() -> RsaPrivateKey {
        let [p, q] = PRIMES.map(|digits| BigUint::parse_bytes(digits.as_bytes(), 16).expect("digits"));
        RsaPrivateKey::from_p_q(p, q, BigUint::from(65_537_u32)).expect("primes")
    }

    pub(super) const fn name(self) -> &'static str {
        match self.algorithm {
            Algorithm::EdDsa => "EdDSA",
            Algorithm::Es256 => "ES256",
            Algorithm::Rs256 => "RS256",
        }
    }

    pub(super) fn id(self) -> String {
        format!("{}-{}", self.name(), self.generation)
    }

    pub(super) fn sign(self, message: &[u8]) -> Vec<u8> {
        match self.algorithm {
            Algorithm::EdDsa => self.ed().sign(message).to_bytes().to_vec(),
            Algorithm::Es256 => {
                let signature: Signature = self.p256().sign(message);
                signature.to_bytes().to_vec()
            }
            Algorithm::Rs256 => {
                let padding = Pkcs1v15Sign {
                    hash_len: Some(32),
                    prefix: Box::new(SHA256_PREFIX),
                };
                Self::rsa()
                    .sign(padding, &Sha256::digest(message))
                    .expect("a signature")
            }
        }
    }

    /// What everybody may know of it (RFC 7517).
    pub(super) fn public(self) -> Value {
        let mut key = match self.algorithm {
            Algorithm::EdDsa => {
                json!({ "kty": "OKP", "crv": "Ed25519", "x": encoded(self.ed().verifying_key().to_bytes()) })
            }
            Algorithm::Es256 => {
                let point = self.p256().verifying_key().to_sec1_point(false);
                let (_, coordinates) = point.as_bytes().split_at(1);
                let (x, y) = coordinates.split_at(32);
                json!({ "kty": "EC", "crv": "P-256", "x": encoded(x), "y": encoded(y) })
            }
            Algorithm::Rs256 => {
                let key = Self::rsa();
                json!({ "kty": "RSA", "n": encoded(key.n().to_bytes_be()), "e": encoded(key.e().to_bytes_be()) })
            }
        };
        key["use"] = "sig".into();
        key["alg"] = self.name().into();
        key["kid"] = self.id().into();
        key
    }
}
