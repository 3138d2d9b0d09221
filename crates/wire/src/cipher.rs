//! The algorithms of the handshake and of the records, chosen for what they cost here.
//!
//! All output of a job passes through one channel of the front end, so the cipher is chosen by
//! its throughput in records of 64 KiB. Measured on one core of a Xeon with VAES, the better of two
//! runs while the other core was busy (seal / open, GB/s): snow's own ChaCha20-Poly1305 1.0 / 1.1
//! and AES-256-GCM 1.2 / 1.2; ring's ChaCha20-Poly1305 1.6 / 1.7 and AES-256-GCM **6.2 / 6.2**.
//! Hence ring's AES. With buffers and frames a link sends 5.1 GB/s and receives 5.8 GB/s in pieces
//! of 64 KiB, 3.5 and 4.1 in pieces of 1,000 bytes (`cargo run -p wire --release --example
//! throughput`). Both sides of a handshake together take 0.2 ms of CPU, whichever the hash.
//!
//! snow's `ring-resolver` feature would bring `std` along; the forty lines below do not.
//!
//! Pure crates know no randomness, so the one random thing that a handshake needs, an ephemeral
//! private key, comes from the driver. [`Once`] hands it out a single time: a second
//! request is an error, never a repeated key.

use alloc::boxed::Box;

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, DefaultResolver};
use snow::types::{Cipher, Dh, Hash, Random};

use crate::secret::Ephemeral;

/// The Noise protocol that all channels speak.
pub(crate) const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";

/// Bytes by which a ciphertext is longer than its plaintext.
pub(crate) const TAG_BYTES: usize = 16;

/// Resolves [`PATTERN`]'s algorithms, and one draw of randomness.
pub(crate) struct Resolver(pub(crate) Ephemeral);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(Ephemeral::new(self.0.0)))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        DefaultResolver.resolve_dh(choice)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        DefaultResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn Cipher>> {
        match choice {
            CipherChoice::AESGCM => Some(Box::new(AesGcm::new(&[0; 32]))),
            CipherChoice::ChaChaPoly => None,
        }
    }
}

/// Thirty-two random bytes that can be drawn once.
struct Once(Option<Ephemeral>);

impl Random for Once {
    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        let bytes = self.0.take().ok_or(Error::Rng)?;
        dest.copy_from_slice(bytes.0.get(..dest.len()).ok_or(Error::Rng)?);
        Ok(())
    }
}

/// AES-256-GCM as the Noise specification, section 12.4, uses it.
struct AesGcm(LessSafeKey);

impl AesGcm {
    fn new(key: &[u8; 32]) -> AesGcm {
        let key = UnboundKey::new(&AES_256_GCM, key).expect("the key is as long as the cipher's");
        // Less safe: the nonces are counted by snow.
        AesGcm(LessSafeKey::new(key))
    }
}

impl Cipher for AesGcm {
    fn name(&self) -> &'static str {
        "AESGCM"
    }

    fn set(&mut self, key: &[u8; 32]) {
        *self = AesGcm::new(key);
    }

    fn encrypt(&self, nonce: u64, authtext: &[u8], plaintext: &[u8], out: &mut [u8]) -> usize {
        let (text, tag) = out.split_at_mut(plaintext.len());
        text.copy_from_slice(plaintext);
        let sealed = self
            .0
            .seal_in_place_separate_tag(nonce_of(nonce), Aad::from(authtext), text)
            .expect("a record is shorter than the cipher's limit");
        tag[..TAG_BYTES].copy_from_slice(sealed.as_ref());
        plaintext.len() + TAG_BYTES
    }

    /// `out` must have room for the tag too: ring decrypts in place.
    fn decrypt(
        &self,
        nonce: u64,
        authtext: &[u8],
        ciphertext: &[u8],
        out: &mut [u8],
    ) -> Result<usize, Error> {
        let in_place = out.get_mut(..ciphertext.len()).ok_or(Error::Input)?;
        in_place.copy_from_slice(ciphertext);
        self.0
            .open_in_place(nonce_of(nonce), Aad::from(authtext), in_place)
            .map(|text| text.len())
            .map_err(|_| Error::Decrypt)
    }
}

fn nonce_of(count: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&count.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}
