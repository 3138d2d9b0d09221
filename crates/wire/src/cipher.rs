//! The algorithms of the handshake and of the records, chosen for what they cost here.
//!
//! All output of a job passes through one channel of the front end, so the cipher is chosen by
//! its throughput in records of 64 KiB. Measured on one core of a Xeon with VAES, the better of two
//! runs while the other core was busy (seal / open, GB/s): snow's own ChaCha20-Poly1305 1.0 / 1.1
//! and AES-256-GCM 1.2 / 1.2; ring's ChaCha20-Poly1305 1.6 / 1.7 and AES-256-GCM **6.2 / 6.2**.
//! Hence ring's AES. With buffers and frames a link sends 6.4 GB/s and receives 6.6 GB/s in pieces
//! of 64 KiB, 4.8 and 5.1 in pieces of 1,000 bytes (`cargo run -p wire --release --example
//! throughput`). Both sides of a handshake together take 0.2 ms of CPU, whichever the hash.
//!
//! SHA-256 is ring's too. Curve25519 is curve25519-dalek's: ring draws its private keys itself.
//!
//! snow does the handshake. Its transport would copy each record once more, so records are sealed
//! and opened in place by [`RecordKey`], just as the Noise specification, section 5.1, says.
//!
//! snow's `ring-resolver` feature would bring `std` along, and its `default-resolver` ciphers and
//! hashes of which we need none; the lines below do not.
//!
//! Pure crates know no randomness, so the one random thing that a handshake needs, an ephemeral
//! private key, comes from the driver. [`Once`] hands it out a single time: a second
//! request is an error, never a repeated key.

use alloc::boxed::Box;
use core::mem;

use curve25519_dalek::MontgomeryPoint;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, Nonce, UnboundKey};
use ring::digest::{Context, SHA256, SHA256_OUTPUT_LEN};
use snow::Error;
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::CryptoResolver;
use snow::types::{Cipher, Dh, Hash, Random};
use zeroize::Zeroizing;

use crate::secret::Ephemeral;

/// The Noise protocol that all channels speak.
pub(crate) const PATTERN: &str = "Noise_NNpsk0_25519_AESGCM_SHA256";

/// Bytes of a private and of a public key.
const KEY_BYTES: usize = 32;

/// Bytes by which a ciphertext is longer than its plaintext.
pub(crate) const TAG_BYTES: usize = 16;

/// Resolves [`PATTERN`]'s algorithms, and one draw of randomness.
pub(crate) struct Resolver(pub(crate) Ephemeral);

impl CryptoResolver for Resolver {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Once(Some(Ephemeral::new(self.0.0)))))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        match choice {
            DHChoice::Curve25519 => Some(Box::new(X25519::default())),
            DHChoice::Curve448 => None,
        }
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        match choice {
            HashChoice::SHA256 => Some(Box::new(Sha256(Context::new(&SHA256)))),
            HashChoice::SHA512 | HashChoice::Blake2s | HashChoice::Blake2b => None,
        }
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

/// Curve25519 as the Noise specification, section 12.1, and RFC 7748 use it.
#[derive(Default)]
struct X25519 {
    private: Zeroizing<[u8; KEY_BYTES]>,
    public: [u8; KEY_BYTES],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_BYTES
    }

    fn priv_len(&self) -> usize {
        KEY_BYTES
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = MontgomeryPoint::mul_base_clamped(*self.private).to_bytes();
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), Error> {
        let mut private = Zeroizing::new([0; KEY_BYTES]);
        random.try_fill_bytes(&mut *private)?;
        self.set(&*private);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &*self.private
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), Error> {
        let public = public.first_chunk().ok_or(Error::Dh)?;
        let shared = MontgomeryPoint(*public).mul_clamped(*self.private);
        out.get_mut(..KEY_BYTES).ok_or(Error::Dh)?.copy_from_slice(shared.as_bytes());
        Ok(())
    }
}

/// SHA-256 as the Noise specification, section 12.5, uses it.
struct Sha256(Context);

impl Hash for Sha256 {
    fn name(&self) -> &'static str {
        "SHA256"
    }

    fn block_len(&self) -> usize {
        SHA256.block_len()
    }

    fn hash_len(&self) -> usize {
        SHA256_OUTPUT_LEN
    }

    fn reset(&mut self) {
        self.0 = Context::new(&SHA256);
    }

    fn input(&mut self, data: &[u8]) {
        self.0.update(data);
    }

    fn result(&mut self, out: &mut [u8]) {
        out[..SHA256_OUTPUT_LEN].copy_from_slice(self.0.clone().finish().as_ref());
    }
}

/// The key of one direction of a channel, with the number of its records so far.
#[derive(Debug)]
pub(crate) struct RecordKey {
    key: LessSafeKey,
    records: u64,
}

/// All nonces are used up: the last one is Noise's own.
pub(crate) struct UsedUp;

impl RecordKey {
    pub(crate) fn new(key: &[u8; KEY_BYTES]) -> RecordKey {
        RecordKey { key: key_of(key), records: 0 }
    }

    /// Encrypts `text` in place. Returns the tag.
    pub(crate) fn seal(&mut self, text: &mut [u8]) -> Result<[u8; TAG_BYTES], UsedUp> {
        let nonce = self.next_nonce().ok_or(UsedUp)?;
        let tag = self
            .key
            .seal_in_place_separate_tag(nonce, Aad::empty(), text)
            .expect("a record is shorter than the cipher's limit");
        let mut bytes = [0; TAG_BYTES];
        bytes.copy_from_slice(tag.as_ref());
        Ok(bytes)
    }

    /// Decrypts to the front of `bytes` the ciphertext and tag that they hold from `at` on. Returns
    /// the text's length, or nothing if this is not the record that was sealed.
    pub(crate) fn open(&mut self, bytes: &mut [u8], at: usize) -> Option<usize> {
        let nonce = self.next_nonce()?;
        self.key.open_within(nonce, Aad::empty(), bytes, at..).ok().map(|text| text.len())
    }

    fn next_nonce(&mut self) -> Option<Nonce> {
        let records = self.records.checked_add(1)?;
        Some(nonce_of(mem::replace(&mut self.records, records)))
    }
}

/// AES-256-GCM as the Noise specification, section 12.4, uses it.
struct AesGcm(LessSafeKey);

impl AesGcm {
    fn new(key: &[u8; 32]) -> AesGcm {
        AesGcm(key_of(key))
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

/// Less safe: the nonces are counted by snow, or by [`RecordKey`].
fn key_of(key: &[u8; KEY_BYTES]) -> LessSafeKey {
    let key = UnboundKey::new(&AES_256_GCM, key).expect("the key is as long as the cipher's");
    LessSafeKey::new(key)
}

fn nonce_of(count: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&count.to_be_bytes());
    Nonce::assume_unique_for_key(bytes)
}
