//! Who a connection speaks for: SCRAM with the account's name and keys, or with users that were created.

mod access;
mod scram;

use std::sync::{Arc, OnceLock};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use orrery_engine::access::KeySlot;
use orrery_mongo::{Bson, Document, Error, Result, doc, error::code};

pub use access::{Access, Identity, ROLES, Role, check, role_reads, role_writes};
pub use scram::{Credentials, Mechanism};

use crate::config::MongoConfig;
use crate::service::Core;
use scram::{Exchange, Verifier};

/// Longest payload of a step.
const PAYLOAD_BYTES_MAX: usize = 4096;

/// A conversation under way. Its number is always the same: a connection has one at a time.
pub struct Conversation {
    exchange: Exchange,
    candidates: Vec<(Credentials, Identity)>,
    skips_empty: bool,
    /// Proven; the client owes an empty message.
    proven: Option<Identity>,
}

pub const CONVERSATION: i32 = 1;

/// What the account's own keys verify against.
pub struct Authenticator {
    account: String,
    keys: Vec<(KeySlot, String)>,
    /// For each mechanism, in the order of the keys.
    credentials: [OnceLock<Vec<Credentials>>; 2],
    secret: [u8; 16],
}

impl Authenticator {
    pub fn new(config: &MongoConfig, seed: u64) -> Authenticator {
        let keys = config.keys.present().map(|(slot, key)| (slot, STANDARD.encode(key))).collect();
        let mut secret = [0; 16];
        secret[..8].copy_from_slice(&seed.to_le_bytes());
        Authenticator { account: config.account_name.clone(), keys, credentials: Default::default(), secret }
    }

    fn of_account(&self, mechanism: Mechanism) -> impl Iterator<Item = (Credentials, Identity)> + '_ {
        let all = self.credentials[mechanism as usize].get_or_init(|| {
            let salt = mechanism.fake_salt(&self.account, b"account");
            let made =
                |(_, key): &(KeySlot, String)| Credentials::new(mechanism, &self.account, key, salt.clone());
            self.keys.iter().map(made).collect()
        });
        let of = |(credentials, (slot, _)): (&Credentials, &(KeySlot, String))| {
            (credentials.clone(), self.of_key(*slot))
        };
        all.iter().zip(&self.keys).map(of)
    }

    /// Who holds a key of the account.
    pub fn of_key(&self, slot: KeySlot) -> Identity {
        let role = match slot.writes() {
            true => Role::new("root", "admin"),
            false => Role::new("readAnyDatabase", "admin"),
        };
        Identity { user: self.account.as_str().into(), database: "admin".into(), roles: vec![role].into() }
    }

    /// What a user of that name may prove.
    fn candidates(
        &self,
        core: &Core,
        mechanism: Mechanism,
        user: &str,
        database: &str,
    ) -> Vec<(Credentials, Identity)> {
        if user == self.account {
            return self.of_account(mechanism).collect();
        }
        let Ok(Some(stored)) = core.catalog.user(core, database, user) else { return Vec::new() };
        let credentials = stored.get("credentials").and_then(Bson::as_document);
        let credentials = credentials.and_then(|all| all.get(mechanism.name())).and_then(Bson::as_document);
        let Some(credentials) = credentials.and_then(Credentials::of_document) else { return Vec::new() };
        let identity = Identity {
            user: user.into(),
            database: database.into(),
            roles: access::roles_of(&stored, database).into(),
        };
        vec![(credentials, identity)]
    }

    /// The mechanisms that a user can log in with.
    pub fn mechanisms(&self, core: &Core, user: &str, database: &str) -> Vec<&'static str> {
        let can = |mechanism: &Mechanism| {
            user == self.account || !self.candidates(core, *mechanism, user, database).is_empty()
        };
        let all = [Mechanism::Sha256, Mechanism::Sha1];
        all.into_iter().filter(can).map(Mechanism::name).collect()
    }

    /// The first step: who the client says it is, and the server's challenge.
    pub fn start(&self, core: &Core, command: &Document, database: &str) -> Result<(Conversation, Document)> {
        let mechanism = command.get("mechanism").and_then(Bson::as_str).unwrap_or_default();
        let mechanism = Mechanism::named(mechanism).ok_or_else(|| {
            Error::bad_value(format!(
                "Received authentication for mechanism {mechanism} which is unknown or not enabled"
            ))
        })?;
        let payload = payload(command)?;
        let first = scram::read_client_first(&payload).ok_or_else(failed)?;
        let candidates = self.candidates(core, mechanism, &first.user, database);
        let (salt, iterations) = match candidates.first() {
            Some((credentials, _)) => (credentials.salt.clone(), credentials.iterations),
            // Nobody learns here which names there are.
            None => (mechanism.fake_salt(&first.user, &self.secret), mechanism.iterations()),
        };
        let mut nonce = [0u8; 24];
        for part in nonce.chunks_mut(8) {
            part.copy_from_slice(&core.random_u64().to_le_bytes());
        }
        let exchange = Exchange::new(mechanism, first, &STANDARD.encode(nonce), &salt, iterations);
        let options = command.get("options").and_then(Bson::as_document);
        let skips_empty =
            options.and_then(|options| options.get("skipEmptyExchange")).is_some_and(Bson::is_truthy);
        let reply = step_reply(false, exchange.server_first().as_bytes());
        Ok((Conversation { exchange, candidates, skips_empty, proven: None }, reply))
    }
}

impl Conversation {
    /// The next step. `Some`: the client is who it says.
    pub fn go_on(&mut self, command: &Document) -> Result<(Option<Identity>, Document)> {
        let payload = payload(command)?;
        if let Some(identity) = self.proven.take() {
            return Ok((Some(identity), step_reply(true, b"")));
        }
        let last = self.exchange.read_client_final(&payload).ok_or_else(failed)?;
        // Every candidate is looked at, whichever it is.
        let mut proven = None;
        for (credentials, identity) in &self.candidates {
            if let Some(signature) = self.exchange.verify(&last, credentials) {
                proven = Some((signature, identity.clone()));
            }
        }
        let (signature, identity) = proven.ok_or_else(failed)?;
        let reply = step_reply(self.skips_empty, signature.as_bytes());
        match self.skips_empty {
            true => Ok((Some(identity), reply)),
            false => {
                self.proven = Some(identity);
                Ok((None, reply))
            }
        }
    }
}

pub fn failed() -> Error {
    Error::new(code::AUTHENTICATION_FAILED, "Authentication failed.")
}

fn payload(command: &Document) -> Result<Vec<u8>> {
    let bytes = match command.get("payload") {
        Some(Bson::Binary { bytes, .. }) => bytes.to_vec(),
        Some(Bson::String(text)) => STANDARD.decode(text.as_bytes()).map_err(|_| failed())?,
        _ => return Err(failed()),
    };
    if bytes.len() > PAYLOAD_BYTES_MAX { Err(failed()) } else { Ok(bytes) }
}

fn step_reply(done: bool, payload: &[u8]) -> Document {
    let payload: Arc<[u8]> = payload.into();
    doc! { "conversationId" => CONVERSATION, "done" => done, "payload" => Bson::Binary { subtype: 0, bytes: payload } }
}
