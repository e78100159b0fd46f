//! SCRAM (RFC 5802) with SHA-1 and SHA-256, on the server's side.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use md5::Md5;
use orrery_mongo::{Bson, Document, doc};
use sha1::Sha1;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mechanism {
    Sha1,
    Sha256,
}

impl Mechanism {
    pub const ALL: [Mechanism; 2] = [Mechanism::Sha1, Mechanism::Sha256];

    pub fn name(self) -> &'static str {
        match self {
            Mechanism::Sha1 => "SCRAM-SHA-1",
            Mechanism::Sha256 => "SCRAM-SHA-256",
        }
    }

    pub fn named(name: &str) -> Option<Mechanism> {
        Mechanism::ALL.into_iter().find(|known| known.name() == name)
    }

    pub fn iterations(self) -> u32 {
        match self {
            Mechanism::Sha1 => 10_000,
            Mechanism::Sha256 => 15_000,
        }
    }

    fn salt_bytes(self) -> usize {
        match self {
            Mechanism::Sha1 => 16,
            Mechanism::Sha256 => 28,
        }
    }

    /// A salt that is always the same for a name, and that tells nothing.
    pub fn fake_salt(self, user: &str, secret: &[u8]) -> Vec<u8> {
        let mut salt = self.hmac(secret, user.as_bytes());
        salt.resize(self.salt_bytes(), 0x5A);
        salt
    }

    fn hmac(self, key: &[u8], text: &[u8]) -> Vec<u8> {
        // An HMAC takes keys of any length.
        match self {
            Mechanism::Sha1 => {
                let mut mac = <Hmac<Sha1> as hmac::Mac>::new_from_slice(key).expect("any length");
                mac.update(text);
                mac.finalize().into_bytes().to_vec()
            }
            Mechanism::Sha256 => {
                let mut mac = <Hmac<Sha256> as hmac::Mac>::new_from_slice(key).expect("any length");
                mac.update(text);
                mac.finalize().into_bytes().to_vec()
            }
        }
    }

    fn hash(self, text: &[u8]) -> Vec<u8> {
        match self {
            Mechanism::Sha1 => Sha1::digest(text).to_vec(),
            Mechanism::Sha256 => Sha256::digest(text).to_vec(),
        }
    }

    /// The password as the mechanism takes it.
    fn prepared(self, user: &str, password: &str) -> String {
        match self {
            Mechanism::Sha1 => hex(&Md5::digest(format!("{user}:mongo:{password}"))),
            Mechanism::Sha256 => password.to_owned(),
        }
    }

    /// PBKDF2 with one block, which is as long as the hash.
    fn salted(self, password: &[u8], salt: &[u8], iterations: u32) -> Vec<u8> {
        let mut block = self.hmac(password, &[salt, &[0, 0, 0, 1]].concat());
        let mut out = block.clone();
        for _ in 1..iterations {
            block = self.hmac(password, &block);
            out.iter_mut().zip(&block).for_each(|(sum, part)| *sum ^= part);
        }
        out
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// What is kept of a password.
#[derive(Clone)]
pub struct Credentials {
    pub salt: Vec<u8>,
    pub iterations: u32,
    stored_key: Vec<u8>,
    server_key: Vec<u8>,
}

impl Credentials {
    pub fn new(mechanism: Mechanism, user: &str, password: &str, salt: Vec<u8>) -> Credentials {
        let iterations = mechanism.iterations();
        let salted = mechanism.salted(mechanism.prepared(user, password).as_bytes(), &salt, iterations);
        let stored_key = mechanism.hash(&mechanism.hmac(&salted, b"Client Key"));
        let server_key = mechanism.hmac(&salted, b"Server Key");
        Credentials { salt, iterations, stored_key, server_key }
    }

    pub fn to_document(&self) -> Document {
        let text = |bytes: &[u8]| STANDARD.encode(bytes);
        doc! {
            "iterationCount" => self.iterations as i32,
            "salt" => text(&self.salt),
            "storedKey" => text(&self.stored_key),
            "serverKey" => text(&self.server_key),
        }
    }

    pub fn of_document(document: &Document) -> Option<Credentials> {
        let bytes = |name: &str| STANDARD.decode(document.get(name)?.as_str()?).ok();
        Some(Credentials {
            iterations: u32::try_from(document.get("iterationCount").and_then(Bson::as_i64)?).ok()?,
            salt: bytes("salt")?,
            stored_key: bytes("storedKey")?,
            server_key: bytes("serverKey")?,
        })
    }
}

/// `n,,n=user,r=nonce`
pub struct ClientFirst {
    pub user: String,
    nonce: String,
    bare: String,
    header: String,
}

pub fn read_client_first(payload: &[u8]) -> Option<ClientFirst> {
    let text = std::str::from_utf8(payload).ok()?;
    // No channel binding: `n` or `y`, and perhaps somebody to act for, which nobody does.
    let mut parts = text.splitn(3, ',');
    let (binding, acts_for, bare) = (parts.next()?, parts.next()?, parts.next()?);
    if !matches!(binding, "n" | "y") || !acts_for.is_empty() {
        return None;
    }
    let mut user = None;
    let mut nonce = None;
    for part in bare.split(',') {
        if let Some(name) = part.strip_prefix("n=") {
            user = Some(name.replace("=2C", ",").replace("=3D", "="));
        } else if let Some(text) = part.strip_prefix("r=") {
            nonce = Some(text.to_owned());
        }
    }
    Some(ClientFirst { user: user?, nonce: nonce?, bare: bare.to_owned(), header: format!("{binding},,") })
}

/// What both sides have said so far.
pub struct Exchange {
    mechanism: Mechanism,
    first: ClientFirst,
    nonce: String,
    server_first: String,
}

/// What the client sends in the end.
pub struct ClientFinal {
    without_proof: String,
    proof: Vec<u8>,
}

/// Checks a proof.
pub trait Verifier {
    /// The server's own proof, if the client's is right.
    fn verify(&self, last: &ClientFinal, credentials: &Credentials) -> Option<String>;
}

impl Exchange {
    pub fn new(
        mechanism: Mechanism,
        first: ClientFirst,
        nonce: &str,
        salt: &[u8],
        iterations: u32,
    ) -> Exchange {
        let nonce = format!("{}{nonce}", first.nonce);
        let server_first = format!("r={nonce},s={},i={iterations}", STANDARD.encode(salt));
        Exchange { mechanism, first, nonce, server_first }
    }

    pub fn server_first(&self) -> &str {
        &self.server_first
    }

    /// `c=biws,r=nonce,p=proof`
    pub fn read_client_final(&self, payload: &[u8]) -> Option<ClientFinal> {
        let text = std::str::from_utf8(payload).ok()?;
        let (without_proof, proof) = text.rsplit_once(",p=")?;
        let mut fields = without_proof.split(',');
        let binding = STANDARD.decode(fields.next()?.strip_prefix("c=")?).ok()?;
        let nonce = fields.next()?.strip_prefix("r=")?;
        if binding != self.first.header.as_bytes() || nonce != self.nonce {
            return None;
        }
        Some(ClientFinal { without_proof: without_proof.to_owned(), proof: STANDARD.decode(proof).ok()? })
    }
}

impl Verifier for Exchange {
    fn verify(&self, last: &ClientFinal, credentials: &Credentials) -> Option<String> {
        let message = format!("{},{},{}", self.first.bare, self.server_first, last.without_proof);
        let signature = self.mechanism.hmac(&credentials.stored_key, message.as_bytes());
        if signature.len() != last.proof.len() {
            return None;
        }
        let client_key: Vec<u8> = signature.iter().zip(&last.proof).map(|(a, b)| a ^ b).collect();
        let matches = bool::from(self.mechanism.hash(&client_key).ct_eq(&credentials.stored_key));
        let server = self.mechanism.hmac(&credentials.server_key, message.as_bytes());
        matches.then(|| format!("v={}", STANDARD.encode(server)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of RFC 7677, with its own salt and count.
    #[test]
    fn the_example_of_the_standard_is_proven() {
        let first = read_client_first(b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO").unwrap();
        assert_eq!(first.user, "user");
        let salt = STANDARD.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        let mechanism = Mechanism::Sha256;
        let exchange = Exchange::new(mechanism, first, "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0", &salt, 4096);
        assert_eq!(
            exchange.server_first(),
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        let salted = mechanism.salted(b"pencil", &salt, 4096);
        let credentials = Credentials {
            salt,
            iterations: 4096,
            stored_key: mechanism.hash(&mechanism.hmac(&salted, b"Client Key")),
            server_key: mechanism.hmac(&salted, b"Server Key"),
        };
        let last = exchange
            .read_client_final(
                b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=",
            )
            .unwrap();
        let signature = exchange.verify(&last, &credentials);
        assert_eq!(signature.as_deref(), Some("v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="));
        let wrong = ClientFinal { proof: vec![0; 32], ..last };
        assert!(exchange.verify(&wrong, &credentials).is_none());
    }

    #[test]
    fn names_with_commas_are_escaped_and_acting_for_others_is_refused() {
        assert_eq!(read_client_first(b"n,,n=a=2Cb=3D,r=x").unwrap().user, "a,b=");
        assert!(read_client_first(b"n,a=other,n=user,r=x").is_none());
        assert!(read_client_first(b"p=tls-unique,,n=user,r=x").is_none());
        assert!(read_client_first(b"n,,n=user").is_none());
    }
}
